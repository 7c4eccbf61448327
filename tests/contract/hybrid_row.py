"""Batches in the binary form that .NET's client speaks: written and read here independently of the server."""
import struct
import zlib

TYPES = {"Create": 0, "Patch": 1, "Read": 2, "Delete": 4, "Replace": 5, "Upsert": 20}
SEGMENT = bytes.fromhex("81f0d8ff7f010a000000")
RECORD = bytes.fromhex("81f1d8ff7f")
OPERATION, RESULT = bytes.fromhex("817054e17f"), bytes.fromhex("817154e17f")
VARIABLE = ("partitionKey", "effectivePartitionKey", "id", "binaryId", "resourceBody")
SPARSE_TEXT = {"indexingDirective": 8, "ifMatch": 9, "ifNoneMatch": 10}


def varuint(number):
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def counted(data):
    return varuint(len(data)) + data


def record(row):
    return RECORD + struct.pack("<iI", len(row), zlib.crc32(row)) + row


def operation(kind, resource_type=2, minimalReturnPreference=None, **members):
    """The row of one operation; members are text or bytes by their names in JSON."""
    data = {name: value.encode() if isinstance(value, str) else value for name, value in members.items()}
    presence, columns = 0b11, b""
    for bit, name in enumerate(VARIABLE, start=2):
        if name in data:
            presence |= 1 << bit
            columns += counted(data[name])
    for name, token in SPARSE_TEXT.items():
        if name in data:
            columns += bytes([20, token]) + counted(data[name])
    if minimalReturnPreference is not None:
        columns += bytes([3 if minimalReturnPreference else 2, 12])
    return OPERATION + bytes([presence]) + struct.pack("<ii", TYPES[kind], resource_type) + columns


def stream(*rows):
    return SEGMENT + b"".join(record(row) for row in rows)


def read_varuint(data, at):
    number = shift = 0
    while True:
        byte, at = data[at], at + 1
        number, shift = number | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return number, at


def read_counted(data, at):
    size, at = read_varuint(data, at)
    return data[at:at + size], at + size


def results(body):
    """The results of a response, by their names in JSON."""
    assert body.startswith(SEGMENT), body[:20]
    at, out = len(SEGMENT), []
    while at < len(body):
        assert body[at:at + 5] == RECORD
        size, checksum = struct.unpack_from("<iI", body, at + 5)
        row, at = body[at + 13:at + 13 + size], at + 13 + size
        assert len(row) == size and zlib.crc32(row) == checksum
        out.append(result(row))
    return out


def result(row):
    assert row.startswith(RESULT) and row[5] & 0b11 == 0b11
    status, substatus = struct.unpack_from("<ii", row, 6)
    out, at = {"statusCode": status, "subStatusCode": substatus}, 14
    for bit, name in ((2, "eTag"), (3, "resourceBody")):
        if row[5] >> bit & 1:
            data, at = read_counted(row, at)
            out[name] = data.decode()
    sparse = {(11, 5): ("retryAfterMilliseconds", "<I"), (16, 6): ("requestCharge", "<d")}
    while at < len(row):
        name, form = sparse[row[at], row[at + 1]]
        out[name], at = struct.unpack_from(form, row, at + 2)[0], at + 2 + struct.calcsize(form)
    return out
