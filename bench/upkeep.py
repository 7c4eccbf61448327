"""The rows of looking after a server: back-ups."""

import os
import random
import shutil
import statistics
import threading

from benchmark import CONTAINER, DATABASE, DOC_BYTES, Harness, Row, spread
from harness import wire
from harness.waiting import wait_until

BACKUP_SECONDS_MAX = 600
WRITERS = 8
KEYS = 1000  # that orrery_load gives its documents


class UpkeepRows(Harness):
    def million_with_backups(self, name):
        """A copy of the million, and an empty directory for back-ups beside it."""
        directory = self.fresh_directory(name)
        data_dir = os.path.join(directory, "data")
        shutil.copytree(self.with_million()["dir"], data_dir)
        return data_dir, os.path.join(directory, "backups")

    @staticmethod
    def backups_of(server, method="GET"):
        with server.connect() as client:
            return client.request(method, "/_orrery/backups").json

    def finish_backup(self, server):
        """Waits for the end of the back-up that is being taken; what was made."""
        wait_until(lambda: self.backups_of(server)["state"] != "running", BACKUP_SECONDS_MAX, "the end of the back-up", pause=0.05)
        answer = self.backups_of(server)
        if answer["state"] != "done":
            raise RuntimeError(f"no back-up was taken: {answer}")
        return answer["made"]

    def write_beside_backup(self):
        """Creates while a first back-up copies everything."""
        data_dir, backups = self.million_with_backups("beside-backup")
        beside, alone, megabytes = [], [], 0
        with self.server(data_dir, "--backup-dir", backups) as server:
            def create(prefix):
                result = self.load("create", server.port, connections=64, seconds=self.seconds, **{"id-prefix": prefix})
                return result["p99_us"] / 1000

            for number in range(self.rounds):
                alone.append(create(f"alone{number}"))
                self.backups_of(server, "POST")
                beside.append(create(f"beside{number}"))
                megabytes = self.finish_backup(server)["newBytes"] / 1e6
                shutil.rmtree(backups)
        ratio = statistics.median(a / b for a, b in zip(beside, alone))
        return Row("write-beside-backup", "≤ 1.5", ratio <= 1.5,
                   f"p99 {spread(beside, 1)} ms beside a back-up of {megabytes:.0f} MB, {spread(alone, 1)} ms alone, "
                   f"creates by 64 connections", ratio)

    def backup_increment(self):
        """Bytes of a back-up after one document in a hundred was replaced, to those of the one before."""
        data_dir, backups = self.million_with_backups("increment")
        with self.server(data_dir, "--backup-dir", backups) as server:
            self.backups_of(server, "POST")
            first = self.finish_backup(server)
            self.replace_some(server, self.million_count // 100)
            self.backups_of(server, "POST")
            second = self.finish_backup(server)
        ratio = second["newBytes"] / first["newBytes"]
        return Row("backup-increment", "≤ 0.05", ratio <= 0.05,
                   f"{second['newBytes'] / 1e6:.1f} MB after 1 % was replaced, {first['newBytes'] / 1e6:.0f} MB at first",
                   ratio)

    def replace_some(self, server, count):
        chosen = random.Random(1).sample(range(self.million_count), count)

        def replace(numbers):
            with server.connect() as client:
                for number in numbers:
                    document = f"doc-{number:010}"
                    path = f"/dbs/{DATABASE}/colls/{CONTAINER}/docs/{document}"
                    key = wire.key_header([f"k{number % KEYS:06}"])
                    body = {"id": document, "pk": f"k{number % KEYS:06}", "text": "y" * (DOC_BYTES - 100)}
                    client.request("PUT", path, body, key).expect(200)

        writers = [threading.Thread(target=replace, args=(chosen[part::WRITERS],)) for part in range(WRITERS)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()


ROWS = {
    "write-beside-backup": UpkeepRows.write_beside_backup,
    "backup-increment": UpkeepRows.backup_increment,
}
