"""Data directories of earlier versions are taken over as they are; one that is not known is refused untouched."""

import hashlib
import json
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

import commands
from harness import program, server as launcher, wire
from harness.server import BINARY

STORES = sorted((pathlib.Path(__file__).parent / "stores").glob("*.tar.xz"))


def digest_of(directory):
    """Of all names and contents. The lock may be made by whoever looks."""
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.name not in ("lock", "LOCK"):
            digest.update(f"{path.relative_to(directory)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


class UpgradeTest(unittest.TestCase):
    def unpack(self, store):
        temporary = tempfile.TemporaryDirectory(prefix="orrery-upgrade-")
        self.addCleanup(temporary.cleanup)
        room = pathlib.Path(temporary.name)
        with tarfile.open(store) as archive:
            archive.extractall(room)
        return room / "data", json.loads((room / "expected.json").read_text())

    def changes_after(self, client, container, range_id, etag):
        answer = client.request("GET", f"/dbs/d/colls/{container}/docs", None, {
            "A-IM": "Incremental feed", "x-ms-documentdb-partitionkeyrangeid": range_id, "If-None-Match": etag})
        self.assertIn(answer.status, (200, 304), answer)
        return [document["id"] for document in answer.json["Documents"]] if answer.status == 200 else []

    def check_container(self, client, name, expected):
        path = f"/dbs/d/colls/{name}"
        found = client.all_of(f"{path}/docs", "Documents")[0]
        self.assertEqual(sorted(found, key=lambda document: int(document["id"])), expected["documents"])
        some = expected["documents"][0]
        read = client.get(f"{path}/docs/{some['id']}", wire.key_header([some["pk"]])).expect(200)
        self.assertEqual(read.json, some)
        for range_id, etag in expected["etags"].items():
            self.assertEqual(self.changes_after(client, name, range_id, etag), [], "nothing has changed")
        new = {"id": "1000", "pk": "k1", "n": 1, "email": "new@example"}
        client.post(f"{path}/docs", new, wire.key_header(["k1"])).expect(201)
        shown = [each for range_id, etag in expected["etags"].items()
                 for each in self.changes_after(client, name, range_id, etag)]
        self.assertEqual(shown, ["1000"], "positions of before go on")

    def test_a_store_of_every_earlier_version_is_taken_over(self):
        self.assertTrue(STORES)
        for store in STORES:
            with self.subTest(store=store.name):
                data, expected = self.unpack(store)
                with launcher.Server(data_dir=data, log_path=data.parent / "log") as server:
                    for _ in range(2):
                        server.start()
                        with server.client() as client:
                            if not client.get("/dbs/d/colls/plain/docs/1000", wire.key_header(["k1"])).status == 200:
                                for name, each in expected.items():
                                    self.check_container(client, name, each)
                            double = {"id": "1001", "pk": "k1", "email": "new@example"}
                            client.post("/dbs/d/colls/unique/docs", double, wire.key_header(["k1"])).expect(409)
                        checked = subprocess.run([BINARY, "check"], env=program.clean_environment({"ORRERY_ENDPOINT": server.endpoint.url}),
                                                 text=True, capture_output=True, timeout=commands.PATIENCE)
                        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
                        server.stop()

    def test_a_later_format_is_refused_untouched(self):
        data, _ = self.unpack(STORES[-1])
        (data / "format").write_text("orrery store format 3\n")
        before = digest_of(data)
        refused = subprocess.run([BINARY, "serve", "--data-dir", data, "--listen", "127.0.0.1:0"], env=program.clean_environment(),
                                 text=True, capture_output=True, timeout=commands.PATIENCE)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("holds 'orrery store format 3'", refused.stderr)
        self.assertEqual(digest_of(data), before)


if __name__ == "__main__":
    unittest.main()
