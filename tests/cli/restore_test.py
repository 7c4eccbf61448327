"""`orrery process` over a server whose data directory is put back from a copy: leases from before go on, miss
nothing that is new, and somebody is told."""

import shutil
import subprocess
import unittest

import commands
from harness.server import Server


class RestoreTest(commands.CommandLineTest):
    def setUp(self):
        # A server of its own: it is stopped and put back.
        self.data, self.copied = self.root / "restored", self.root / "restored-copy"
        self.server = Server(data_dir=self.data, log_path=f"{self.data}-log")
        self.server.start()
        self.addCleanup(self.server.kill)
        super().setUp()

    def restart(self, change):
        self.connection.close()
        self.server.stop()
        change()
        self.server.start()

    def copy(self):
        self.restart(lambda: subprocess.run(["cp", "-a", self.data, self.copied], check=True))

    def put_back(self):
        def change():
            shutil.rmtree(self.data)
            subprocess.run(["cp", "-a", self.copied, self.data], check=True)
        self.restart(change)

    def test_leases_of_a_life_that_ended_go_on_and_it_is_told(self):
        for headers in ((), commands.MANY_RANGES):
            with self.subTest(headers=headers):
                name = f"c{len(headers)}"
                container = self.container(name, headers)
                container.fill(10)
                shutil.rmtree(self.copied, ignore_errors=True)
                self.copy()
                container.fill(10, "lost")
                log = ("--exec", self.append_to(f"log-{name}"), "--state", self.path(f"state-{name}"))
                self.assertEqual(self.process(container, *log).returncode, 0)
                self.assertEqual(len(self.ids(f"log-{name}")), 20)
                self.put_back()
                new = container.fill(12, "new")
                run = self.process(container, *log)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(sorted(self.ids(f"log-{name}")[20:]), sorted(new))
                self.assertIn("went back to an earlier state", run.stderr)
                # Only once: the leases are of this life now.
                container.write("later")
                run = self.process(container, *log)
                self.assertEqual(self.ids(f"log-{name}")[32:], ["later"])
                self.assertNotIn("earlier state", run.stderr)


if __name__ == "__main__":
    unittest.main()
