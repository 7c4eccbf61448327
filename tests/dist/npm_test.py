#!/usr/bin/env python3
"""The npm package, installed from its file in a clean directory, without a registry.

    npm_test.py

ORRERY_DIST is the directory of `make dist`. Wants node and npm. Standard library only.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import products
from harness import program, wire
from harness.waiting import wait_until
from products import Scratch, check_run, need

START_SECONDS_MAX = 30.0
END_SECONDS_MAX = 30.0
ENDPOINT = re.compile(r"^  endpoint +(http://\S+)")

# Starts a server, says where it is, and stops it when its standard input ends.
STARTER = """
const { start } = require("orrery");
(async () => {
  const server = await start(JSON.parse(process.argv[2] ?? "{}"));
  console.log(JSON.stringify({ endpoint: server.endpoint, key: server.key, pid: server.pid,
                               connectionString: server.connectionString }));
  process.stdin.resume();
  process.stdin.on("end", async () => {
    await server.stop();
    await server.stop();
    console.log("stopped");
  });
})().catch((error) => { console.error(error.message); process.exit(3); });
"""
# As before, and ends without stopping it.
FORGETFUL = """
import { start } from "orrery";
const server = await start();
console.log(JSON.stringify({ pid: server.pid }));
"""


def is_running(pid):
    """Not so of one whose parent has not yet taken notice of its end."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def end_group(pid):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


class NpmTest(Scratch):
    @classmethod
    def setUpClass(cls):
        need("node", "npm", "npx")
        super().setUpClass()
        cls.file = products.product(f"orrery-{products.version()}.tgz")
        cls.project = cls.scratch / "project"
        cls.project.mkdir()
        home = cls.scratch / "home"
        home.mkdir()
        (home / "npmrc").touch()
        # Nothing of this machine's npm: no cache, no settings, no registry.
        own = {name: value for name, value in program.clean_environment().items()
               if not name.lower().startswith("npm_")}
        cls.environment = own | {"HOME": str(home), "npm_config_userconfig": str(home / "npmrc"),
                                 "npm_config_cache": str(home / "cache"), "npm_config_offline": "true",
                                 "npm_config_update_notifier": "false", "TMPDIR": str(cls.scratch)}
        check_run("npm", "init", "--yes", cwd=cls.project, env=cls.environment)
        check_run("npm", "install", "--offline", "--no-audit", "--no-fund", cls.file,
                  cwd=cls.project, env=cls.environment)
        cls.package = cls.project / "node_modules" / "orrery"
        (cls.project / "starter.js").write_text(STARTER)
        (cls.project / "forgetful.mjs").write_text(FORGETFUL)

    def run_npx(self, *words):
        return products.run("npx", "--no-install", "orrery", *words, cwd=self.project, env=self.environment)

    def start(self, *words, **settings):
        """A command in the project that goes on. Its own directory is this process's: Program has none of its own."""
        here = os.getcwd()
        os.chdir(self.project)
        try:
            # With a group of its own, so that after a failure nothing is left that holds its output open.
            started = program.Program(["setsid", *words], self.environment, **settings)
        finally:
            os.chdir(here)
        self.addCleanup(started.close)
        self.addCleanup(end_group, started.process.pid)
        return started

    def first_line(self, started, matches=lambda line: True):
        wait_until(lambda: any(map(matches, started.lines)) or not started.alive(), START_SECONDS_MAX,
                   "it says where it is")
        found = next(filter(matches, started.lines), None)
        self.assertIsNotNone(found, started.report())
        return found

    def start_by_node(self, options=None):
        started = self.start("node", "starter.js", json.dumps(options or {}), stdin=subprocess.PIPE)
        return started, json.loads(self.first_line(started))

    def assert_gone(self, pid):
        wait_until(lambda: not is_running(pid), END_SECONDS_MAX, "the server has ended")

    # ── The package ───────────────────────────────────────────────────────────────────────────

    def test_it_is_named_as_it_should_be(self):
        described = json.loads((self.package / "package.json").read_text())
        self.assertEqual((described["name"], described["version"]), ("orrery", products.version()))
        self.assertNotIn("scripts", described)
        self.assertNotIn("dependencies", described)
        self.assertEqual((described["os"], described["cpu"]), (["linux"], ["x64"]))

    def test_it_has_declarations_for_typescript(self):
        described = json.loads((self.package / "package.json").read_text())
        self.assertEqual(described["exports"]["."]["types"], f"./{described['types']}")
        declared = (self.package / described["types"]).read_text()
        exported = check_run("node", "-p", 'Object.keys(require("orrery")).join()',
                             cwd=self.project, env=self.environment)
        for name in exported.strip().split(","):
            self.assertRegex(declared, rf"export function {name}\b")
        self.assertIn("stop(): Promise<void>", declared)

    def test_it_carries_the_portable_tree(self):
        for row in products.manifest():
            self.assertTrue((self.package / "portable" / row.path).exists(), row.path)
            self.assertTrue((self.package / "portable" / row.licence).exists(), row.licence)

    def test_owners_times_and_order_are_nobodys(self):
        entries = products.files_of(self.file)
        self.assertEqual(len({entry.mtime for entry in entries}), 1)
        self.assertEqual({(entry.uid, entry.gid) for entry in entries}, {(0, 0)})

    # ── npx ───────────────────────────────────────────────────────────────────────────────────

    def test_npx_says_the_version(self):
        done = self.run_npx("--version")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(products.version(), done.stdout)

    def test_npx_has_the_programs_exit_status(self):
        self.assertEqual(self.run_npx("no-such-command").returncode, 2)

    def test_npx_alone_starts_a_server_that_ends_with_it(self):
        # The port that it takes may be somebody else's here.
        self.environment["ORRERY_LISTEN"] = "127.0.0.1:0"
        self.addCleanup(self.environment.pop, "ORRERY_LISTEN")
        started = self.start("npx", "--no-install", "orrery")
        endpoint = ENDPOINT.match(self.first_line(started, ENDPOINT.match))[1]
        with wire.Client(wire.Endpoint(endpoint)) as client:
            products.write_and_read(client)
        started.stop(signal.SIGTERM)
        wait_until(lambda: not self.answers(endpoint), END_SECONDS_MAX, "the server has ended")

    def answers(self, endpoint):
        try:
            with wire.Client(wire.Endpoint(endpoint)) as client:
                return client.get("/_health", signed=False).status == 200
        except wire.NoAnswer:
            return False

    # ── In a program ──────────────────────────────────────────────────────────────────────────

    def test_start_gives_a_server_that_answers_and_stop_ends_it(self):
        started, server = self.start_by_node()
        self.assertEqual(server["connectionString"],
                         f"AccountEndpoint={server['endpoint']};AccountKey={server['key']};")
        with wire.Client(wire.Endpoint(server["endpoint"], server["key"])) as client:
            products.write_and_read(client)
        self.assertTrue(is_running(server["pid"]))
        started.process.stdin.close()
        self.assertEqual(started.wait(), 0)
        self.assertEqual(started.lines[1:], ["stopped"])
        self.assertFalse(is_running(server["pid"]))

    def test_data_and_key_of_ones_own(self):
        key = check_run(self.package / "portable" / "orrery", "keygen").strip()
        options = {"dataDir": str(self.scratch / "data"), "key": key}
        for expected in (201, 409):
            started, server = self.start_by_node(options)
            self.assertEqual(server["key"], key)
            with wire.Client(wire.Endpoint(server["endpoint"], key)) as client:
                client.post("/dbs", {"id": "kept"}).expect(expected)
            started.process.stdin.close()
            self.assertEqual(started.wait(), 0)

    def test_it_says_why_it_cannot_start(self):
        started = self.start("node", "starter.js", json.dumps({"args": ["--no-such-option"]}))
        self.assertEqual(started.wait(), 3)
        self.assertIn("--no-such-option", "\n".join(started.errors))

    def test_a_program_that_ends_takes_its_server_with_it(self):
        started = self.start("node", "forgetful.mjs")
        self.assertEqual(started.wait(), 0)
        self.assert_gone(json.loads(started.lines[0])["pid"])

    def test_a_program_that_is_killed_takes_its_server_with_it(self):
        started, server = self.start_by_node()
        started.kill()
        self.assert_gone(server["pid"])

    def test_a_command_that_is_killed_takes_its_server_with_it(self):
        started = self.start("node", self.package / "bin" / "orrery.js",
                             "serve", "--ephemeral", "--listen", "127.0.0.1:0")
        endpoint = ENDPOINT.match(self.first_line(started, ENDPOINT.match))[1]
        started.kill()
        wait_until(lambda: not self.answers(endpoint), END_SECONDS_MAX, "the server has ended")


if __name__ == "__main__":
    unittest.main()
