#!/usr/bin/env python3
"""Writes the bill of materials of the portable tree, SPDX 2.3 as JSON: sbom.py PORTABLE_DIR FILE VERSION.

It says what lib/MANIFEST of the tree says, in the form that scanners read: Orrery, each Debian package of which the tree
has a file, an archive or the code of headers, how it is connected with the program, and each file with its digests. The
licence of a package is given as the text of its copyright file: Debian has no shorter form of which it is certain. The
same tree and SOURCE_DATE_EPOCH give the same bytes. Standard library only.
"""

import datetime
import gzip
import hashlib
import json
import os
import pathlib
import re
import sys
import urllib.parse

import portable

DOCUMENT, ORRERY = "SPDXRef-DOCUMENT", "SPDXRef-Package-orrery"
NOT_SAID = "NOASSERTION"


def identifier(kind, name):
    """SPDX knows letters, digits, dots and hyphens only."""
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", lambda match: f"-{ord(match[0]):x}-", name)


def licence_identifier(path):
    name = pathlib.PurePosixPath(path).name.removesuffix(".gz")
    return "LicenseRef-Debian-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def licence_text(tree, path):
    data = (tree / path).read_bytes()
    return (gzip.decompress(data) if path.endswith(".gz") else data).decode("utf-8", "replace")


def own_package(version):
    return {
        "SPDXID": ORRERY,
        "name": "orrery",
        "versionInfo": version,
        "downloadLocation": NOT_SAID,
        "filesAnalyzed": False,
        "licenseConcluded": "MIT",
        "licenseDeclared": "MIT",
        "copyrightText": NOT_SAID,
        "primaryPackagePurpose": "APPLICATION",
    }


def debian_package(row):
    version = urllib.parse.quote(row.version, safe="~.-")
    locator = f"pkg:deb/debian/{urllib.parse.quote(row.package, safe='.-')}@{version}?arch=amd64&distro=debian-12"
    return {
        "SPDXID": identifier("Package", row.package),
        "name": row.package,
        "versionInfo": row.version,
        "sourceInfo": f"built from the Debian source package {row.source} {row.source_version}",
        "supplier": "Organization: Debian",
        "downloadLocation": NOT_SAID,
        "filesAnalyzed": False,
        "licenseConcluded": NOT_SAID,
        "licenseDeclared": licence_identifier(row.licence),
        "copyrightText": NOT_SAID,
        "primaryPackagePurpose": "LIBRARY",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}],
    }


def file_entry(tree, path):
    data = (tree / path).read_bytes()
    return {
        "SPDXID": identifier("File", path),
        "fileName": f"./{path}",
        "checksums": [{"algorithm": name, "checksumValue": hashlib.new(name, data).hexdigest()}
                      for name in ("SHA1", "SHA256")],
        "licenseConcluded": NOT_SAID,
        "copyrightText": NOT_SAID,
    }


def relation(subject, kind, other, comment=None):
    said = {"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other}
    return said | ({"comment": comment} if comment else {})


def relations_of(row):
    """How the package of a row, or its file, belongs to Orrery."""
    if row.kind != "file":
        return [relation(ORRERY, "STATIC_LINK", identifier("Package", row.package), row.kind)]
    owner = ORRERY if row.package == "orrery" else identifier("Package", row.package)
    found = [relation(each, "CONTAINS", identifier("File", row.path)) for each in {owner, ORRERY}]
    if owner != ORRERY:
        found.append(relation(ORRERY, "DYNAMIC_LINK" if ".so" in row.path else "DEPENDS_ON", owner))
    return found


def make(tree, version, epoch):
    """The document."""
    tree = pathlib.Path(tree)
    rows = portable.read_manifest(tree)
    foreign = {row.package: row for row in rows if row.package != "orrery"}
    relations = {json.dumps(said, sort_keys=True): said for row in rows for said in relations_of(row)}
    licences = {licence_identifier(row.licence): row.licence for row in foreign.values()}
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": DOCUMENT,
        "name": f"orrery-{version}-linux-x86_64",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: orrery-packaging-sbom"],
        },
        "packages": [own_package(version), *(debian_package(foreign[name]) for name in sorted(foreign))],
        "files": [file_entry(tree, row.path) for row in rows if row.kind == "file"],
        "relationships": [relation(DOCUMENT, "DESCRIBES", ORRERY), *(relations[key] for key in sorted(relations))],
        "hasExtractedLicensingInfos": [
            {"licenseId": name, "name": f"Debian's copyright file, {licences[name]}",
             "extractedText": licence_text(tree, licences[name])} for name in sorted(licences)],
    }
    # The name of a document has to be its own: it is that of its content.
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["documentNamespace"] = f"urn:orrery:sbom:{version}:{digest}"
    return document


def main(arguments):
    if len(arguments) != 3:
        sys.exit("usage: sbom.py PORTABLE_DIR FILE VERSION")
    document = make(arguments[0], arguments[2], int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    pathlib.Path(arguments[1]).write_text(text, encoding="utf-8")
    print(f"{arguments[1]}  {len(document['packages'])} packages, {len(document['files'])} files")


if __name__ == "__main__":
    main(sys.argv[1:])
