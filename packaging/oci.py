#!/usr/bin/env python3
"""Makes the container image: oci.py PORTABLE_DIR OUT_DIR VERSION.

PORTABLE_DIR is the portable tree that portable.py makes. The result, OUT_DIR/orrery-VERSION-oci.tar, is an OCI image
layout and the form that `docker save` writes, in one archive:

    oci-layout, index.json          read by podman, skopeo, containerd and newer Docker
    manifest.json                   read by older `docker load`; it names the same blobs
    blobs/sha256/<digest>           one layer (tar, gzip), the configuration, the manifest

No container engine is needed. The same tree gives the same bytes: names are sorted, owners are ours, and every time is
SOURCE_DATE_EPOCH (0 if it is not set). Standard library only.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import struct
import sys
import tarfile

USER = 65532  # the number that images without a shell have agreed on for "nonroot"
PREFIX = "opt/orrery"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"  # where the program looks for authorities first
SIZE_MAX = 25_000_000
ARCHITECTURES = {62: "amd64", 183: "arm64"}  # by e_machine of an ELF file

PASSWD = f"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/tmp:/sbin/nologin\n"
GROUP = f"root:x:0:\nnonroot:x:{USER}:\n"
# Without it the C library asks a name server before it looks into the /etc/hosts that the engine has written.
NSSWITCH = "passwd: files\ngroup: files\nhosts: files dns\n"

ENVIRONMENT = {
    "PATH": "/usr/bin",
    # The certificate of a server that keeps no data goes below it.
    "HOME": "/tmp",
    # Inside a container loopback is reachable for nobody; which ports the world sees is said by whoever starts it.
    "ORRERY_EMULATOR_ADDRESS": "0.0.0.0",
}
PORTS = (8081, 8080, 1234)  # the API, health, the explorer


class Layer:
    """The files of the image, as a tar archive whose bytes depend on nothing but them."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.entries = {}

    def add(self, name, kind=tarfile.REGTYPE, content=b"", mode=0o644, owner=0, target=""):
        for parent in reversed(pathlib.PurePosixPath(name).parents[:-1]):
            if str(parent) not in self.entries:
                self.add(str(parent), tarfile.DIRTYPE, mode=0o755)
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(content), target
        entry.uid = entry.gid = owner
        entry.mtime = self.epoch
        self.entries[name] = (entry, content)

    def add_directory(self, name, mode, owner):
        self.add(name, tarfile.DIRTYPE, mode=mode, owner=owner)

    def add_link(self, name, target):
        self.add(name, tarfile.SYMTYPE, mode=0o777, target=target)

    def add_tree(self, root, prefix):
        """Modes are reduced to executable or not: those of a checkout depend on somebody's umask."""
        for path in sorted(root.rglob("*")):
            name = f"{prefix}/{path.relative_to(root).as_posix()}"
            if path.is_symlink():
                self.add_link(name, os.readlink(path))
            elif path.is_dir():
                self.add_directory(name, 0o755, 0)
            else:
                self.add(name, content=path.read_bytes(), mode=0o755 if path.stat().st_mode & 0o100 else 0o644)

    def archive(self):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for _, (entry, content) in sorted(self.entries.items()):
                archive.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()


def architecture_of(program):
    head = program.read_bytes()[:20]
    if head[:4] != b"\x7fELF":
        sys.exit(f"{program} is no ELF file")
    machine = struct.unpack_from("<H", head, 18)[0]
    if machine not in ARCHITECTURES:
        sys.exit(f"{program} is for the unknown machine {machine}")
    return ARCHITECTURES[machine]


def fill(layer, portable):
    layer.add_tree(portable, PREFIX)
    layer.add_link("usr/bin/orrery", f"/{PREFIX}/orrery")
    layer.add("etc/passwd", content=PASSWD.encode())
    layer.add("etc/group", content=GROUP.encode())
    layer.add("etc/nsswitch.conf", content=NSSWITCH.encode())
    layer.add(CERTIFICATES.lstrip("/"), content=pathlib.Path(CERTIFICATES).read_bytes())
    # Not 0700: an engine that runs the image as another user still has to be able to enter it.
    layer.add_directory("data", 0o755, USER)
    layer.add_directory("tmp", 0o1777, USER)


def configuration(version, architecture, created, diff_id):
    return {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": str(USER),
            "ExposedPorts": {f"{port}/tcp": {} for port in PORTS},
            "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "Entrypoint": [f"/{PREFIX}/orrery", "emulator"],
            "Volumes": {"/data": {}},
            "WorkingDir": "/data",
            "Labels": labels(version, created),
            "StopSignal": "SIGTERM",
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": [{"created": created, "created_by": "packaging/oci.py"}],
    }


def labels(version, created):
    return {
        "org.opencontainers.image.title": "orrery",
        "org.opencontainers.image.description":
            "A document database with the REST API and the change feed of Azure Cosmos DB, in place of the vendor's "
            "emulator",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "MIT",
        "org.opencontainers.image.created": created,
    }


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def to_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Image:
    """The archive's files. A blob is named by the digest of its bytes."""

    def __init__(self):
        self.files = {}

    def add_blob(self, media_type, data):
        """Its descriptor, by which others refer to it."""
        digest = digest_of(data)
        self.files[blob_path(digest)] = data
        return {"mediaType": media_type, "digest": digest, "size": len(data)}

    def archive(self, epoch):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name in ("blobs", "blobs/sha256"):
                entry = tarfile.TarInfo(name)
                entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, epoch
                archive.addfile(entry)
            for name, data in sorted(self.files.items()):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode, entry.mtime = len(data), 0o644, epoch
                archive.addfile(entry, io.BytesIO(data))
        return buffer.getvalue()


def blob_path(digest):
    return "blobs/" + digest.replace(":", "/")


def make(portable, version, epoch):
    """The bytes of the image's archive."""
    layer = Layer(epoch)
    fill(layer, portable)
    plain = layer.archive()
    packed = gzip.compress(plain, compresslevel=9, mtime=0)

    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    architecture = architecture_of(portable / "lib" / "orrery")
    image = Image()
    layer_descriptor = image.add_blob("application/vnd.oci.image.layer.v1.tar+gzip", packed)
    config = image.add_blob("application/vnd.oci.image.config.v1+json",
                            to_json(configuration(version, architecture, created, digest_of(plain))))
    manifest = image.add_blob("application/vnd.oci.image.manifest.v1+json", to_json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer_descriptor],
    }))
    name = f"orrery:{version}"
    image.files["oci-layout"] = to_json({"imageLayoutVersion": "1.0.0"})
    # One image only: with two entries `oci-archive:FILE` would have to be told which.
    image.files["index.json"] = to_json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest | {
            "platform": {"os": "linux", "architecture": architecture},
            "annotations": {"org.opencontainers.image.ref.name": version,
                            "io.containerd.image.name": f"docker.io/library/{name}"}}],
    })
    image.files["manifest.json"] = to_json([{
        "Config": blob_path(config["digest"]),
        "RepoTags": [name],
        "Layers": [blob_path(layer_descriptor["digest"])],
    }])
    return image.archive(epoch)


def main(arguments):
    if len(arguments) != 3:
        sys.exit("usage: oci.py PORTABLE_DIR OUT_DIR VERSION")
    portable, out = pathlib.Path(arguments[0]), pathlib.Path(arguments[1])
    version = arguments[2]
    data = make(portable, version, int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    if len(data) > SIZE_MAX:
        sys.exit(f"the image has {len(data)} bytes, more than {SIZE_MAX}")
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"orrery-{version}-oci.tar"
    file.write_bytes(data)
    print(f"{file}  {len(data) / 1e6:.1f} MB  {digest_of(data)}")


if __name__ == "__main__":
    main(sys.argv[1:])
