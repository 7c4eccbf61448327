"""`orrery leases`: look at a group of processors from outside, and move it."""

import json
import os
import pty
import re
import subprocess
import time
import unittest

import commands
from commands import MANY_RANGES, wait_until


class LeasesTest(commands.CommandLineTest):
    def leases(self, what, container, *arguments, stdin=None, code=0):
        """Its output; with another exit code than 0, its error message."""
        done = self.run_command("leases", what, container.name, *self.place(arguments), *arguments,
                                stdin=stdin)
        self.assertEqual(done.returncode, code, done)
        return done.stdout if code == 0 or done.stdout else done.stderr

    def group(self, count=4, **options):
        """A container that was processed to its end, and nobody at work."""
        container = self.container(**options)
        container.fill(count)
        self.assertEqual(self.process(container, "--exec", "cat > /dev/null").returncode, 0)
        return container

    def deliver(self, container):
        """The ids that a processor gets now, in order."""
        self.path("out").unlink(missing_ok=True)
        done = self.process(container, "--exec", self.append_to("out"))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.ids("out")

    # ── looking ──

    def test_status_for_people_and_programs(self):
        container = self.group()
        container.write("new", text="x" * 1000)
        lines = self.leases("status", container).splitlines()
        self.assertEqual(lines[0].split(), ["LEASE", "OWNER", "POSITION", "RENEWED", "EPOCH",
                                            "PENDING", "BYTES", "AGE"])
        self.assertRegex(lines[1], r"^0 +nobody +\d+ +\d+ s ago +\d+ +1 +1\d\d\d +\d+ s$")
        self.assertEqual(lines[2], "1 lease, 1 document pending")
        status = self.status(container)
        lease, = status["leases"]
        self.assertEqual((status["paused"], lease["lease"], lease["owner"],
                          lease["pendingDocuments"]), (False, "0", None, 1))
        self.assertGreater(lease["pendingBytes"], 1000)
        self.assertRegex(lease["renewed"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_status_shows_owners_and_all_ranges(self):
        container = self.container(headers=MANY_RANGES)
        running = self.start_process(container, "--host", "me", "--exec", "cat > /dev/null")
        wait_until(lambda: {lease["owner"] for lease in self.status(container)["leases"]} == {"me"},
                   "all leases have an owner")
        self.assertEqual(len(self.status(container)["leases"]), container.range_count())
        self.assertEqual(running.stop(), 0)

    def test_watch_draws_on_a_terminal_only(self):
        container = self.group()
        self.assertIn("terminal", self.leases("status", container, "--watch", code=2))
        main, terminal = pty.openpty()
        with subprocess.Popen([commands.BINARY, "leases", "status", container.name, "--watch",
                               "--state", str(self.path("state"))], env=self.environment,
                              stdin=terminal, stdout=terminal, stderr=terminal) as process:
            os.close(terminal)
            shown = b""
            while shown.count(b" pending") < 2:  # It was drawn again.
                shown += os.read(main, 4096)
            process.terminate()
            try:
                while os.read(main, 4096):
                    pass
            except OSError:
                pass  # The last one has closed it.
            self.assertEqual(process.wait(commands.PATIENCE), 0)
        os.close(main)

    def test_groups_are_apart(self):
        container = self.group()
        other = self.process(container, "--group", "other", "--exec", self.append_to("other"))
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertEqual(len(self.ids("other")), 4)
        self.assertIn("no leases of the group 'third'",
                      self.leases("status", container, "--group", "third"))
        self.assertIn("no leases of the group 'third'",
                      self.leases("pause", container, "--group", "third", code=1))

    def test_the_default_place_is_in_the_home_directory(self):
        container = self.container()
        container.fill(2)
        done = self.run_command("process", container.name, "--from", "beginning",
                                "--until-caught-up", *commands.QUICK, "--exec", "cat > /dev/null")
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = self.run_command("leases", "status", container.name)
        self.assertIn("1 lease, 0 documents pending", shown.stdout)
        place = self.path("state-home") / "orrery" / "leases" / f"127.0.0.1_{self.server.port}"
        self.assertTrue(list(place.glob("*.json")))

    # ── moving ──

    def test_pause_stops_batches_and_resume_goes_on(self):
        container = self.container()
        container.write("first")
        running = self.start_process(container, "--exec", self.append_to("out"))
        wait_until(lambda: self.ids("out") == ["first"], "the first document")
        self.assertIn("paused", self.leases("pause", container))
        self.assertIn("PAUSED", self.leases("status", container))
        # One renew interval later nothing begins any more. Two renewals are more than that.
        renewed = [self.renewal(container)]
        while len(renewed) < 3:
            wait_until(lambda: self.renewal(container) != renewed[-1], "a renewal")
            renewed.append(self.renewal(container))
        container.write("meanwhile")
        renewed.append(self.renewal(container))
        wait_until(lambda: self.renewal(container) != renewed[-1], "a renewal")
        self.assertEqual(self.ids("out"), ["first"])
        self.assertEqual(self.status(container)["leases"][0]["pendingDocuments"], 1)
        self.assertTrue(any("paused" in line for line in running.errors), running.errors)
        self.leases("resume", container)
        wait_until(lambda: self.ids("out") == ["first", "meanwhile"], "the other document")
        self.assertEqual(running.stop(), 0)

    def lease_file(self, container):
        """The file of the only lease. Names of files are ids, percent-encoded."""
        found, = [path for path in self.path("state").glob("*.json") if "%2E%2E" in path.name]
        return found

    def renewal(self, container):
        """The text of the lease: it changes with every write."""
        return self.lease_file(container).read_text()

    def test_reset_to_a_time_delivers_exactly_what_is_newer(self):
        container = self.container()
        container.fill(3, "old")
        last = max(document["_ts"] for document in container.documents())
        wait_until(lambda: time.time() >= last + 1.05, "another second")
        new = container.fill(3, "new")
        self.assertEqual(len(self.deliver(container)), 6)
        self.assertEqual(self.deliver(container), [])
        self.leases("reset", container, "--to", commands.utc(last))
        self.assertEqual(self.deliver(container), new)
        self.leases("reset", container, "--to", "beginning")
        self.assertEqual(len(self.deliver(container)), 6)
        container.write("skipped")
        self.leases("reset", container, "--to", "now")
        self.assertEqual(self.deliver(container), [])

    def test_reset_to_a_position_of_one_lease(self):
        container = self.group()
        position = self.status(container)["leases"][0]["position"]
        new = container.fill(2, "new")
        self.assertEqual(self.deliver(container), new)
        self.leases("reset", container, "--to", position, "--lease", "0")
        self.assertEqual(self.deliver(container), new)
        self.assertIn("no lease '9'", self.leases("reset", container, "--to", "now", "--lease",
                                                  "9", code=1))
        self.assertIn("no position", self.leases("reset", container, "--to", "x", code=2))

    def test_positions_are_not_moved_under_hosts_at_work(self):
        container = self.container()
        running = self.start_process(container, "--host", "busy", "--exec", self.append_to("out"))
        container.write("a")
        wait_until(lambda: self.ids("out") == ["a"], "the document")
        snapshot = self.leases("snapshot", container)
        for refusal in (self.leases("reset", container, "--to", "beginning", code=1),
                        self.leases("restore", container, stdin=snapshot, code=1)):
            self.assertEqual(len(refusal.splitlines()), 1, refusal)
            self.assertIn("'busy' owns the lease '0'", refusal)
            self.assertIn(f"orrery leases pause {container.name}", refusal)
        # Paused, it is allowed; the host gets everything again.
        self.leases("pause", container)
        self.leases("reset", container, "--to", "beginning")
        self.leases("resume", container)
        wait_until(lambda: self.ids("out") == ["a", "a"], "the document, again")
        self.assertEqual(running.stop(), 0)

    def test_snapshot_and_restore(self):
        container = self.group(headers=MANY_RANGES)
        snapshot = self.leases("snapshot", container)
        new = container.fill(6, "new")
        self.assertEqual(sorted(self.deliver(container)), new)
        self.leases("restore", container, stdin=snapshot)
        self.assertEqual(sorted(self.deliver(container)), new)
        self.assertIn("no snapshot", self.leases("restore", container, stdin="{}", code=1))
        other = self.container("other")
        self.process(other, "--exec", "cat > /dev/null")
        self.assertIn("another container", self.leases("restore", other, stdin=snapshot, code=1))

    def test_release_takes_leases_from_a_host_that_is_gone(self):
        container = self.container()
        running = self.start_process(container, "--host", "gone", "--exec", "cat > /dev/null")
        owner = lambda: [lease["owner"] for lease in self.status(container)["leases"]]
        wait_until(lambda: owner() == ["gone"], "an owner")
        running.kill()
        self.assertIn("0 leases of", self.leases("release", container, "--host", "somebody"))
        self.assertEqual(owner(), ["gone"])
        self.assertIn("1 lease of", self.leases("release", container, "--host", "gone"))
        self.assertEqual(owner(), [None])

    # ── the doctor ──

    def test_the_doctor_finds_nothing(self):
        container = self.container()
        running = self.start_process(container, "--exec", "cat > /dev/null")
        wait_until(lambda: [lease for lease in self.status(container)["leases"] if lease["owner"]],
                   "an owner")
        self.assertIn("nothing is wrong", self.leases("doctor", container))
        self.assertEqual(running.stop(), 0)

    def test_the_doctor_finds_a_deleted_lease(self):
        container = self.group()
        self.lease_file(container).unlink()
        self.assertIn("no leases", self.leases("doctor", container, code=1))
        several = self.group(name="several", headers=MANY_RANGES)
        lease = self.status(several)["leases"][1]
        found, = [path for path in self.path("state").glob("*.json")
                  if f'"id":"{lease["id"]}"' in path.read_text()]
        found.unlink()
        self.assertIn("critical: no lease covers the keys",
                      self.leases("doctor", several, code=1))

    def age(self, path, seconds):
        """As if a document had been written so long ago. Before it there is its version and time."""
        text = path.read_text()
        path.write_text(re.sub(r"^(\d+) (\d+)", lambda match: f"{match[1]} "
                               f"{int(match[2]) - seconds}", text))

    def test_the_doctor_finds_a_dead_owner(self):
        container = self.container()
        running = self.start_process(container, "--host", "dead", "--exec", "cat > /dev/null")
        wait_until(lambda: [lease for lease in self.status(container)["leases"] if lease["owner"]],
                   "an owner")
        running.kill()
        self.age(self.lease_file(container), 300)
        self.assertRegex(self.leases("doctor", container, code=1),
                         "error: the owner of the lease '0', host 'dead', has not renewed it for "
                         r"30\d seconds")

    def test_the_doctor_finds_a_lock_that_stayed(self):
        container = self.group()
        lease = self.lease_file(container)
        group = lease.name.partition("%2E%2E")[0]
        lock = self.path("state") / f"{group}%2Elock.json"
        lock_id = json.loads(lease.read_text().partition("\n")[2])["id"].partition("..")[0] + ".lock"
        lock.write_text(f"1 {int(time.time()) - 300}\n" + json.dumps({"id": lock_id, "ttl": 30}))
        self.assertIn("has died", self.leases("doctor", container, code=1))

    # ── wrong options ──

    def test_what_is_not_there_is_said_in_one_line(self):
        name = self.container().name
        for arguments, code, words in (
                (("status", "no/where"), 1, "there is no container no/where"),
                (("status", name, "--leases", f"{self.database}/none"), 1, "no container"),
                (("pause", name, "--state", self.path("nothing")), 1, "no host has ever run"),
                (("status", "nowhere"), 2, "DATABASE/CONTAINER")):
            done = self.run_command("leases", *arguments)
            self.assertEqual(done.returncode, code, done)
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
        # A doctor who can't see the patient says so.
        self.assertEqual(self.run_command("leases", "doctor", "no/where").returncode, 3)
        self.assertEqual(self.run_command("leases", "status", name, "--leases", "a/b", "--state",
                                          "x").returncode, 2)
        self.assertEqual(self.run_command("leases", "reset", name).returncode, 2)


if __name__ == "__main__":
    unittest.main()
