"""Back-ups of a running server, as an operator asks for them over HTTP. What is in one: tests/cli and tests/fault."""
import pytest

from harness import wire
from harness.waiting import wait_until

PATIENCE = 60.0
PATH = "/_orrery/backups"


@pytest.fixture
def backups(tmp_path):
    return tmp_path / "backups"


@pytest.fixture
def own(server, backups):
    return server("--backup-dir", backups)


def finish(client):
    wait_until(lambda: client.get(PATH).expect(200).json["state"] != "running", PATIENCE, "the end of the back-up")
    return client.get(PATH).expect(200).json


def test_a_back_up_is_taken_when_asked_for(own, backups):
    with own.client() as client:
        assert client.get(PATH).expect(200).json == {"directory": str(backups), "state": "idle", "backups": []}
        begun = client.post(PATH).expect(202).json
        assert begun["run"] == 1 and begun["directory"] == str(backups)
        done = finish(client)
        assert done["state"] == "done" and done["run"] == 1
        made = done["made"]
        assert made["number"] == 1 and made["whole"] is True and made["bytes"] == made["newBytes"] > 0
        assert made["taken"] >= done["began"] > 1_700_000_000
        assert made["life"] == client.get("/")["x-orrery-life"]
        assert done["backups"] == [made]
        client.create_database()
        client.post(PATH).expect(202)
        done = finish(client)
        assert [each["number"] for each in done["backups"]] == [1, 2]


def test_metrics_tell_of_back_ups(own):
    with own.client() as client:
        assert wire.metric(client, "orrery_backups_total") == 0
        assert wire.metric(client, "orrery_backup_last_seconds") == 0
        client.post(PATH).expect(202)
        finish(client)
        assert wire.metric(client, "orrery_backups_total") == 1
        assert wire.metric(client, "orrery_backup_last_seconds") > 1_700_000_000
        assert wire.metric(client, "orrery_backup_running") == 0


def test_a_failure_is_told(own, backups):
    backups.write_text("a file is in the way")
    with own.client() as client:
        client.post(PATH).expect(202)
        failed = finish(client)
        assert failed["state"] == "failed" and str(backups) in failed["failure"]
        assert wire.metric(client, "orrery_backups_failed_total") == 1
        backups.unlink()
        client.post(PATH).expect(202)
        assert finish(client)["state"] == "done"


def test_without_a_directory_there_are_none(client):
    client.post(PATH).expect(400, text="--backup-dir")
    assert client.get(PATH).expect(200).json == {"directory": "", "state": "idle", "backups": []}


def test_back_ups_are_for_keys_that_may_write(server, backups):
    key = "c2VjcmV0" * 8
    own = server("--backup-dir", backups, "--read-only-key", key)
    with own.client(key=key) as client:
        client.get(PATH).expect(403)
        client.post(PATH).expect(403)
    with own.client() as client:
        client.get(PATH, signed=False).expect(401)
        client.post(PATH, signed=False).expect(401)
        client.request("DELETE", PATH).expect(405, text="GET and POST")
    assert not backups.exists()
