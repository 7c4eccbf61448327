"""Unique key policies are enforced within a logical partition."""
import pytest

HALVES = ["Unique index constraint violation", "Resource with specified id, name, or unique index already exists."]


@pytest.fixture
def people(db):
    return db.create_container({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/name", "/address/zip"]}, {"paths": ["/mail"]}]}})


def person(identity, name="Ada", zip_code="1", mail=None, pk="a"):
    return {"id": identity, "pk": pk, "name": name, "address": {"zip": zip_code}, "mail": mail or identity + "@x"}


def assert_violation(response):
    response.expect(409, 0)
    assert all(half in response.message for half in HALVES), response.message
    assert response.json["code"] == "Conflict"
    assert response.charge == 1.24


def test_second_item_with_the_same_values_is_409_with_both_texts(people):
    people.create(person("1")).expect(201)
    assert_violation(people.create(person("2")))
    people.read("2").expect(404)


@pytest.mark.parametrize("other", [
    person("2", name="ada"), person("2", zip_code="2"), person("2", zip_code=1), person("2", name=None),
    person("2", pk="b"), person("2", name={"a": 1}), person("2", name="Ada ")], ids=str)
def test_other_values_types_letter_case_or_partition_are_fine(people, other):
    people.create(person("1")).expect(201)
    people.create(other).expect(201)


def test_each_key_of_the_policy_counts_alone(people):
    people.create(person("1", mail="m")).expect(201)
    assert_violation(people.create(person("2", name="Grace", mail="m")))


def test_missing_value_counts_as_null(people):
    people.create({"id": "1", "pk": "a", "name": "Ada", "mail": "1"}).expect(201)
    assert_violation(people.create({"id": "2", "pk": "a", "name": "Ada", "mail": "2"}))
    assert_violation(people.create({"id": "3", "pk": "a", "name": "Ada", "address": {"zip": None}, "mail": "3"}))


def test_upsert_that_inserts_or_updates_into_taken_values_is_409(people):
    people.create(person("1")).expect(201)
    people.create(person("2", name="Grace")).expect(201)
    assert_violation(people.upsert(person("3")))
    assert_violation(people.upsert(person("2")))
    assert people.read("2").expect(200).json["name"] == "Grace"


def test_replace_into_taken_values_is_409_and_into_its_own_is_fine(people):
    people.create(person("1")).expect(201)
    people.create(person("2", name="Grace")).expect(201)
    assert_violation(people.replace("2", person("2")))
    people.replace("2", person("2", name="Grace") | {"age": 1}).expect(200)
    people.upsert(person("2", name="Grace") | {"age": 2}).expect(200)


def test_replace_and_delete_free_the_old_values(people):
    people.create(person("1")).expect(201)
    people.replace("1", person("1", name="Grace")).expect(200)
    people.create(person("2")).expect(201)
    people.delete("2").expect(204)
    people.create(person("3")).expect(201)


def test_delete_by_partition_key_frees_the_values(people):
    people.create(person("1")).expect(201)
    people.delete_key(["a"]).expect(200)
    people.create(person("2")).expect(201)


def test_id_clash_is_409_before_the_unique_key_is_looked_at(people):
    people.create(person("1")).expect(201)
    people.create(person("1", name="Grace")).expect(409)
