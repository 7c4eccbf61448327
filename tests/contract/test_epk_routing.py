"""Effective partition keys, seen from outside: which range a key lands in."""
import struct

import pytest

from harness import wire

VECTORS = [  # key as JSON text, EPK in version 1, EPK in version 2
    ('""', "05C1CF33970FF80800", "32E9366E637A71B4E710384B2F4970A0"),
    ('"a"', "05C1D78593652C086200", "3A5381E1114EB8D3FCC90795045B49B7"),
    ('"aa"', "05C1C7B7270FE008626200", "05033626483AE80D00E44FBD35362B19"),
    ('"redmond"', "05C1EFE313830C087366656E706F6500", "22E342F38A486A088463DFF7838A5963"),
    ('"partitionKey"', "05C1E1B3D9CD2608716273756A756A706F4C667A00", "013AEFCF77FA271571CF665A58C933F1"),
    ('"Hello World"', "05C1C5D58F13B00849666D6D70215870736D6500", "306C52B42DECB3AE9D3C7586975E30B9"),
    ('"' + "a" * 99 + '"', "05C1E9CD098BB208" + "62" * 99 + "00", "3C02F609961C32AAC2B912B940D1209A"),
    ('"' + "a" * 100 + '"', "05C1EB5921F70608" + "62" * 100 + "00", "0DBD7D229437BB665DE6417747994D57"),
    ('"' + "a" * 101 + '"', "05C1EB5921F70608" + "62" * 100 + "00", "08042541D30C8BF90D7092B1519AE0BC"),
    ('"' + "a" * 110 + '"', "05C1EB5921F70608" + "62" * 100 + "00", "0BA3E9CA8EE4C14538828D1612A4B652"),
    ('"\\u00e9"', "05C1B3CD91912008C4AA00", "007199F104E04116EE25AF912CA4889B"),
    ('"\\u9c40"', "05C1ADC9E18FA008EAB28100", "26BB8A9DC450408217303F7AA09BCD38"),
    ('"\\u65e5\\u672c\\u8a9e"', "05C1E31DE9C91E08E798A6E79DADE9AB9F00", "3F0624929BDE45571F050DCA6A1CB775"),
    ('"\\ud83d\\ude00"', "05C1814D5F9C08F1A0998100", "28D7FCB721E75FBE0DAC3D71DAB82766"),
    ('"' + "\\u00e9" * 60 + '"', "05C1A329C995C008" + "C4AA" * 50 + "C4", "3ABA5DCC7655B85B22DF2D0454928E02"),
    ("0", "05C1BF6DA11560058000", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"),
    ("-0", "05C1E703ED99A0058000", "3D018BB1DF3DB27235766E81FD10406E"),
    ("-0.0", "05C1E703ED99A0058000", "3D018BB1DF3DB27235766E81FD10406E"),
    ("1", "05C1ED172B6B2605BFF0", "20CD98B339BA78A5D0CF6953B87070B0"),
    ("1.0", "05C1ED172B6B2605BFF0", "20CD98B339BA78A5D0CF6953B87070B0"),
    ("-1", "05C1D1A5BDDF9C054010", "19938E7A936C1C5B9E3AE842BBC16839"),
    ("2", "05C1D93569113805C000", "11BEC098BB8A08943F0A144281ACC26C"),
    ("5", "05C1D9C1C5517C05C014", "19C08621B135968252FB34B4CF66F811"),
    ("5.5", "05C1D7A771716C05C016", "0E2EE47829D1AF775EEFB6540FD1D0ED"),
    ("100", "05C1E30371BF2005C05980", "34235CFA9F2448C372F53E4119DBB9AB"),
    ("0.1", "05C1D92733D70405BFB9CD673399CD6734", "21DEBA97B3AF01087F4E1F889B0A7739"),
    ("-123456.789", "05C1EB75F1A30A053F01EDFD6D050D256E", "16249C27626393A515C13A3125183A10"),
    ("12313.1221", "05C1ED154D592E05C0C90723F50FC925D8", "27E7ECA8F2EE3E53424DE8D5220631C6"),
    ("123456789", "05C1D9E1A5311C05C19DB7CD8B40", "1F56D2538088EBA82CCF988F36E16760"),
    ("4294967296", "05C1ED5B039B6005C1F0", "0C746AE2C07859994662C1770E77CCFB"),
    ("9007199254740991", "05C1B3FBA771A005C33FFFFFFFFFFFFFFE", "12C221C7032CED1F9E6693CE1428E6CF"),
    ("1e308", "05C145CFAE05FFE1E73D715F5F2340", "1E0D61F83E0EBE180144F756FA5C918A"),
    ("5e-324", "05C1E5C91F4D3005800101010101010102", "0E6CBA63A280927DE485DEF865800139"),
    ("true", "05C1D7C5A903D803", "0E711127C5B5A8E4726AC6DD306A3E59"),
    ("false", "05C1DB857D857C02", "2FE1BE91E90A3439635E0E9E37361EF2"),
    ("null", "05C1ED45D7475601", "378867E4430E67857ACE5C908374FE16"),
    ("{}", "05C1D529E345DC00", "11622DAA78F835834610ABE56EFF5CB5"),
]
MULTI_VECTORS = [
    (["a", "b"], "3A5381E1114EB8D3FCC90795045B49B7195644569A78B1E22D200348AF9416CE"),
    (["USA", "Redmond"], "2D145581F5E75BAC6C539649981C967001620B162169497AFD85FA66E99F7376"),
    (["USA", "Redmond", "98052"],
     "2D145581F5E75BAC6C539649981C967001620B162169497AFD85FA66E99F737636C8BBEC5EEB4676558994E4D8DF79A7"),
    (["tenant1", 42, True],
     "0DAE0B8467B011E957BC0B8B0DEB5ACA08E6D561F6FD951DCC25E7E4EA2884B50E711127C5B5A8E4726AC6DD306A3E59"),
    (["x", None, {}],
     "11E3F358618BE9AA5BAFF4C7C74F0716378867E4430E67857ACE5C908374FE1611622DAA78F835834610ABE56EFF5CB5"),
]
CASES = [(version, key, epk) for key, *epks in VECTORS for version, epk in zip((1, 2), epks)]
IDS = [f"V{version} {key[:16]}" for version, key, _ in CASES]


def encode_number(value):
    """The number encoding of version 1, written down a second time."""
    bits, = struct.unpack(">Q", struct.pack(">d", value))
    bits = bits ^ (1 << 63) if bits < 1 << 63 else (~bits + 1) % (1 << 64)
    out, bits = bytes([5, bits >> 56]), (bits << 8) % (1 << 64)
    while True:
        byte, bits = (bits >> 56) | 1, (bits << 7) % (1 << 64)
        if not bits:
            return (out + bytes([byte & 0xFE])).hex().upper()
        out += bytes([byte])


def boundaries(version, count):
    """The bounds of `count` ranges at creation."""
    if version == 1:
        inner = [encode_number(float((2**32 - 1) // count * i)) for i in range(1, count)]
    else:
        inner = [f"{(2**126 - 1) // count * i:032X}" for i in range(1, count)]
    return ["", *inner, "FF"]


def owner(ranges, epk):
    found = [each["id"] for each in ranges if each["minInclusive"] <= epk < each["maxExclusive"]]
    assert len(found) == 1, f"{epk} is in the ranges {found}"
    return found[0]


@pytest.fixture(scope="module")
def five_ranges(module_client):
    """A container of five ranges for each hash version, and one for hierarchical keys."""
    database = module_client.create_database()
    definitions = {1: {"paths": ["/pk"], "kind": "Hash", "version": 1}, 2: {"paths": ["/pk"], "kind": "Hash", "version": 2},
                   "two": {"paths": ["/k0", "/k1"], "kind": "MultiHash", "version": 2},
                   "three": {"paths": ["/k0", "/k1", "/k2"], "kind": "MultiHash", "version": 2}}
    return {name: database.create_container({"partitionKey": definition}, throughput=30000)
            for name, definition in definitions.items()}


# ── Boundaries ────────────────────────────────────────────────────────────────────────────────

def test_boundaries_written_in_the_specification():
    assert boundaries(1, 5) == ["", "05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398", "FF"]
    assert boundaries(2, 4) == ["", "0" + "F" * 31, "1" + "F" * 30 + "E", "2" + "F" * 30 + "D", "FF"]
    assert boundaries(2, 5)[4] == "3" * 31 + "0"


@pytest.mark.parametrize("definition, version", [
    ({"paths": ["/pk"], "kind": "Hash"}, 1), ({"paths": ["/pk"], "kind": "Hash", "version": 1}, 1),
    ({"paths": ["/pk"], "kind": "Hash", "version": 2}, 2), ({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}, 2)],
    ids=["version absent", "version 1", "version 2", "MultiHash"])
@pytest.mark.parametrize("throughput, count", [(400, 1), (10000, 1), (10100, 2), (11000, 2), (12000, 2), (15000, 3), (25100, 5),
                                               (30000, 5)])
def test_throughput_decides_on_the_initial_ranges(db, definition, version, throughput, count):
    ranges = db.create_container({"partitionKey": definition}, throughput=throughput).ranges()
    expected = boundaries(version, count)
    assert [(each["minInclusive"], each["maxExclusive"]) for each in ranges] == list(zip(expected, expected[1:]))
    assert [each["id"] for each in ranges] == [str(n) for n in range(count)]


@pytest.mark.parametrize("maximum, count", [(4000, 1), (10000, 1), (11000, 2), (15000, 3), (30000, 5)])
def test_autoscale_counts_its_maximum(db, maximum, count):
    settings = {"x-ms-cosmos-offer-autopilot-settings": f'{{"maxThroughput":{maximum}}}'}
    assert len(db.create_container(headers=settings).ranges()) == count


# ── Routing ───────────────────────────────────────────────────────────────────────────────────

@pytest.mark.parametrize("version, key, epk", CASES, ids=IDS)
def test_item_lands_in_the_range_that_holds_its_epk(five_ranges, version, key, epk):
    container, name = five_ranges[version], wire.unique("i")
    document = f'{{"id":"{name}"}}' if key == "{}" else f'{{"id":"{name}","pk":{key}}}'
    expected = owner(container.ranges(), epk)
    created = container.create(document, f"[{key}]").expect(201)
    assert created[wire.RANGE_ID] == expected
    assert created[wire.SESSION].startswith(f"{expected}:")
    assert container.read(name, f"[{key}]").expect(200)[wire.RANGE_ID] == expected
    assert container.create(document, None, wire.UPSERT).expect(200)[wire.RANGE_ID] == expected
    assert container.read("none", f"[{key}]").expect(404)[wire.RANGE_ID] == expected
    assert container.delete(name, f"[{key}]").expect(204)[wire.RANGE_ID] == expected


@pytest.mark.parametrize("key, epk", MULTI_VECTORS, ids=str)
def test_hierarchical_item_lands_in_the_range_that_holds_its_epk(five_ranges, key, epk):
    container = five_ranges["two" if len(key) == 2 else "three"]
    document = {"id": "x"} | {f"k{n}": value for n, value in enumerate(key) if value != {}}
    response = container.upsert(document, key).expect((200, 201))
    assert response[wire.RANGE_ID] == owner(container.ranges(), epk)


@pytest.mark.parametrize("version", [1, 2])
def test_vectors_reach_every_range(five_ranges, version):
    ranges = five_ranges[version].ranges()
    assert len({owner(ranges, epk) for each, _, epk in CASES if each == version}) >= 4


# ── Targeting ─────────────────────────────────────────────────────────────────────────────────

@pytest.fixture(scope="module")
def vectors_stored(module_client):
    """Five ranges, version 2, and a document for every vector, whose id is its EPK."""
    container = module_client.create_database().create_container(throughput=30000)
    for key, _, epk in VECTORS:
        if key in ("-0.0", "1.0"):
            continue
        document = f'{{"id":"{epk}"}}' if key == "{}" else f'{{"id":"{epk}","pk":{key}}}'
        container.create(document, f"[{key}]").expect(201)
    return container


STORED = sorted({epk for _, _, epk in VECTORS})


def epks(container, headers):
    return sorted(document["id"] for document in container.all_documents(headers))


@pytest.mark.parametrize("form", ["{id}", "{rid},{id}"])
def test_range_id_selects_the_items_of_that_range(vectors_stored, form):
    seen = []
    for each in vectors_stored.ranges():
        header = {wire.RANGE_ID: form.format(id=each["id"], rid=vectors_stored.rid)}
        page = vectors_stored.feed(header | {wire.MAX_ITEMS: "-1"}).expect(200)
        found = sorted(document["id"] for document in page.json["Documents"])
        assert found == [epk for epk in STORED if each["minInclusive"] <= epk < each["maxExclusive"]]
        assert page[wire.RANGE_ID] == each["id"]
        assert page[wire.SESSION].split(":")[0] == each["id"] and "," not in page[wire.SESSION]
        seen += found
    assert sorted(seen) == STORED


@pytest.mark.parametrize("cut", [0.25, 0.5, 0.75])
def test_epk_bounds_select_a_part_of_a_range(vectors_stored, cut):
    for each in vectors_stored.ranges():
        low = int(each["minInclusive"] or "0", 16)
        high = 2**126 - 1 if each["maxExclusive"] == "FF" else int(each["maxExclusive"], 16)
        middle = f"{int(low + (high - low) * cut):032X}"
        target = {wire.RANGE_ID: each["id"], "x-ms-read-key-type": "EffectivePartitionKeyRange"}
        below = target | {"x-ms-start-epk": each["minInclusive"], "x-ms-end-epk": middle}
        above = target | {"x-ms-start-epk": middle, "x-ms-end-epk": each["maxExclusive"]}
        assert epks(vectors_stored, below) == [epk for epk in STORED if each["minInclusive"] <= epk < middle]
        assert epks(vectors_stored, above) == [epk for epk in STORED if middle <= epk < each["maxExclusive"]]


def test_start_epk_is_inclusive_and_end_epk_exclusive(vectors_stored):
    for epk in STORED[::5]:
        mine = next(each for each in vectors_stored.ranges() if each["minInclusive"] <= epk < each["maxExclusive"])
        target = {"x-ms-read-key-type": "EffectivePartitionKeyRange", wire.RANGE_ID: mine["id"]}
        from_it = target | {"x-ms-start-epk": epk, "x-ms-end-epk": mine["maxExclusive"]}
        up_to_it = target | {"x-ms-start-epk": mine["minInclusive"], "x-ms-end-epk": epk}
        assert epk in epks(vectors_stored, from_it) and epk not in epks(vectors_stored, up_to_it)


@pytest.mark.parametrize("start", ["", None], ids=["empty", "absent"])
def test_empty_or_absent_start_epk_is_the_lowest(vectors_stored, start):
    first = vectors_stored.ranges()[0]
    headers = {wire.RANGE_ID: first["id"], "x-ms-read-key-type": "EffectivePartitionKeyRange", "x-ms-end-epk": first["maxExclusive"]}
    headers |= {"x-ms-start-epk": start} if start is not None else {}
    assert epks(vectors_stored, headers) == [epk for epk in STORED if epk < first["maxExclusive"]]


def test_start_epk_without_an_end_is_400(vectors_stored):
    vectors_stored.feed({wire.RANGE_ID: "0", "x-ms-start-epk": "01", "x-ms-read-key-type": "EffectivePartitionKeyRange"}).expect(400)


def test_unknown_range_is_410_1002(vectors_stored):
    response = vectors_stored.feed({wire.RANGE_ID: "77"}).expect(410, 1002)
    assert response.json["code"] == "Gone"
    vectors_stored.feed({wire.RANGE_ID: f"{vectors_stored.rid},77"}).expect(410, 1002)


def test_range_with_a_foreign_rid_is_410_1000(vectors_stored):
    other = vectors_stored.database.create_container()
    vectors_stored.feed({wire.RANGE_ID: f"{other.rid},0"}).expect(410, 1000)


@pytest.mark.parametrize("range_id", ["0", "1", "2", "3", "4", "77"])
def test_full_key_decides_alone_beside_a_range_id(five_ranges, range_id):
    container, name = five_ranges[2], wire.unique("i")
    expected, header = owner(container.ranges(), "3A5381E1114EB8D3FCC90795045B49B7"), {wire.RANGE_ID: range_id}
    assert container.create({"id": name, "pk": "a"}, headers=header).expect(201)[wire.RANGE_ID] == expected
    assert container.read(name, headers=header).expect(200)[wire.RANGE_ID] == expected
    assert name in [document["id"] for document in container.all_documents(header | {wire.KEY: '["a"]'})]
    container.delete(name, headers=header).expect(204)


def test_prefix_is_narrowed_by_epk_bounds_and_range_id(five_ranges):
    container = five_ranges["two"]
    prefix = "2D145581F5E75BAC6C539649981C9670"
    container.upsert({"id": "narrow", "k0": "USA", "k1": "Redmond"}, ["USA", "Redmond"]).expect((200, 201))
    mine = owner(container.ranges(), prefix)
    headers = {wire.KEY: '["USA"]', "x-ms-read-key-type": "EffectivePartitionKeyRange"}
    inside = {"x-ms-start-epk": prefix, "x-ms-end-epk": prefix + "FF"}
    before = {"x-ms-start-epk": prefix, "x-ms-end-epk": prefix + "01620B162169497AFD85FA66E99F7376"}
    assert "narrow" in epks(container, headers | inside | {wire.RANGE_ID: mine})
    assert "narrow" not in epks(container, headers | before | {wire.RANGE_ID: mine})
    other = next(each["id"] for each in container.ranges() if each["id"] != mine)
    assert epks(container, {wire.KEY: '["USA"]', wire.RANGE_ID: other}) == []
