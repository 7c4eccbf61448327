#!/usr/bin/env python3
"""The container image: its form, and its files run as an engine would, by chroot.

    image_test.py

ORRERY_DIST is the directory of `make dist`. Wants root to run the image; skopeo, if it is there, judges the form, too.
Standard library only.
"""

import contextlib
import gzip
import hashlib
import http.client
import io
import json
import os
import pathlib
import shutil
import sys
import tarfile
import tempfile
import unittest

import products
from harness import program, wire
from harness.server import free_port
from harness.waiting import wait_until
from products import Scratch, check_run, need, need_root

SIZE_MAX = 25_000_000
START_SECONDS_MAX = 30.0
MAKER = products.REPOSITORY / "packaging" / "oci.py"


class Image:
    """An archive of oci.py."""

    def __init__(self, file):
        with tarfile.open(file) as archive:
            self.files = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
        self.index = json.loads(self.files["index.json"])
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.configuration = json.loads(self.blob(self.manifest["config"]))

    def blob(self, descriptor):
        """Of that digest and size."""
        kind, digest = descriptor["digest"].split(":")
        data = self.files[f"blobs/{kind}/{digest}"]
        assert hashlib.new(kind, data).hexdigest() == digest, descriptor
        assert len(data) == descriptor["size"], descriptor
        return data

    def layers(self):
        """Their tar archives."""
        return [gzip.decompress(self.blob(descriptor)) for descriptor in self.manifest["layers"]]


class FormTest(Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = products.product("*-oci.tar")
        cls.image = Image(cls.file)

    def test_it_has_at_most_twenty_five_megabytes(self):
        size = self.file.stat().st_size
        print(f"the image has {size / 1e6:.1f} MB", flush=True)
        self.assertLessEqual(size, SIZE_MAX)

    def test_it_is_a_layout_of_version_one(self):
        self.assertEqual(json.loads(self.image.files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
        self.assertEqual(self.image.index["schemaVersion"], 2)
        self.assertEqual(self.image.manifest["schemaVersion"], 2)
        self.assertEqual(len(self.image.index["manifests"]), 1)
        self.assertEqual(self.image.index["manifests"][0]["platform"], {"os": "linux", "architecture": "amd64"})

    def test_blobs_are_what_their_digests_say_and_all_are_needed(self):
        descriptors = [self.image.index["manifests"][0], self.image.manifest["config"], *self.image.manifest["layers"]]
        for descriptor in descriptors:
            self.image.blob(descriptor)
        self.assertEqual({name for name in self.image.files if name.startswith("blobs/")},
                         {"blobs/" + descriptor["digest"].replace(":", "/") for descriptor in descriptors})

    def test_the_configuration_knows_the_layers(self):
        digests = ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in self.image.layers()]
        self.assertEqual(self.image.configuration["rootfs"], {"type": "layers", "diff_ids": digests})

    def test_older_docker_reads_the_same_blobs(self):
        described, = json.loads(self.image.files["manifest.json"])
        self.assertEqual(described["RepoTags"], [f"orrery:{products.version()}"])
        self.assertEqual(described["Config"], "blobs/" + self.image.manifest["config"]["digest"].replace(":", "/"))
        self.assertEqual(described["Layers"],
                         ["blobs/" + layer["digest"].replace(":", "/") for layer in self.image.manifest["layers"]])

    def test_skopeo_reads_it(self):
        need("skopeo")
        said = json.loads(check_run("skopeo", "inspect", f"oci-archive:{self.file}"))
        self.assertEqual(said["Labels"]["org.opencontainers.image.version"], products.version())
        self.assertIn("RepoTags", json.loads(self.image.files["manifest.json"])[0])
        for source in ("oci-archive", "docker-archive"):
            check_run("skopeo", "copy", "--insecure-policy", f"{source}:{self.file}", f"dir:{self.scratch / source}")

    def test_the_same_tree_gives_the_same_bytes(self):
        made = []
        for name, mask in (("one", 0o022), ("two", 0o077)):
            before = os.umask(mask)
            try:
                tree = self.scratch / name
                shutil.copytree(self.unpacked(self.scratch / f"unpacked-{name}"), tree, copy_function=shutil.copyfile)
                for path in ("orrery", "lib/orrery", "lib/ld-linux-x86-64.so.2"):
                    (tree / path).chmod(0o700)
                check_run(sys.executable, MAKER, tree, self.scratch / f"made-{name}", products.version(),
                          env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"})
            finally:
                os.umask(before)
            made.append((self.scratch / f"made-{name}" / self.file.name).read_bytes())
        self.assertEqual(made[0], made[1])

    def test_nothing_in_it_belongs_to_the_maker(self):
        for layer in self.image.layers():
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                owners = {(entry.uid, entry.gid) for entry in archive}
                self.assertEqual(owners, {(0, 0), (65532, 65532)})


class RunTest(unittest.TestCase):
    """As the image says, but for the ports, which may be taken here, and the address: in a container 0.0.0.0 is the
    container's network alone, and here it is everybody's."""

    @classmethod
    def setUpClass(cls):
        need_root()
        directory = tempfile.TemporaryDirectory(prefix="orrery-image-")
        cls.addClassCleanup(directory.cleanup)
        # Root's temporary directories are for root alone, and the image's user goes through them.
        pathlib.Path(directory.name).chmod(0o755)
        cls.root = pathlib.Path(directory.name) / "root"
        image = Image(products.product("*-oci.tar"))
        cls.configuration = image.configuration["config"]
        for layer in image.layers():
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                archive.extractall(cls.root, numeric_owner=True)

    @contextlib.contextmanager
    def container(self, *arguments, **variables):
        self.port, self.health_port, self.explorer_port = free_port(), free_port(), free_port()
        user = self.configuration["User"]
        environment = dict(entry.split("=", 1) for entry in self.configuration["Env"])
        environment |= {"PORT": self.port, "HEALTH_PORT": self.health_port, "EXPLORER_PORT": self.explorer_port,
                        "ORRERY_EMULATOR_ADDRESS": "127.0.0.1", **variables}
        words = [*products.chroot_words(self.root, f"{user}:{user}"), *self.configuration["Entrypoint"], *arguments]
        with program.Program(words, {name: str(value) for name, value in environment.items()}) as started:
            wait_until(lambda: not started.alive() or self.status("/", self.port), START_SECONDS_MAX,
                       "the container answers")
            self.assertTrue(started.alive(), started.report())
            yield started

    def status(self, path, port):
        """Of an unsigned GET, as frameworks ask; None without an answer."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            try:
                connection.request("GET", path)
                return connection.getresponse().status
            except OSError:
                return None

    def client(self):
        return wire.Client(wire.Endpoint(f"http://127.0.0.1:{self.port}/"))

    def test_it_says_how_it_wants_to_be_started(self):
        self.assertEqual(self.configuration["User"], "65532")
        self.assertEqual(self.configuration["Entrypoint"], ["/opt/orrery/orrery", "emulator"])
        self.assertEqual(set(self.configuration["ExposedPorts"]), {"8081/tcp", "8080/tcp", "1234/tcp"})
        self.assertIn("ORRERY_EMULATOR_ADDRESS=0.0.0.0", self.configuration["Env"])
        self.assertEqual(self.configuration["Volumes"], {"/data": {}})

    def test_testcontainers_finds_it_ready(self):
        with self.container(ENABLE_EXPLORER="false"):
            self.assertEqual(self.status("/", self.port), 200)

    def test_aspire_finds_it_ready(self):
        with self.container():
            for path in ("/ready", "/alive", "/status"):
                self.assertEqual(self.status(path, self.health_port), 200, path)

    def test_the_explorer_has_its_port(self):
        with self.container():
            self.assertEqual(self.status("/_explorer/", self.explorer_port), 200)

    def test_signed_requests_with_the_emulators_key(self):
        with self.container() as started:
            with self.client() as client:
                products.write_and_read(client)
            self.assertEqual(started.stop(), 0)

    def test_data_is_kept_in_the_volume(self):
        for expected in (201, 409):
            with self.container() as started:
                with self.client() as client:
                    client.post("/dbs", {"id": "kept"}).expect(expected)
                self.assertEqual(started.stop(), 0)
        format_file = self.root / "data" / "format"
        self.assertEqual(format_file.stat().st_uid, 65532)

    def test_it_writes_nowhere_else(self):
        before = self.files_outside()
        with self.container() as started:
            self.assertEqual(started.stop(), 0)
        self.assertEqual(self.files_outside(), before)

    def files_outside(self):
        return {path: path.lstat().st_mtime_ns for path in self.root.rglob("*")
                if path.is_file() and path.relative_to(self.root).parts[0] not in ("data", "tmp")}

    def test_the_program_is_in_the_path(self):
        user = self.configuration["User"]
        environment = dict(entry.split("=", 1) for entry in self.configuration["Env"])
        self.assertEqual(environment["PATH"], "/usr/bin")
        said = check_run(*products.chroot_words(self.root, f"{user}:{user}"), "/usr/bin/orrery", "--version",
                         env=environment)
        self.assertIn(products.version(), said)


if __name__ == "__main__":
    unittest.main()
