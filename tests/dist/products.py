"""What `make dist` has made, unpacked, and servers that run in directories of their own. Standard library only."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(REPOSITORY / "packaging")]
from harness import program, server, wire  # noqa: E402

DIST = pathlib.Path(os.environ.get("ORRERY_DIST") or REPOSITORY / "dist").resolve()
COMMAND_SECONDS_MAX = 120.0


def skip(reason):
    print(f"skipped: {reason}", flush=True)
    raise unittest.SkipTest(reason)


def need_root():
    if os.geteuid() != 0:
        skip("another root directory needs root rights")


def need(*tools):
    for tool in tools:
        if shutil.which(tool) is None:
            skip(f"{tool} is not installed")


def product(pattern):
    """The one file of that name."""
    found = sorted(DIST.glob(pattern))
    assert len(found) == 1, f"{DIST} has {len(found)} files {pattern}: {found}"
    return found[0]


def version():
    return product("orrery-*.spdx.json").name.removeprefix("orrery-").removesuffix(".spdx.json")


def folder():
    return f"orrery-{version()}-linux-x86_64"


def portable_archive():
    return product(f"{folder()}.tar.gz")


def unpack(archive, directory):
    """As a user does it."""
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "--extract", "--gzip", "--file", archive, "--directory", directory], check=True)


def files_of(archive):
    with tarfile.open(archive) as opened:
        return opened.getmembers()


def run(*words, **settings):
    """A command that ends; its result."""
    return subprocess.run([str(word) for word in words], text=True, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=COMMAND_SECONDS_MAX, **settings)


def check_run(*words, **settings):
    """The standard output of a command that ends well."""
    done = run(*words, **settings)
    assert done.returncode == 0, f"{words}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class Scratch(unittest.TestCase):
    """A directory for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="orrery-dist-")
        cls.addClassCleanup(directory.cleanup)
        cls.scratch = pathlib.Path(directory.name)

    @classmethod
    def unpacked(cls, directory):
        """The portable tree, unpacked there."""
        unpack(portable_archive(), directory)
        return directory / folder()


class RootedServer(server.Server):
    """A server in another root directory. Paths in its options are paths there, `room` too, where it may write."""

    def __init__(self, root, path, *options, room="/room", user=None, **settings):
        super().__init__(*options, **settings, environment={"TMPDIR": room, "HOME": room})
        self.root, self.path, self.user = root, path, user

    def words(self):
        return [*chroot_words(self.root, self.user), self.path, *super().words()[1:]]


def chroot_words(root, user=None):
    as_user = [f"--userspec={user}", f"--groups={user.partition(':')[2]}"] if user else []
    return [shutil.which("chroot"), *as_user, str(root)]


class Room:
    """A command in another root directory."""

    def __init__(self, root, **variables):
        self.root, self.environment = root, program.clean_environment(variables)

    def run(self, *words):
        return run(*chroot_words(self.root), *words, env=self.environment)

    def check_run(self, *words):
        return check_run(*chroot_words(self.root), *words, env=self.environment)


def write_and_read(client):
    """Signed requests, of each kind that a newcomer makes first."""
    database = client.create_database()
    container = database.create_container()
    container.create({"id": "vega", "pk": "a", "text": "Straße"}).expect(201)
    assert container.read("vega").expect(200).json["text"] == "Straße"
    return container


def query(container, text):
    """The results of a query over all keys, signed."""
    return container.client.post(container.docs, {"query": text}, wire.QUERY).expect(200).json["Documents"]


@functools.cache
def manifest():
    """The rows of the list of contents."""
    import portable
    with tempfile.TemporaryDirectory(prefix="orrery-dist-") as directory:
        unpack(portable_archive(), pathlib.Path(directory))
        return portable.read_manifest(pathlib.Path(directory) / folder())
