"""Debian systems in directories, for deb_test.py: made by mmdebstrap, entered by chroot, booted by systemd-nspawn.

    directory = debian_root(path)             a fresh minimal Debian 12 with systemd
    run_in(directory, "apt-get", "update")    a command in it, which sees no process of the machine
    with BootedHost(directory, port, key=…) as host:
        host.run("systemctl", "reload", "orrery")

The network of a booted system is that of the machine, so that loopback is the same and ports have to be free on it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import program, wire  # noqa: E402
from harness.waiting import TimedOut, wait_until  # noqa: E402

SUITE = "bookworm"
BOOT_SECONDS_MAX = 60
ANSWER_SECONDS_MAX = 60
COMMAND_SECONDS_MAX = 300
# Programs of the system in the directory must not see the variables of whoever runs the test, but for proxies.
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
               "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
ENVIRONMENT |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}


def why_no_roots():
    """Why there can be no system in a directory on this machine, or None."""
    if os.geteuid() != 0:
        return "a Debian root needs root rights"
    missing = [name for name in ("mmdebstrap", "unshare", "chroot") if shutil.which(name) is None]
    return f"{missing[0]} is not installed" if missing else None


def check_run(words, **settings):
    """A command's output. AssertionError with all that it said when it fails."""
    done = subprocess.run([str(word) for word in words], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS_MAX, **settings)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def debian_root(directory):
    """Puts a fresh Debian into the directory. The archive of it is kept in ORRERY_TEST_ROOTS for the next time."""
    with tempfile.TemporaryDirectory(prefix="orrery-roots-") as temporary:
        kept = pathlib.Path(os.environ.get("ORRERY_TEST_ROOTS") or temporary)
        kept.mkdir(parents=True, exist_ok=True)
        archive = kept / f"{SUITE}-minbase-systemd.tar"
        if not archive.exists():
            fresh = kept / f"{uuid.uuid4().hex}.tar"
            check_run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=systemd,systemd-sysv", SUITE, fresh])
            fresh.rename(archive)
        directory.mkdir()
        check_run(["tar", "--extract", "--numeric-owner", "--file", archive, "--directory", directory])
    shutil.copy("/etc/resolv.conf", directory / "etc" / "resolv.conf")


def run_in(directory, *words):
    """A command in the system, without its services. Its output."""
    script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    return check_run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, directory, *words],
                     env=ENVIRONMENT)


class CannotBoot(Exception):
    """systemd does not run in a container of this machine. Says nothing about the system in the directory."""


class Boot:
    """A system that runs in a directory, from here to close(). CannotBoot where there can be none."""

    def __init__(self, directory):
        if shutil.which("systemd-nspawn") is None:
            raise CannotBoot("systemd-nspawn is not installed")
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--boot", "--keep-unit", "--register=no", "--resolv-conf=off",
             "--link-journal=no", f"--machine=orrery-{uuid.uuid4().hex[:12]}", f"--directory={directory}"],
            env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            preexec_fn=program.before_exec())
        try:
            self.first = wait_until(self.first_process, BOOT_SECONDS_MAX, "the container's first process")
            wait_until(self.is_up, BOOT_SECONDS_MAX, "the system is up", pause=0.1)
        except AssertionError as error:
            said = self.said()
            self.close()
            raise CannotBoot(f"systemd does not boot here: {error}: {said}") from None

    def said(self):
        self.log.seek(0)
        return " ".join(self.log.read().decode("utf-8", "replace").split())[-300:]

    def insist_on_life(self):
        assert self.process.poll() is None, f"systemd-nspawn ended with {self.process.returncode}"

    def first_process(self):
        """The system's process 1, as this machine counts it. Others come and go before it is there."""
        self.insist_on_life()
        for child in pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            try:
                status = pathlib.Path(f"/proc/{child}/status").read_text()
            except OSError:
                continue
            if re.search(r"^NSpid:\s+\d+\s+1$", status, re.MULTILINE):
                return int(child)
        return None

    def is_up(self):
        """Whether systemd takes commands. Units may be starting still."""
        self.insist_on_life()
        done = subprocess.run(self.words("systemctl", "is-system-running"), env=ENVIRONMENT, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_SECONDS_MAX)
        return done.stdout.strip() in ("initializing", "starting", "running", "degraded")

    def words(self, *words):
        return ["nsenter", "--target", str(self.first), "--all", *map(str, words)]

    def run(self, *words):
        """The output of a command in it."""
        return check_run(self.words(*words), env=ENVIRONMENT)

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(BOOT_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()  # and the system with it
                self.process.wait()
        self.log.close()


class Host:
    """A system in a directory with the package orrery in it, and the server on a port of loopback.

    A context manager: at its end nothing of the system runs any more.
    """

    KEY_FILE = "/etc/orrery/orrery.key"
    has_systemd = False

    def __init__(self, directory, port):
        self.directory, self.port = pathlib.Path(directory), port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def path(self, name):
        """Where a file of the system is on this machine."""
        return self.directory / name.lstrip("/")

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}/"

    def keys(self):
        """The texts of the keys in the key file, in its order."""
        lines = self.path(self.KEY_FILE).read_text().splitlines()
        return [line.rpartition(":")[2].strip() for line in lines if line and not line.startswith("#")]

    def client(self, key=None):
        return wire.Client(wire.Endpoint(self.endpoint, key or self.keys()[0]))

    def status_with(self, key):
        with self.client(key) as client:
            return client.get("/").status

    def health(self):
        """The status of /_health, or None when nobody answers."""
        client = wire.connect(self.port)
        try:
            return client.get("/_health", signed=False).status
        except (wire.NoAnswer, OSError):
            return None
        finally:
            client.close()

    def wait_for_answer(self):
        try:
            wait_until(lambda: self.health() == 200, ANSWER_SECONDS_MAX, "the server answers", pause=0.05)
        except TimedOut as error:
            raise AssertionError(f"{error}\n{self.log()}") from None

    def orrery(self, *words):
        """A command as root types it, which talks to the server with the first key of the file. Its output."""
        return self.run("env", f"ORRERY_ENDPOINT={self.endpoint}", f"ORRERY_ACCOUNT_KEY={self.keys()[0]}",
                        "orrery", *words)

    def install(self, package):
        """Installs or upgrades, as dpkg does it, and waits for the server."""
        name = f"/var/tmp/{pathlib.Path(package).name}"
        shutil.copy(package, self.path(name))
        self.dpkg("--install", name)
        self.wait_for_answer()

    def restart(self):
        self.stop()
        self.start()


class BootedHost(Host):
    """Under systemd, as on any machine. CannotBoot where that does not run."""

    has_systemd = True

    def __init__(self, directory, port):
        super().__init__(directory, port)
        self.boot = Boot(directory)
        try:
            self.wait_for_answer()
        except AssertionError:
            self.close()
            raise

    def run(self, *words):
        return self.boot.run(*words)

    def dpkg(self, *words):
        self.run("dpkg", *words)

    def start(self):
        # systemd counts the starts, and has enough of them after five in ten seconds.
        self.run("systemctl", "reset-failed", "orrery")
        # Type=notify: back when the server is ready.
        self.run("systemctl", "start", "orrery")

    def stop(self):
        self.run("systemctl", "stop", "orrery")

    def reload(self):
        self.run("systemctl", "reload", "orrery")

    def main_pid(self):
        return int(self.run("systemctl", "show", "--property=MainPID", "--value", "orrery"))

    def log(self):
        return self.run("journalctl", "--unit=orrery", "--output=cat", "--no-pager")

    def close(self):
        self.boot.close()


class ChrootHost(Host):
    """Without systemd: what the unit starts, as the user of the unit, and nothing of its sandbox."""

    def __init__(self, directory, port):
        super().__init__(directory, port)
        self.server, self.lines = None, []
        self.start()

    def run(self, *words):
        return run_in(self.directory, *words)

    def dpkg(self, *words):
        self.stop()
        self.run("dpkg", *words)
        if self.path("/usr/bin/orrery").exists():
            self.start()

    def settings(self, name):
        unit = self.path("/lib/systemd/system/orrery.service").read_text()
        return [word for line in re.findall(rf"^{name}=(.+)$", unit, re.MULTILINE) for word in line.split()]

    def start(self):
        user, = self.settings("User")
        self.server = program.Program(
            ["chroot", f"--userspec={user}:{user}", self.directory, "env", "--ignore-environment",
             *self.settings("Environment"), *self.settings("ExecStart")])
        self.wait_for_answer()

    def stop(self):
        if self.server is not None:
            code = self.server.stop()
            self.server.close()
            self.lines += self.server.lines + self.server.errors
            self.server = None
            assert code == 0, f"the server ended with {code}\n{self.log()}"

    def reload(self):
        self.server.process.send_signal(1)

    def log(self):
        running = self.server.lines + self.server.errors if self.server else []
        return "\n".join(self.lines + running)

    def close(self):
        if self.server is not None:
            self.server.close()
            self.server = None
