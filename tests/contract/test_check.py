"""The check of a running server's store, over HTTP."""
from harness import wire
from harness.waiting import wait_until

PATIENCE = 60.0
PATH = "/_orrery/check"


def test_a_check_is_run_when_asked_for(server):
    own = server()
    with own.client() as client:
        assert client.get(PATH).expect(200).json == {"state": "idle"}
        container = client.create_database().create_container()
        for number in range(10):
            container.create({"id": f"{number}", "pk": "a"})
        begun = client.post(PATH).expect(202).json
        assert begun["run"] == 1
        wait_until(lambda: client.get(PATH).json["state"] != "running", PATIENCE, "the end of the check")
        done = client.get(PATH).expect(200).json
        assert done["state"] == "done"
        assert done["report"] == {"partitions": 1, "documents": 10, "findingCount": 0, "findings": []}
        assert wire.metric(client, "orrery_check_findings_total") == 0


def test_checks_are_for_keys_that_may_write(server):
    key = "c2VjcmV0" * 8
    own = server("--read-only-key", key)
    with own.client(key=key) as client:
        client.get(PATH).expect(403)
        client.post(PATH).expect(403)
    with own.client() as client:
        client.get(PATH, signed=False).expect(401)
        client.request("DELETE", PATH).expect(405, text="GET and POST")
