"""GET /, the database account."""
import json

import pytest

from harness import wire


def test_account_document_has_every_member_clients_read(client):
    account = client.get("/").expect(200).json
    assert account["_self"] == "" and account["_dbs"] == "//dbs/"
    assert account["media"] == "//media/" and account["addresses"] == "//addresses/"
    assert isinstance(account["_rid"], str) and isinstance(account["id"], str)
    assert account["userConsistencyPolicy"]["defaultConsistencyLevel"] == "Session"
    assert account["enableMultipleWriteLocations"] is False
    assert account.get("enablePerPartitionFailoverBehavior", False) is False
    for policy in ("userReplicationPolicy", "systemReplicationPolicy"):
        assert {"minReplicaSetSize", "maxReplicasetSize"} <= account[policy].keys()
    assert {"primaryReadCoefficient", "secondaryReadCoefficient"} <= account["readPolicy"].keys()


def test_account_id_is_not_localhost(client):
    assert client.get("/", {"Host": "localhost:8081"}).expect(200).json["id"] not in ("localhost", "")


def test_locations_name_the_region_and_the_endpoint(client, endpoint):
    account = client.get("/").expect(200).json
    for locations in (account["writableLocations"], account["readableLocations"]):
        assert locations and all(location["name"] and location["databaseAccountEndpoint"] for location in locations)


@pytest.mark.parametrize("host", ["localhost:8081", "example.localhost:1234", "127.0.0.1:9", "[::1]:8081", "localhost"])
def test_endpoints_derive_from_the_host_header_and_keep_the_scheme(server, host):
    own = server()
    for scheme in ("http", "https"):
        with wire.Client(own.endpoint.over(scheme)) as client:
            account = client.get("/", {"Host": host}).expect(200).json
        for location in account["writableLocations"] + account["readableLocations"]:
            assert location["databaseAccountEndpoint"] == f"{scheme}://{host}/"


@pytest.mark.parametrize("url", ["https://orrery.example:444/", "https://orrery.example:444"])
def test_advertised_url_wins_over_the_host_header_and_stays_as_it_is(server, url):
    client = server("--advertise", url).client()
    account = client.get("/", {"Host": "localhost:1"}).expect(200).json
    for location in account["writableLocations"] + account["readableLocations"]:
        assert location["databaseAccountEndpoint"] == url


# ── A browser's way in ──────────────────────────────────────────────────────────────────────────────

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("verb", ["GET", "HEAD"])
def test_browser_at_the_root_is_sent_to_the_explorer(endpoint, verb):
    client = wire.Client(endpoint)
    response = client.request(verb, "/", headers=HTML, signed=False).expect(302)
    assert response["location"] == "_explorer/"
    assert response["cache-control"] == "no-store"
    client.get("/_explorer/", signed=False).expect(200)


@pytest.mark.parametrize("headers", [{}, {"Accept": "application/json"}, {"Accept": "*/*"}])
def test_stranger_at_the_root_who_wants_no_page_is_401(client, headers):
    client.get("/", headers, signed=False).expect(401)


def test_browser_that_signs_gets_the_account(client):
    assert client.get("/", HTML).expect(200).json["id"]
    client.get("/", HTML, what=("dbs", "")).expect(401)
    client.get("/dbs", HTML, signed=False).expect(401)


def test_query_engine_configuration_is_an_object_written_as_text(client):
    text = client.get("/").expect(200).json["queryEngineConfiguration"]
    assert isinstance(text, str)
    configuration = json.loads(text)
    assert configuration["maxSqlQueryInputLength"] == 524288
    assert configuration["maxJoinsPerSqlQuery"] == 10 and configuration["maxUdfRefPerSqlQuery"] == 10
    assert configuration["sqlAllowNonFiniteNumbers"] is False and configuration["sqlAllowLike"] is True


@pytest.mark.parametrize("name", ["x-ms-max-media-storage-usage-mb", "x-ms-media-storage-usage-mb",
                                  "x-ms-databaseaccount-consumed-mb", "x-ms-databaseaccount-reserved-mb",
                                  "x-ms-databaseaccount-provisioned-mb"])
def test_account_storage_headers_are_numbers(client, name):
    assert client.get("/").expect(200)[name].isdigit()


@pytest.mark.parametrize("path", ["/", "//", "/?x=y"])
def test_account_is_signed_with_empty_type_and_link(client, path):
    client.get(path, what=("", "")).expect(200)
    client.get(path, what=("dbs", "")).expect(401)


@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE", "PATCH"])
def test_account_cannot_be_written(client, verb):
    client.request(verb, "/").expect(405)
