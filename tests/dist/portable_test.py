#!/usr/bin/env python3
"""The portable program: it starts wherever there is a kernel, and carries what it needs and nothing else.

    portable_test.py

ORRERY_DIST is the directory of `make dist`. Wants root for other root directories, mmdebstrap for another release of
Debian. Standard library only.
"""

import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import threading
import time
import unittest
import zlib

import products
from harness import program, retries, server, wire
from harness.waiting import wait_until
from products import Room, RootedServer, Scratch, check_run, need, need_root, run, skip

import contents
import portable

FIRST_ANSWER_SECONDS_MAX = 1.0
NAME_SERVER = "127.9.9.9"  # of this machine, and not where another name server would listen
STRANGE_NSSWITCH = "hosts: mymachines mdns4_minimal [NOTFOUND=return] resolve [!UNAVAIL=return] files myhostname dns\n"
AUTHORITIES = ("etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt",
               "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "etc/ssl/ca-bundle.pem", "etc/ssl/cert.pem")
OTHER_RELEASE = "bullseye"  # its C library is older than the one that we are built with


# ── What is in it ───────────────────────────────────────────────────────────────────────────────────

class TreeTest(Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tree = cls.unpacked(cls.scratch)
        products.unpack(products.product("*-symbols.tar.gz"), cls.scratch / "symbols")
        cls.symbols = cls.scratch / "symbols" / products.folder() / "lib" / portable.SYMBOLS

    def test_it_takes_at_most_forty_megabytes(self):
        size = portable.size_of(self.tree)
        print(f"the portable tree has {size / 1e6:.1f} MB", flush=True)
        self.assertLessEqual(size, 40_000_000)

    def test_the_archive_is_one_folder_of_nobody(self):
        entries = products.files_of(products.portable_archive())
        names = [entry.name for entry in entries]
        self.assertEqual(names[0], products.folder())
        self.assertTrue(all(name.startswith(f"{products.folder()}/") for name in names[1:]))
        self.assertEqual({(entry.uid, entry.gid) for entry in entries}, {(0, 0)})
        self.assertEqual(len({entry.mtime for entry in entries}), 1)
        self.assertEqual({oct(entry.mode) for entry in entries if entry.isdir()}, {"0o755"})

    def test_the_libraries_are_those_that_it_needs(self):
        found = portable.resolve_in_tree(self.tree)
        library = self.tree.resolve() / "lib"
        self.assertEqual({pathlib.Path(path).parent for path in found.values()}, {library})
        carried = {path.name for path in library.iterdir() if ".so" in path.name}
        self.assertEqual(carried, set(found) | {portable.LOADER})

    def test_each_file_is_in_the_list_with_its_licence(self):
        rows = portable.read_manifest(self.tree)
        listed = {row.path for row in rows if row.kind == "file"}
        there = {path.relative_to(self.tree).as_posix() for path in self.tree.rglob("*") if path.is_file()}
        licences = {path for path in there if path.startswith("licenses/")}
        self.assertEqual(listed, there - licences - {"lib/MANIFEST", "LICENSE"})
        for row in rows:
            self.assertGreater((self.tree / row.licence).stat().st_size, 500, row)
        self.assertEqual({row.licence for row in rows} - {"LICENSE"},
                         {path for path in licences if "/common/" not in path})

    def test_licences_that_others_refer_to_are_there(self):
        for path in (self.tree / "licenses").iterdir():
            if path.is_file() and path.suffix != ".gz":
                for name in contents.common_licenses(path.read_text(errors="replace")):
                    self.assertTrue((self.tree / "licenses" / "common" / name).exists(), f"{path.name}: {name}")

    def test_the_libraries_linked_in_are_in_the_list(self):
        packages = {row.package for row in portable.read_manifest(self.tree) if row.path == "lib/orrery"}
        for name in ("librocksdb-dev", "libsnappy-dev", "libjemalloc-dev", "libcurl4-openssl-dev", "libboost1.81-dev"):
            self.assertIn(name, packages)

    def test_the_symbols_are_those_of_the_program(self):
        self.assertEqual(build_id(self.symbols), build_id(self.tree / "lib" / "orrery"))
        link = bytes(contents.sections(self.tree / "lib" / "orrery", [".gnu_debuglink"])[".gnu_debuglink"])
        self.assertEqual(link.split(b"\0")[0].decode(), portable.SYMBOLS)
        self.assertEqual(struct.unpack("<I", link[-4:])[0], zlib.crc32(self.symbols.read_bytes()))

    def test_the_symbols_have_names_and_lines_for_the_program(self):
        function = "orrery::cli::run_command_line"
        address = next(line.split()[0] for line in check_run("nm", "--demangle", self.symbols).splitlines()
                       if f" T {function}(" in line)
        with_symbols = self.scratch / "with-symbols"
        shutil.copytree(self.tree / "lib", with_symbols)
        shutil.copy(self.symbols, with_symbols)
        name, place = check_run("addr2line", "-C", "-f", "-e", with_symbols / "orrery", address).split("\n")[:2]
        self.assertTrue(name.startswith(function), name)
        self.assertRegex(place, r"/src/cli/command_line\.cc:\d+$")


def build_id(file):
    return re.search(r"Build ID: ([0-9a-f]{40})", check_run("readelf", "--notes", file))[1]


# ── How it is started ───────────────────────────────────────────────────────────────────────────────

class StartTest(Scratch):
    """On this machine."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tree = cls.unpacked(cls.scratch / "plain")

    def assert_starts(self, *words, **settings):
        self.assertIn(f"orrery {products.version()}", check_run(*words, "--version", **settings))

    def test_by_its_path(self):
        self.assert_starts(self.tree / "orrery")
        self.assert_starts("./orrery", cwd=self.tree)
        self.assert_starts("../orrery", cwd=self.tree / "lib")

    def test_through_the_search_path(self):
        # By a shell, which searches for itself: Popen would search in this process's path.
        for path in (str(self.tree), "."):
            self.assert_starts("/bin/sh", "-c", 'exec orrery "$0"', env={"PATH": path}, cwd=self.tree)

    def test_through_links(self):
        links = self.scratch / "links"
        (links / "deep").mkdir(parents=True)
        (links / "absolute").symlink_to(self.tree / "orrery")
        (links / "relative").symlink_to(os.path.relpath(self.tree / "orrery", links))
        (links / "deep" / "chain").symlink_to("../relative")
        (links / "directory").symlink_to(self.tree)
        for link in ("absolute", "relative", "deep/chain", "directory/orrery"):
            self.assert_starts(links / link)
        self.assert_starts("./chain", cwd=links / "deep")

    def test_below_a_directory_with_any_name(self):
        for name in ("with spaces and 'quotes'", "with:colons;and$ORIGIN", "größer"):
            with self.subTest(name):
                shutil.copytree(self.tree, self.scratch / name)
                self.assert_starts(self.scratch / name / "orrery")

    def test_in_a_directory_that_is_gone(self):
        gone = self.scratch / "gone"
        gone.mkdir()
        self.assert_starts("/bin/sh", "-c", 'rmdir "$1" && exec "$2" "$3"', "sh", gone, self.tree / "orrery", cwd=gone)

    def test_under_another_name(self):
        done = subprocess.run(["stars", "--version"], executable=self.tree / "orrery", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.split()[:2]), (0, ["orrery", products.version()]), done.stderr)

    def test_libraries_of_the_environment_are_not_taken(self):
        junk = self.scratch / "junk"
        junk.mkdir()
        for name in portable.resolve_in_tree(self.tree):
            (junk / name).write_bytes(b"no library")
        self.assert_starts(self.tree / "orrery", env={"LD_LIBRARY_PATH": str(junk)})

    def test_without_its_directory_lib_it_says_so(self):
        shutil.copy(self.tree / "orrery", self.scratch / "alone")
        done = run(self.scratch / "alone")
        self.assertEqual(done.returncode, 127)
        self.assertIn("has to stay beside the file orrery", done.stderr)

    def test_exit_statuses_are_the_programs_own(self):
        self.assertEqual(run(self.tree / "orrery", "no-such-command").returncode, 2)

    def test_the_process_is_the_program_itself(self):
        with server.Server(binary=self.tree / "orrery") as started:
            started.start()
            pid = started.process.pid
            self.assertEqual(pathlib.Path(f"/proc/{pid}/comm").read_text().strip(), "orrery")
            self.assertEqual(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(), "")
            started.stop()

    def test_handlers_have_the_variables_of_the_machine(self):
        with server.Server(binary=self.tree / "orrery") as started:
            started.start()
            with started.client() as client:
                container = products.write_and_read(client)
                name = f"{container.database.id}/{container.id}"
                for variables, expected in (({}, "none"), ({"LOCPATH": "/mine"}, "/mine")):
                    said = self.scratch / "said"
                    check_run(self.tree / "orrery", "process", name, "--endpoint", started.endpoint.url,
                              "--from", "beginning", "--until-caught-up",
                              "--state", self.scratch / f"state-{expected.strip('/')}",
                              "--exec", f'cat > /dev/null; echo "${{LOCPATH-none}}" > {said}',
                              env=program.clean_environment(variables))
                    self.assertEqual(said.read_text().strip(), expected)

    def test_from_unpacking_to_the_first_answer_it_takes_no_second(self):
        seconds = self.time_to_first_answer("once")
        if seconds > FIRST_ANSWER_SECONDS_MAX:
            retries.report("dist.portable first answer", f"{seconds:.2f} s")
            seconds = self.time_to_first_answer("again")
        print(f"from unpacking to the first answer: {seconds:.2f} s", flush=True)
        self.assertLessEqual(seconds, FIRST_ANSWER_SECONDS_MAX)

    def time_to_first_answer(self, name):
        port = server.free_port()
        request = wire.connect(port).build("GET", "/dbs")
        began = time.monotonic()
        tree = self.unpacked(self.scratch / name)
        with program.Program([tree / "orrery", "serve", "--ephemeral", "--listen", f"127.0.0.1:{port}"],
                             program.clean_environment()) as started:
            wait_until(lambda: not started.alive() or answers(port, request), 30, "the first answer", pause=0.001)
            seconds = time.monotonic() - began
            self.assertTrue(started.alive(), started.report())
            self.assertEqual(started.stop(), 0)
        return seconds


def answers(port, request):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(request)
            return connection.recv(4096).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


# ── Where it runs ───────────────────────────────────────────────────────────────────────────────────

class EmptyRootTest(Scratch):
    """A root directory with the tree and a directory to write to: no loader, no shell, no /proc, /dev, /etc or /tmp."""

    @classmethod
    def setUpClass(cls):
        need_root()
        super().setUpClass()
        cls.root = cls.scratch / "root"
        cls.unpacked(cls.scratch).rename(cls.scratch / "orrery")
        cls.root.mkdir()
        (cls.scratch / "orrery").rename(cls.root / "orrery")
        cls.path = "/orrery/orrery"

    def setUp(self):
        (self.root / "room").mkdir()
        self.addCleanup(self.clear)

    def clear(self):
        for path in self.root.iterdir():
            if path.is_symlink():
                path.unlink()
            elif path.name != "orrery":
                shutil.rmtree(path)

    def put(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def test_the_root_is_empty(self):
        self.assertEqual({path.name for path in self.root.iterdir()}, {"orrery", "room"})

    def test_it_says_its_version(self):
        self.assertIn(products.version(), Room(self.root).check_run(self.path, "--version"))

    def test_each_function_of_each_library_is_there(self):
        self.assertIn(products.version(), Room(self.root, LD_BIND_NOW="1").check_run(self.path, "--version"))

    def test_the_loader_finds_everything_in_the_tree(self):
        said = Room(self.root).check_run(f"/orrery/lib/{portable.LOADER}", "--list", "/orrery/lib/orrery")
        found = dict(portable.RESOLVED.findall(said))
        self.assertGreater(len(found), 10)
        self.assertEqual({os.path.dirname(path) for path in found.values()}, {"/orrery/lib"}, said)

    def test_through_links_where_proc_is_not_mounted(self):
        (self.root / "absolute").symlink_to(self.path)
        (self.root / "room" / "relative").symlink_to("../absolute")
        for path in ("/absolute", "/room/relative", "orrery/orrery", "../../room/../absolute"):
            self.assertIn(products.version(), Room(self.root).check_run(path, "--version"), path)

    def test_it_serves_what_it_forgets(self):
        with RootedServer(self.root, self.path) as started:
            started.start()
            with started.client() as client:
                products.write_and_read(client)
                self.assertEqual(client.breaches, [])
            started.stop()
        self.assertEqual(list((self.root / "room").glob("orrery-*")), [])

    def test_it_serves_what_it_keeps(self):
        with RootedServer(self.root, self.path, data_dir="/room/data") as started:
            started.start()
            with started.client() as client:
                container = products.write_and_read(client)
                client.databases.clear()  # It stays for the next start.
                path = container.doc("vega")
            started.stop()
            self.assertTrue((self.root / "room" / "data" / "format").exists())
            started.start()
            with started.client() as client:
                client.get(path, {wire.KEY: '["a"]'}).expect(200)
                client.delete(container.database.path).expect(204)
            started.stop()

    def test_it_knows_letters_beyond_ascii(self):
        with RootedServer(self.root, self.path) as started:
            started.start()
            with started.client() as client:
                container = products.write_and_read(client)
                self.assertEqual(products.query(container, "SELECT VALUE UPPER('äδж') FROM c"), ["ÄΔЖ"])
            started.stop()

    # ── As a client ───────────────────────────────────────────────────────────────────────────

    def ask(self, started, endpoint):
        """A query by the command in the root directory, of a container of a server there."""
        with started.client() as client:
            container = products.write_and_read(client)
            return Room(self.root, HOME="/room").run(self.path, "query", f"{container.database.id}/{container.id}",
                                                     "SELECT VALUE c.text FROM c", "--endpoint", endpoint)

    def with_name(self):
        """A server that knows itself by a name, too."""
        port = server.free_port()
        return RootedServer(self.root, self.path, "--advertise", f"http://galaxy.example:{port}/", port=port)

    def assert_answers(self, started, endpoint):
        done = self.ask(started, endpoint)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, '"Straße"'), done.stderr)

    def test_it_asks_by_address(self):
        with RootedServer(self.root, self.path) as started:
            started.start()
            self.assert_answers(started, f"http://127.0.0.1:{started.port}/")

    def test_it_finds_names_in_the_file_of_hosts(self):
        self.put("etc/hosts", "127.0.0.1 galaxy.example\n")
        with self.with_name() as started:
            started.start()
            for switch in ("hosts: files dns\n", STRANGE_NSSWITCH):
                self.put("etc/nsswitch.conf", switch)
                self.assert_answers(started, f"http://galaxy.example:{started.port}/")

    def test_it_finds_names_by_a_name_server(self):
        with NameServer("galaxy.example") as names, self.with_name() as started:
            self.put("etc/resolv.conf", f"nameserver {NAME_SERVER}\n")
            self.put("etc/nsswitch.conf", STRANGE_NSSWITCH)
            started.start()
            self.assert_answers(started, f"http://galaxy.example:{started.port}/")
            self.assertGreater(names.questions, 0)

    def test_it_finds_the_authorities_of_every_distribution(self):
        with RootedServer(self.root, self.path) as started:
            started.start()
            certificate = http_get(started.port, "/_explorer/emulator.pem")
            endpoint = f"https://127.0.0.1:{started.port}/"
            refused = self.ask(started, endpoint)
            self.assertEqual(refused.returncode, 1, refused.stdout)
            self.assertIn("certificate", refused.stderr)
            for path in AUTHORITIES:
                with self.subTest(path):
                    self.put(path, certificate)
                    self.assert_answers(started, endpoint)
                    (self.root / path).unlink()


def http_get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200, (path, answer.status)
        return answer.read().decode()
    finally:
        connection.close()


class NameServer(socketserver.ThreadingUDPServer):
    """Says that a name is this machine, over UDP. Other names and kinds of records have no answer."""

    def __init__(self, name):
        self.wanted = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
        self.questions = 0
        super().__init__((NAME_SERVER, 53), None)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def finish_request(self, request, client_address):
        data, connection = request
        self.questions += 1
        end = data.index(b"\0", 12) + 5
        name, kind = data[12:end - 4], data[end - 4:end]
        is_known = (name, kind) == (self.wanted, b"\0\x01\0\x01")
        records = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01" if is_known else b""
        # Identifier, "answer, recursion available", one question, so many answers.
        head = data[:2] + b"\x81\x80\0\x01" + (b"\0\x01" if records else b"\0\0") + b"\0\0\0\0"
        connection.sendto(head + data[12:end] + records, client_address)


class OtherReleaseTest(Scratch):
    """Another release of Debian, whose loader and C library are older than ours."""

    @classmethod
    def setUpClass(cls):
        need_root()
        need("mmdebstrap")
        super().setUpClass()
        cls.root = cls.scratch / "root"
        done = run("mmdebstrap", "--quiet", "--variant=essential", OTHER_RELEASE, cls.root, *mirror())
        if done.returncode != 0:
            skip(f"Debian {OTHER_RELEASE} cannot be fetched: {done.stderr.strip().splitlines()[-1:]}")
        cls.unpacked(cls.scratch).rename(cls.root / "opt" / "orrery")
        (cls.root / "usr/bin/orrery").symlink_to("/opt/orrery/orrery")
        (cls.root / "room").mkdir()

    def test_its_c_library_is_another_one(self):
        said = Room(self.root).check_run("/usr/bin/ldd", "--version").splitlines()[0]
        print(f"the other root has {said}", flush=True)
        self.assertNotIn("2.36", said)

    def test_it_is_found_through_the_search_path(self):
        room = Room(self.root, PATH="/usr/bin:/bin")
        self.assertIn(products.version(), room.check_run("/bin/sh", "-c", "orrery --version"))

    def test_it_serves(self):
        with RootedServer(self.root, "/usr/bin/orrery", data_dir="/room/data") as started:
            started.start()
            with started.client() as client:
                container = products.write_and_read(client)
                self.assertEqual(products.query(container, "SELECT VALUE UPPER('äδж') FROM c"), ["ÄΔЖ"])
            started.process.send_signal(signal.SIGINT)
            self.assertEqual(started.process.wait(server.STOP_SECONDS_MAX), 0)

    def test_handlers_run_with_the_libraries_of_that_release(self):
        with RootedServer(self.root, "/usr/bin/orrery") as started:
            started.start()
            with started.client() as client:
                container = products.write_and_read(client)
                Room(self.root).check_run("/usr/bin/orrery", "process", f"{container.database.id}/{container.id}",
                                          "--endpoint", started.endpoint.url, "--from", "beginning",
                                          "--until-caught-up", "--state", "/room/state", "--exec", "cat > /room/got")
            self.assertIn("vega", (self.root / "room" / "got").read_text())


def mirror():
    """Where this machine has its packages from; without an answer mmdebstrap knows a place."""
    done = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Component: main")
    addresses = [line.strip() for line in done.stdout.splitlines() if line.rstrip("/ ").endswith("/debian")]
    return addresses[:1]


if __name__ == "__main__":
    unittest.main()
