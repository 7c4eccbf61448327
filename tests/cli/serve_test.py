"""`orrery serve` and its surroundings: the start block, keys, the data directory, what it leaves behind."""

import base64
import fcntl
import os
import pathlib
import pty
import re
import shlex
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import termios
import unittest

import commands
from commands import Command, wait_until
from harness import program

KEY = base64.b64encode(b"k" * 64).decode()


class ServeTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="orrery-cli-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.temporary = self.directory / "tmp"
        self.temporary.mkdir()
        self.environment = program.clean_environment({
            "TMPDIR": str(self.temporary), "XDG_CACHE_HOME": str(self.directory / "cache")})

    def start(self, *arguments):
        arguments = ("serve", *arguments)
        if "--listen" not in arguments:
            arguments += ("--listen", "127.0.0.1:0")
        server = Command(self.environment, arguments)
        self.addCleanup(server.close)
        wait_until(lambda: any("connection" in line for line in server.lines) or not server.alive(), "the start")
        self.assertTrue(server.alive(), server.errors)
        return server

    def refused(self, *arguments):
        """The message of a server that refuses to start."""
        listen = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")
        done = subprocess.run([commands.BINARY, "serve", *listen, *map(str, arguments)],
                              env=self.environment, text=True, capture_output=True, cwd=self.directory,
                              stdin=subprocess.DEVNULL, timeout=commands.PATIENCE)
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def ephemeral_directories(self):
        return list(self.temporary.glob("orrery-*"))

    # ── the service manager ──

    def test_systemd_is_told_when_it_is_ready_and_when_it_stops(self):
        for name in (str(self.directory / "notify"), f"\0orrery-{os.getpid()}"):
            with self.subTest(name=name), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.bind(name)
                manager.settimeout(commands.PATIENCE)
                self.environment["NOTIFY_SOCKET"] = name.replace("\0", "@")
                server = self.start("--ephemeral")
                self.assertEqual(manager.recv(100), b"READY=1")
                server.stop()
                self.assertEqual(manager.recv(100), b"STOPPING=1")

    # ── the start block ──

    def test_the_start_block_names_the_explorer(self):
        server = self.start("--ephemeral")
        port = re.search(r"endpoint +http://127\.0\.0\.1:(\d+)/", "\n".join(server.lines))[1]
        self.assertIn(f"  explorer    http://127.0.0.1:{port}/_explorer/", server.lines)

    # ── keys ──

    def test_the_refusal_to_listen_beyond_loopback_can_be_followed_as_it_stands(self):
        code, said = self.refused("--ephemeral", "--listen", "0.0.0.0:0")
        self.assertEqual(code, 2)
        command = next(line for line in said.splitlines() if line.startswith("  orrery keygen"))
        subprocess.run([commands.BINARY, *shlex.split(command)[1:]], cwd=self.directory, check=True)
        options = re.search(r"add (--key-file \S+);", said)[1].split()
        server = self.start("--ephemeral", "--listen", "0.0.0.0:0", options[0], str(self.directory / options[1]))
        self.assertEqual([line for line in server.errors if "warning" in line], [])

    def test_a_key_that_is_broken_over_two_lines_is_not_two_keys(self):
        text = base64.b64encode(os.urandom(64)).decode()
        (self.directory / "keys").write_text(f"{text[:64]}\n{text[64:]}\n")
        code, said = self.refused("--ephemeral", "--key-file", self.directory / "keys")
        self.assertEqual(code, 2)
        self.assertIn("lines 1 to 2", said)
        code, said = self.refused("--ephemeral", "--key", f"{text[:64]}\n{text[64:]}")
        self.assertEqual(code, 2)
        self.assertIn("one line", said)

    def test_short_keys_are_refused(self):
        for option in ("--key", "--read-only-key"):
            code, said = self.refused("--ephemeral", option, base64.b64encode(b"k" * 31).decode())
            self.assertEqual(code, 2)
            self.assertIn("32 bytes or more, and this has 31", said)
        self.start("--ephemeral", "--key", base64.b64encode(b"k" * 32).decode())

    def test_a_key_that_everybody_can_see_is_told_once(self):
        server = self.start("--ephemeral", "--key", KEY)
        self.assertEqual(len([line for line in server.errors if "list of processes" in line]), 1)
        self.environment["ORRERY_KEY"] = KEY
        self.assertEqual(self.start("--ephemeral").errors, [])
        del self.environment["ORRERY_KEY"]
        (self.directory / "key").write_text(KEY)
        (self.directory / "key").chmod(0o644)
        server = self.start("--ephemeral", "--key-file", str(self.directory / "key"))
        self.assertEqual(len(server.errors), 1, server.errors)
        self.assertIn("chmod 600", server.errors[0])

    # ── the data directory ──

    def test_data_is_its_owners_only(self):
        path = self.directory / "data"
        self.start("--data-dir", str(path)).stop()
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o700)
        path.chmod(0o755)
        server = self.start("--data-dir", str(path))
        self.assertTrue(any("chmod o=" in line for line in server.errors), server.errors)

    def test_a_directory_with_other_files_is_refused(self):
        (self.directory / "thesis.txt").write_text("all of it")
        before = sorted(self.directory.iterdir())
        code, said = self.refused("--data-dir", self.directory)
        self.assertEqual(code, 1)
        self.assertIn("thesis.txt", said)
        self.assertEqual(sorted(self.directory.iterdir()), before)

    # ── what an ephemeral server leaves ──

    def test_signals_leave_nothing_behind(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.start("--ephemeral")
            self.assertEqual(len(self.ephemeral_directories()), 1)
            self.assertEqual(server.stop(number), 0, (number, server.errors))
            self.assertEqual(self.ephemeral_directories(), [])

    def test_it_ends_with_its_terminal(self):
        main, terminal = pty.openpty()
        server = subprocess.Popen([commands.BINARY, "serve", "--ephemeral", "--listen", "127.0.0.1:0"],
                                  env=self.environment, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True, start_new_session=True,
                                  preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        try:
            os.close(terminal)
            self.assertTrue(any("connection" in line for line in iter(server.stdout.readline, "")))
            os.close(main)
            self.assertEqual(server.wait(commands.PATIENCE), 0)
            self.assertEqual(self.ephemeral_directories(), [])
        finally:
            server.kill()
            server.wait()
            server.stdout.close()

    def test_under_nohup_it_goes_on(self):
        ignoring = subprocess.Popen(["nohup", commands.BINARY, "serve", "--ephemeral", "--listen", "127.0.0.1:0"],
                                    env=self.environment, text=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.assertTrue(any("connection" in line for line in iter(ignoring.stdout.readline, "")))
            ignoring.send_signal(signal.SIGHUP)
            ignoring.send_signal(signal.SIGTERM)
            # SIGTERM is what ends it: both come before the end, and it is told of one only.
            self.assertEqual(ignoring.wait(commands.PATIENCE), 0)
        finally:
            ignoring.kill()
            ignoring.wait()
            ignoring.stdout.close()

    def test_what_a_killed_server_leaves_goes_with_the_next(self):
        killed, running = self.start("--ephemeral"), self.start("--ephemeral")
        killed.kill()
        self.assertEqual(len(self.ephemeral_directories()), 2)
        for directory in self.ephemeral_directories():
            os.utime(directory / "lock", (1_700_000_000, 1_700_000_000))
        self.start("--ephemeral")
        self.assertEqual(len(self.ephemeral_directories()), 2)
        self.assertTrue(running.alive())

    def test_ephemeral_servers_share_a_certificate(self):
        certificates = set()
        for _ in range(2):
            server = self.start("--ephemeral")
            port = re.search(r"https://127\.0\.0\.1:(\d+)/", "\n".join(server.lines))[1]
            certificates.add(ssl.get_server_certificate(("127.0.0.1", int(port))))
            server.stop()
        self.assertEqual(len(certificates), 1)
        self.assertEqual(stat.S_IMODE(os.stat(self.directory / "cache" / "orrery").st_mode), 0o700)


if __name__ == "__main__":
    unittest.main()
