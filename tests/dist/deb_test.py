#!/usr/bin/env python3
"""Installs the Debian packages in a fresh Debian and runs them there.

ORRERY_DIST names the directory with the packages. ORRERY_TEST_ROOTS, if it is set, names one in which the fresh Debian
is kept for the next time. Wants root and mmdebstrap, and for the unit itself systemd-nspawn; without them a line says
what was skipped.
"""

import base64
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]
import deb_root  # noqa: E402
from deb_root import BootedHost, CannotBoot, ChrootHost, check_run, run_in  # noqa: E402
from products import need, product, skip  # noqa: E402
from harness import program, server as launcher, wire  # noqa: E402
from harness.waiting import wait_until  # noqa: E402

CONSUMER = REPOSITORY / "tests" / "package" / "consumer"
COMPILER = "g++-12"
EXPOSURE_MAX = 2.0
PATIENCE = 30.0
# Said by the unit, or on a command line for one start only: not for the config file.
NOT_SETTINGS = {"help", "config", "data-dir", "key-file", "key", "read-only-key", "ephemeral", "new-life",
                "accept-loss", "allow-well-known-key", "no-check-dates"}
# Settings whose lines in the config file are examples, since they have no default.
EXAMPLES = {"advertise", "tls-cert", "tls-key", "backup-dir"}


# ── What there is to test ───────────────────────────────────────────────────────────────────────────

@functools.cache
def deb(name):
    return product(f"{name}_*.deb")


def field(package, name):
    return check_run(["dpkg-deb", "--field", deb(package), name]).strip()


class Scratch:
    """What all tests share: made when it is first asked for, removed at the end."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="orrery-deb-")
        self.place = pathlib.Path(self.temporary.name)
        self.why_no_boot = None  # a reason, once it was tried in vain

    def close(self):
        self.temporary.cleanup()

    @functools.cached_property
    def unpacked(self):
        """The files of orrery."""
        check_run(["dpkg-deb", "--extract", deb("orrery"), self.place / "unpacked"])
        return self.place / "unpacked"

    @functools.cached_property
    def control(self):
        check_run(["dpkg-deb", "--control", deb("orrery"), self.place / "control"])
        return self.place / "control"

    @functools.cached_property
    def development(self):
        """The files of liborrery-dev and of what it depends on."""
        for package in ("liborrery0", "liborrery-dev"):
            check_run(["dpkg-deb", "--extract", deb(package), self.place / "development"])
        return self.place / "development"

    @functools.cached_property
    def installed(self):
        """A Debian with orrery, in which nothing runs."""
        if reason := deb_root.why_no_roots():
            skip(reason)
        root = self.place / "installed"
        deb_root.debian_root(root)
        shutil.copy(deb("orrery"), root / "var" / "tmp")
        run_in(root, "apt-get", "update", "--quiet")
        run_in(root, "apt-get", "install", "--yes", "--quiet", "--no-install-recommends",
               f"/var/tmp/{deb('orrery').name}")
        return root

    def host(self, name, **settings):
        """A Debian of its own with orrery, running, with these settings."""
        root = self.place / name
        check_run(["cp", "--archive", "--reflink=auto", self.installed, root])
        port = launcher.free_port()
        file = root / "etc/orrery/orrery.toml"
        settings = {"listen": f"127.0.0.1:{port}"} | settings
        file.write_text(file.read_text() + "".join(f'{key} = "{value}"\n' for key, value in settings.items()))
        if self.why_no_boot is None:
            try:
                return BootedHost(root, port)
            except CannotBoot as error:
                self.why_no_boot = str(error)
                print(f"skipped: {error}; the server runs by chroot, without its unit", flush=True)
        return ChrootHost(root, port)

    def higher_version(self):
        """The package orrery once more, as its next version."""
        tree, result = self.place / "higher", self.place / "orrery-higher.deb"
        check_run(["dpkg-deb", "--raw-extract", deb("orrery"), tree])
        control = tree / "DEBIAN" / "control"
        control.write_text(re.sub(r"^Version: .*", r"\g<0>+1", control.read_text(), flags=re.MULTILINE))
        check_run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, result])
        return result


scratch = Scratch()
unittest.addModuleCleanup(scratch.close)


# ── The files ───────────────────────────────────────────────────────────────────────────────────────

class ContentsTest(unittest.TestCase):
    """What is in the packages. Needs no root."""

    @property
    def binary(self):
        return scratch.unpacked / "usr/bin/orrery"

    def listing(self, package):
        """Mode and owner of each file."""
        lines = check_run(["dpkg-deb", "--contents", deb(package)]).splitlines()
        return {words[5].lstrip("."): (words[0], words[1]) for words in map(str.split, lines)}

    def config_file(self):
        return (scratch.unpacked / "etc/orrery/orrery.toml").read_text()

    def manual(self):
        return sorted((scratch.unpacked / "usr/share/man/man1").iterdir())

    def serve_options(self):
        words = re.findall(r"^  (?:-\w,)?(--\S+)", check_run([self.binary, "serve", "--help"]), re.MULTILINE)
        return {option.removeprefix("--") for word in words for option in word.split(",")}

    def test_files_are_roots_and_only_the_program_can_be_executed(self):
        for package in ("orrery", "liborrery0", "liborrery-dev"):
            for name, (mode, owner) in self.listing(package).items():
                with self.subTest(name=name):
                    self.assertEqual(owner, "root/root")
                    wanted = {"d": "drwxr-xr-x", "l": "lrwxrwxrwx"}.get(mode[0])
                    self.assertEqual(mode, wanted or ("-rwxr-xr-x" if name == "/usr/bin/orrery" else "-rw-r--r--"))

    def test_the_packages_share_the_version_of_the_program(self):
        versions = {field(package, "Version") for package in ("orrery", "orrery-dbgsym", "liborrery0", "liborrery-dev")}
        self.assertEqual(len(versions), 1)
        self.assertRegex(check_run([self.binary, "--version"]), rf"^orrery {re.escape(versions.pop())}\b")

    def test_the_program_is_stripped_and_its_symbols_are_in_a_package_of_their_own(self):
        sections = check_run(["readelf", "--section-headers", "--wide", self.binary])
        self.assertNotRegex(sections, r"\.debug_info|\.symtab")
        build_id = re.search(r"Build ID: (\w+)", check_run(["readelf", "--notes", self.binary]))[1]
        self.assertIn(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug", self.listing("orrery-dbgsym"))

    def test_the_config_file_is_one_for_dpkg(self):
        self.assertEqual((scratch.control / "conffiles").read_text().split(), ["/etc/orrery/orrery.toml"])

    def test_the_config_file_names_every_setting(self):
        names = re.findall(r"^#([a-z0-9-]+) = ", self.config_file(), re.MULTILINE)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(names), self.serve_options() - NOT_SETTINGS)

    def test_the_config_file_shows_the_defaults(self):
        shown = dict(re.findall(r'^#([a-z0-9-]+) = "?([^"\n]*)"?$', self.config_file(), re.MULTILINE))
        told = re.findall(r"^  --(\S+) .*\[([^]]+)\] \(Env", check_run([self.binary, "serve", "--help"]), re.MULTILINE)
        self.assertGreater(len(told), 10)
        for name, value in told:
            if name not in NOT_SETTINGS:
                self.assertEqual(shown[name], value, name)
        # Another port than that of the default may be free.
        defaults = [line for line in re.findall(r"^#([a-z0-9-]+ = .*)$", self.config_file(), re.MULTILINE)
                    if line.split()[0] not in EXAMPLES | {"listen"}]
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("\n".join(defaults))
            file.flush()
            launcher.started("--config", file.name, binary=str(self.binary)).stop()

    def test_each_command_has_a_man_page(self):
        with tempfile.TemporaryDirectory() as directory:
            check_run([self.binary, "man", "--all", directory])
            wanted = sorted(f"{name}.gz" for name in os.listdir(directory))
        self.assertGreater(len(wanted), 20)
        self.assertEqual([page.name for page in self.manual()], wanted)

    def test_man_pages_render_without_warnings(self):
        need("man")
        for page in self.manual():
            done = subprocess.run(["man", "--warnings", "--encoding=UTF-8", "--local-file", page], text=True,
                                  capture_output=True, env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)
            self.assertIn("NAME", done.stdout)

    def test_completions_load(self):
        files = {"bash": "bash-completion/completions/orrery", "zsh": "zsh/vendor-completions/_orrery",
                 "fish": "fish/vendor_completions.d/orrery.fish"}
        for shell, name in files.items():
            with self.subTest(shell=shell):
                need(shell)
                check_run([shell, "-n", scratch.unpacked / "usr/share" / name])
        said = check_run(["bash", "-c", 'source "$0" && complete -p orrery',
                          scratch.unpacked / "usr/share" / files["bash"]])
        self.assertRegex(said, r"^complete .* orrery$")

    def test_programs_want_the_minor_version_of_the_library_that_they_were_linked_with(self):
        with tempfile.TemporaryDirectory() as directory:
            check_run(["dpkg-deb", "--control", deb("liborrery0"), f"{directory}/control"])
            shlibs = pathlib.Path(directory, "control", "shlibs").read_text()
        major, minor = field("orrery", "Version").split(".")[:2]
        self.assertEqual(shlibs.strip(), f"liborrery 0 liborrery0 (>= {major}.{minor}), "
                                         f"liborrery0 (<< {major}.{int(minor) + 1}~)")

    def test_lintian_finds_nothing(self):
        need("lintian")
        check_run(["lintian", "--profile", "debian", "--fail-on", "error,warning", "--allow-root", *map(deb, (
            "orrery", "orrery-dbgsym", "liborrery0", "liborrery-dev"))])


# ── The SDK ─────────────────────────────────────────────────────────────────────────────────────────

class DevelopmentTest(unittest.TestCase):
    """Programs are built with liborrery-dev, in each of its ways, and talk to the packaged server."""

    @classmethod
    def setUpClass(cls):
        need(COMPILER, "pkg-config", "cmake")
        cls.work = scratch.place / "programs"
        cls.work.mkdir()
        cls.libraries = next(scratch.development.rglob("liborrery.so")).parent
        cls.environment = program.clean_environment({"PKG_CONFIG_PATH": str(cls.libraries / "pkgconfig"),
                                                     "LD_LIBRARY_PATH": str(cls.libraries)})
        cls.server = launcher.started(binary=str(scratch.unpacked / "usr/bin/orrery"))
        cls.addClassCleanup(cls.server.stop)

    def pkg_config(self, *words):
        return check_run(["pkg-config", *words], env=self.environment).split()

    def compile(self, source, name, package):
        result = self.work / name
        check_run([COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", CONSUMER / source, "-o", result,
                   *self.pkg_config("--cflags", "--libs", package)])
        return result

    def run_both(self, sky, follow):
        database = f"sky-{sky.parent.name}-{sky.name}"
        for each, said in ((sky, "2 stars"), (follow, "2 stars processed")):
            words = [each, self.server.endpoint.url, wire.WELL_KNOWN_KEY, database]
            self.assertEqual(check_run(words, env=self.environment).strip(), said)

    def uses_library(self, binary):
        return "liborrery.so.0" in check_run(["readelf", "--dynamic", binary])

    def test_with_pkg_config_and_the_shared_library(self):
        sky, follow = (self.compile(f"{name}.cc", f"{name}-shared", "orrery") for name in ("sky", "follow"))
        self.assertTrue(self.uses_library(follow))
        self.run_both(sky, follow)

    def test_with_pkg_config_and_the_archives(self):
        sky = self.compile("sky.cc", "sky-archive", "orrery-client")
        follow = self.compile("follow.cc", "follow-archive", "orrery-processor")
        self.assertFalse(self.uses_library(follow))
        self.run_both(sky, follow)

    def test_with_cmake(self):
        source, build = self.work / "source", self.work / "cmake"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(f"""
            cmake_minimum_required(VERSION 3.20)
            project(sky LANGUAGES CXX)
            find_package(orrery {field("liborrery-dev", "Version")} REQUIRED COMPONENTS orrery processor)
            add_executable(sky {CONSUMER}/sky.cc)
            target_link_libraries(sky PRIVATE orrery::processor)
            add_executable(follow {CONSUMER}/follow.cc)
            target_link_libraries(follow PRIVATE orrery::orrery)
            """)
        check_run(["cmake", "-S", source, "-B", build, f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DCMAKE_CXX_STANDARD=20",
                   f"-DCMAKE_PREFIX_PATH={scratch.development}/usr",
                   f"-DCMAKE_LIBRARY_ARCHITECTURE={self.libraries.name}"])
        self.assertIn(f"orrery_DIR:PATH={self.libraries}/cmake/orrery", (build / "CMakeCache.txt").read_text())
        check_run(["cmake", "--build", build])
        self.assertFalse(self.uses_library(build / "sky"))
        self.assertTrue(self.uses_library(build / "follow"))
        self.run_both(build / "sky", build / "follow")

    def test_what_the_pc_files_require_is_depended_on(self):
        wanted = set(self.pkg_config("--print-requires", "--print-requires-private", "orrery", "orrery-client"))
        dependencies = re.split(r"[,|]\s*|\s*\(.*?\)\s*", field("liborrery-dev", "Depends"))
        depended_on = {name.strip() for name in dependencies}
        self.assertGreater(len(wanted), 3)
        for name in wanted:
            folder = check_run(["pkg-config", "--variable=pcfiledir", name]).strip()
            owner = check_run(["dpkg-query", "--search", f"{folder}/{name}.pc"]).split(":")[0]
            self.assertIn(owner, depended_on)

    def test_the_dependencies_are_in_debian(self):
        for package in ("liborrery0", "liborrery-dev"):
            shutil.copy(deb(package), scratch.installed / "var/tmp")
        said = run_in(scratch.installed, "apt-get", "install", "--simulate", "--no-install-recommends",
                      *(f"/var/tmp/{deb(package).name}" for package in ("liborrery0", "liborrery-dev")))
        self.assertIn("Inst liborrery-dev", said)


# ── Installed ───────────────────────────────────────────────────────────────────────────────────────

def owner_and_mode(root, name):
    """With the names of users that the system in the directory has."""
    return run_in(root, "stat", "--format=%U:%G %a", name).strip()


class InstalledTest(unittest.TestCase):
    """In a fresh Debian, before anything runs."""

    @classmethod
    def setUpClass(cls):
        cls.root = scratch.installed

    def test_the_program_finds_its_libraries(self):
        self.assertIn(field("orrery", "Version"), run_in(self.root, "orrery", "--version"))

    def test_bash_completes_it(self):
        self.assertIn("orrery", run_in(self.root, "bash", "-c",
                                       ". /usr/share/bash-completion/completions/orrery; complete -p orrery"))

    def test_the_user_cannot_log_in(self):
        self.assertRegex(run_in(self.root, "getent", "passwd", "orrery"), r":/var/lib/orrery:/usr/sbin/nologin$")

    def test_the_key_is_random_and_for_the_server_only(self):
        key = (self.root / "etc/orrery/orrery.key").read_text().strip()
        self.assertEqual(len(base64.b64decode(key, validate=True)), 64)
        self.assertNotEqual(key, wire.WELL_KNOWN_KEY)
        self.assertEqual(owner_and_mode(self.root, "/etc/orrery/orrery.key"), "orrery:orrery 600")

    def test_nobody_else_enters_the_data(self):
        self.assertEqual(owner_and_mode(self.root, "/var/lib/orrery"), "orrery:orrery 700")

    def test_the_unit_is_enabled_and_sound(self):
        self.assertEqual(run_in(self.root, "systemctl", "is-enabled", "orrery").strip(), "enabled")
        self.assertEqual(run_in(self.root, "systemd-analyze", "verify", "--man=no", "orrery.service").strip(), "")

    def test_the_unit_is_hardly_exposed(self):
        said = run_in(self.root, "systemd-analyze", "security", "--offline=yes", "--no-pager", "orrery.service")
        exposure = float(re.search(r"Overall exposure level for orrery.service: ([\d.]+)", said)[1])
        print(f"systemd-analyze security: exposure {exposure}", flush=True)
        self.assertLessEqual(exposure, EXPOSURE_MAX, said)


# ── Running ─────────────────────────────────────────────────────────────────────────────────────────

def write(host, name):
    with host.client() as client:
        client.post("/dbs", {"id": "d"}).expect((201, 409))
        client.post("/dbs/d/colls", {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}}).expect((201, 409))
        client.databases.clear()  # It stays for later.
        client.post("/dbs/d/colls/c/docs", {"id": name, "pk": "a"}, {wire.KEY: '["a"]'}).expect(201)


def is_there(host, name):
    with host.client() as client:
        return client.get(f"/dbs/d/colls/c/docs/{name}", headers={wire.KEY: '["a"]'}).expect((200, 404)).status == 200


class ServiceTest(unittest.TestCase):
    """The server runs, under systemd where that boots. Each test leaves it running."""

    @classmethod
    def setUpClass(cls):
        cls.host = scratch.host("service", **{"backup-dir": "/var/backups/orrery"})
        cls.addClassCleanup(cls.host.close)

    def need_systemd(self):
        if not self.host.has_systemd:
            skip(scratch.why_no_boot)

    def test_documents_are_written_and_read_with_the_key_of_the_file(self):
        write(self.host, "vega")
        self.assertTrue(is_there(self.host, "vega"))
        self.assertEqual(self.host.status_with(wire.WELL_KNOWN_KEY), 401)

    def test_data_is_for_the_server_only(self):
        self.assertEqual(owner_and_mode(self.host.directory, "/var/lib/orrery"), "orrery:orrery 700")

    def test_a_restart_keeps_data(self):
        write(self.host, "deneb")
        self.host.restart()
        self.assertTrue(is_there(self.host, "deneb"))

    def test_the_command_of_the_readme_finds_the_key(self):
        readme = self.host.path("/usr/share/doc/orrery/README.Debian").read_text()
        recipe, = re.findall(r"export (ORRERY_ACCOUNT_KEY=.*)", readme)
        said = self.host.run("sh", "-c", f"export {recipe}; orrery keys list --endpoint {self.host.endpoint}")
        self.assertRegex(said, r"^primary +read-write")

    def test_a_key_is_rotated_by_the_command(self):
        before = self.host.keys()[0]
        key = self.host.orrery("keys", "rotate", "secondary", "--key-file", self.host.KEY_FILE).strip()
        self.assertEqual([self.host.status_with(each) for each in (before, key)], [200, 200])
        primary = self.host.orrery("keys", "rotate", "primary", "--key-file", self.host.KEY_FILE).strip()
        self.assertEqual([self.host.status_with(each) for each in (before, primary, key)], [401, 200, 200])
        # The server, which is not root, must be able to read it at the next start.
        self.assertEqual(owner_and_mode(self.host.directory, self.host.KEY_FILE), "orrery:orrery 600")
        self.host.restart()
        self.assertEqual(self.host.status_with(primary), 200)

    def test_a_key_file_that_was_replaced_is_read_by_a_reload(self):
        before, key = self.host.keys()[0], base64.b64encode(os.urandom(64)).decode()
        file = self.host.path(self.host.KEY_FILE)
        fresh = file.with_suffix(".fresh")
        fresh.write_text(f"primary: {key}\n")
        fresh.chmod(0o600)
        os.chown(fresh, file.stat().st_uid, file.stat().st_gid)
        fresh.rename(file)
        self.host.reload()
        wait_until(lambda: self.host.status_with(key) == 200, PATIENCE, "the new key is in force")
        self.assertEqual(self.host.status_with(before), 401)

    def test_a_reload_of_a_damaged_key_file_changes_nothing(self):
        file = self.host.path(self.host.KEY_FILE)
        key, text = self.host.keys()[0], file.read_text()
        file.write_text("primary: short\n")
        try:
            told = "keys and certificate stay as they were"
            count = self.host.log().count(told)
            self.host.reload()
            wait_until(lambda: self.host.log().count(told) > count, PATIENCE, "the refusal is logged", pause=0.1)
            self.assertEqual(self.host.status_with(key), 200)
        finally:
            file.write_text(text)

    def test_it_does_not_start_without_the_key(self):
        self.need_systemd()
        file = self.host.path(self.host.KEY_FILE)
        self.host.stop()
        away = file.rename(file.with_suffix(".away"))
        try:
            with self.assertRaises(AssertionError):
                self.host.start()
            self.assertIsNone(self.host.health())
            self.assertIn("cannot read the key file", self.host.log())
        finally:
            away.rename(file)
            self.host.start()

    def test_a_mistake_in_the_config_file_is_not_tried_again(self):
        self.need_systemd()
        file = self.host.path("/etc/orrery/orrery.toml")
        text = file.read_text()
        file.write_text(text + 'cache-mb = "much"\n')
        try:
            self.host.stop()
            with self.assertRaises(AssertionError):
                self.host.start()
            said = self.host.run("systemctl", "show", "--property=ActiveState,ExecMainStatus", "orrery").split()
            self.assertEqual(sorted(said), ["ActiveState=failed", "ExecMainStatus=2"])
            self.assertIn("cache-mb", self.host.log())
        finally:
            file.write_text(text)
            self.host.start()

    def test_the_sandbox_is_in_force(self):
        self.need_systemd()
        pid = self.host.main_pid()
        status = self.host.run("cat", f"/proc/{pid}/status")
        for line in (r"NoNewPrivs:\s+1", r"Seccomp:\s+2", r"CapEff:\s+0+", r"CapBnd:\s+0+"):
            self.assertRegex(status, rf"(?m)^{line}$")
        # Which start of the machine this is, is part of what tells a crash of it from damage.
        self.host.run("nsenter", "--target", pid, "--mount", "cat", "/proc/sys/kernel/random/boot_id")

    def test_a_crash_is_followed_by_a_start(self):
        self.need_systemd()
        write(self.host, "altair")
        pid = self.host.main_pid()
        self.host.run("systemctl", "kill", "--signal=KILL", "orrery")
        wait_until(lambda: self.host.main_pid() not in (0, pid), PATIENCE, "systemd starts it again", pause=0.1)
        self.host.wait_for_answer()
        self.assertTrue(is_there(self.host, "altair"))

    def test_back_ups_are_taken_and_restored_as_the_readme_says(self):
        write(self.host, "sirius")
        if not self.host.path("/var/backups/orrery").exists():
            self.host.stop()
            self.host.run("install", "-d", "-o", "orrery", "-g", "orrery", "-m", "0700", "/var/backups/orrery")
            self.host.start()
        self.host.orrery("backup", "create")
        write(self.host, "procyon")
        self.host.stop()
        self.host.path("/var/lib/orrery").rename(self.host.path("/var/lib/orrery-before"))
        self.host.run("install", "-d", "-o", "orrery", "-g", "orrery", "-m", "0700", "/var/lib/orrery")
        self.host.run("runuser", "-u", "orrery", "--", "orrery", "backup", "restore",
                      "--backup-dir", "/var/backups/orrery", "--data-dir", "/var/lib/orrery")
        self.host.start()
        self.assertTrue(is_there(self.host, "sirius"))
        self.assertFalse(is_there(self.host, "procyon"))


class LifeCycleTest(unittest.TestCase):
    """An upgrade, a removal, an installation on what was left, a purge."""

    def test_data_and_keys_stay_until_they_are_purged(self):
        with scratch.host("life") as host:
            write(host, "vega")
            keys, settings = host.keys(), host.path("/etc/orrery/orrery.toml").read_text()
            pid = host.main_pid() if host.has_systemd else None

            host.install(scratch.higher_version())
            self.assertTrue(host.run("dpkg-query", "--show", "--showformat=${Version}", "orrery").endswith("+1"))
            self.assert_kept(host, keys, settings)
            if host.has_systemd:
                self.assertNotEqual(host.main_pid(), pid, "an upgrade restarts the server")

            host.dpkg("--remove", "orrery")
            self.assertIsNone(host.health())
            self.assertFalse(host.path("/usr/bin/orrery").exists())
            self.assertTrue(host.path("/var/lib/orrery/format").exists())

            host.install(deb("orrery"))
            self.assert_kept(host, keys, settings)

            host.dpkg("--purge", "orrery")
            self.assertIsNone(host.health())
            self.assertEqual(self.left_behind(host), [])

            # Not started: its settings are the defaults again, and so is the port.
            run_in(host.directory, "dpkg", "--install", f"/var/tmp/{deb('orrery').name}")
            self.assertNotIn(host.keys()[0], keys, "each installation has a key of its own")

    def assert_kept(self, host, keys, settings):
        self.assertEqual(host.keys(), keys)
        self.assertEqual(host.path("/etc/orrery/orrery.toml").read_text(), settings)
        self.assertTrue(is_there(host, "vega"))

    @staticmethod
    def left_behind(host):
        """Files of the package on the system's own disk; what the test has put there does not count."""
        found = check_run(["find", host.directory, "-xdev", "-name", "*orrery*", "-not", "-path", "*/var/tmp/*"])
        return sorted(name.removeprefix(str(host.directory)) for name in found.splitlines()
                      if name != str(host.directory))


if __name__ == "__main__":
    unittest.main()
