#!/usr/bin/env python3
"""What is handed out belongs together: sums, versions, and the bill of materials.

    dist_contents_test.py

ORRERY_DIST is the directory of `make dist`. Standard library only.
"""

import gzip
import hashlib
import json
import re
import tarfile
import unittest

import products
from products import Scratch, check_run, run

import portable

IDENTIFIER = re.compile(r"^SPDXRef-[A-Za-z0-9.-]+$")
LICENCE = re.compile(r"^LicenseRef-[A-Za-z0-9.-]+$")


class SumsTest(unittest.TestCase):
    def setUp(self):
        lines = (products.DIST / "SHA256SUMS").read_text().splitlines()
        self.sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}

    def test_they_are_right(self):
        check_run("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=products.DIST)

    def test_they_are_of_everything(self):
        self.assertEqual(set(self.sums), {path.name for path in products.DIST.iterdir()} - {"SHA256SUMS"})

    def test_everything_is_there(self):
        version, folder = products.version(), products.folder()
        for name in (f"{folder}.tar.gz", f"{folder}-symbols.tar.gz", f"orrery-{version}-oci.tar",
                     f"orrery-{version}.tgz", f"orrery-{version}.spdx.json"):
            self.assertIn(name, self.sums)


class VersionTest(Scratch):
    def test_all_have_the_version_of_the_program(self):
        version = products.version()
        said = check_run(self.unpacked(self.scratch) / "orrery", "--version")
        self.assertEqual(said.split()[:2], ["orrery", version])
        with tarfile.open(products.product("orrery-*.tgz")) as archive:
            self.assertEqual(json.load(archive.extractfile("package/package.json"))["version"], version)
        with tarfile.open(products.product("*-oci.tar")) as archive:
            tags = json.load(archive.extractfile("manifest.json"))[0]["RepoTags"]
        self.assertEqual(tags, [f"orrery:{version}"])
        self.assertEqual(bill()["packages"][0]["versionInfo"], version)

    def test_so_have_the_debian_packages(self):
        files = sorted(products.DIST.glob("*.deb"))
        if not files:
            products.skip("there are no Debian packages")
        if run("sh", "-c", "command -v dpkg-deb").returncode != 0:
            products.skip("dpkg-deb is not installed")
        for file in files:
            self.assertRegex(check_run("dpkg-deb", "--field", file, "Version"), rf"^{re.escape(products.version())}\b")


def bill():
    return json.loads(products.product("*.spdx.json").read_text(encoding="utf-8"))


class BillOfMaterialsTest(Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tree = cls.unpacked(cls.scratch)
        cls.rows = portable.read_manifest(cls.tree)
        cls.bill = bill()
        cls.packages = {package["name"]: package for package in cls.bill["packages"]}
        cls.related = {(said["spdxElementId"], said["relationshipType"], said["relatedSpdxElement"])
                       for said in cls.bill["relationships"]}

    def test_it_is_a_document_of_spdx_2_3(self):
        for name, expected in (("spdxVersion", "SPDX-2.3"), ("dataLicense", "CC0-1.0"), ("SPDXID", "SPDXRef-DOCUMENT")):
            self.assertEqual(self.bill[name], expected)
        self.assertRegex(self.bill["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertRegex(self.bill["documentNamespace"], r"^urn:\S+$")

    def test_identifiers_are_single_and_known(self):
        things = [*self.bill["packages"], *self.bill["files"]]
        identifiers = [thing["SPDXID"] for thing in things] + ["SPDXRef-DOCUMENT"]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        for identifier in identifiers:
            self.assertRegex(identifier, IDENTIFIER)
        for subject, _, other in self.related:
            self.assertIn(subject, identifiers)
            self.assertIn(other, identifiers)
        self.assertEqual([said for said in self.related if said[1] == "DESCRIBES"],
                         [("SPDXRef-DOCUMENT", "DESCRIBES", self.packages["orrery"]["SPDXID"])])

    def test_each_package_of_the_tree_is_in_it_with_its_version(self):
        self.assertEqual({row.package: row.version for row in self.rows if row.package != "orrery"},
                         {name: package["versionInfo"] for name, package in self.packages.items() if name != "orrery"})

    def test_each_carried_file_is_in_it_with_its_digest(self):
        digests = {file["fileName"]: {sum["algorithm"]: sum["checksumValue"] for sum in file["checksums"]}
                   for file in self.bill["files"]}
        self.assertEqual(set(digests), {f"./{row.path}" for row in self.rows if row.kind == "file"})
        for name, sums in digests.items():
            data = (self.tree / name).read_bytes()
            self.assertEqual(sums, {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()})

    def test_it_says_how_each_belongs_to_the_program(self):
        own = self.packages["orrery"]["SPDXID"]
        for row in self.rows:
            package = self.packages[row.package]["SPDXID"]
            if row.kind != "file":
                self.assertIn((own, "STATIC_LINK", package), self.related, row)
            elif ".so" in row.path:
                self.assertIn((own, "DYNAMIC_LINK", package), self.related, row)

    def test_licences_are_there_as_texts(self):
        texts = {licence["licenseId"]: licence["extractedText"] for licence in self.bill["hasExtractedLicensingInfos"]}
        for name, package in self.packages.items():
            if name != "orrery":
                self.assertRegex(package["licenseDeclared"], LICENCE)
                self.assertGreater(len(texts[package["licenseDeclared"]]), 500)
        row = next(row for row in self.rows if row.licence.endswith(".gz"))
        self.assertEqual(texts[self.packages[row.package]["licenseDeclared"]],
                         gzip.decompress((self.tree / row.licence).read_bytes()).decode("utf-8", "replace"))


if __name__ == "__main__":
    unittest.main()
