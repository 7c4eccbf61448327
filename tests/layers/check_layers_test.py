#!/usr/bin/env python3
"""That check_layers.py finds what it should, and nothing else."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_layers  # noqa: E402


class CheckLayersTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.root = pathlib.Path(self.directory.name)
        for module in check_layers.MAY_INCLUDE:
            if module != "orrery":
                self.write(f"src/{module}/{module}.h", "#pragma once\n")
        self.write("include/orrery/client.h", "#pragma once\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def violations(self):
        return check_layers.Checker(self.root).check()

    def assert_allowed(self, file, include):
        self.write(file, f"#include {include}\n")
        self.assertEqual(self.violations(), [], f"{file} includes {include}")
        (self.root / file).unlink()

    def assert_refused(self, file, include, rule=""):
        self.write(file, f"// a line\n#include {include}\n")
        found = self.violations()
        self.assertEqual(len(found), 1, f"{file} includes {include}: {found}")
        self.assertTrue(found[0].startswith(f"{file}:2: {include.strip('<>')!s}".replace('"', "")),
                        found[0])
        self.assertIn(rule, found[0])
        (self.root / file).unlink()

    def test_a_module_may_include_itself_and_what_the_table_lists(self):
        self.assert_allowed("src/storage/a.cc", '"storage/storage.h"')
        self.assert_allowed("src/storage/a.cc", '"protocol/protocol.h"')
        self.assert_allowed("src/partition/a.h", '"commitlog/commitlog.h"')
        self.assert_allowed("src/server/a.cc", '"api/api.h"')

    def test_no_include_points_up_or_sideways(self):
        self.assert_refused("src/base/a.h", '"json/json.h"', "'base' may include no other module")
        self.assert_refused("src/storage/a.cc", '"partition/partition.h"', "not 'partition'")
        self.assert_refused("src/query/a.cc", '"storage/storage.h"')
        self.assert_refused("src/http/a.cc", '"json/json.h"')
        self.assert_refused("src/catalog/a.cc", '"commitlog/commitlog.h"')
        self.assert_refused("src/client/a.cc", '"server/server.h"')

    def assert_name_refused(self, file, code, rule):
        self.write(file, f"// storage::Store in a comment\n{code}\n")
        found = self.violations()
        self.assertEqual(len(found), 1, f"{file}: {code}: {found}")
        self.assertTrue(found[0].startswith(f"{file}:2: "), found[0])
        self.assertIn(rule, found[0])
        (self.root / file).unlink()

    def test_names_follow_the_same_table_as_includes(self):
        self.assert_name_refused("src/api/a.cc", "storage::Store& store;", "not 'storage'")
        self.assert_name_refused("src/api/a.h", "using orrery::storage::Lookup;", "not 'storage'")
        self.assert_name_refused("src/storage/a.cc", "nlohmann::json value;", "nlohmann-json lives in")
        self.assert_name_refused("src/partition/a.cc", "rocksdb::DB* db;", "RocksDB lives in src/storage")
        self.write("src/api/a.cc", 'auto text = "storage::Store"; partition::Partition* p; // storage::x\n')
        self.assertEqual(self.violations(), [])

    def test_the_precompiled_headers_hold_only_what_all_may_use(self):
        self.write("cmake/pch.h", "#include <boost/asio.hpp>\n#include <vector>\n#include <fmt/format.h>\n")
        self.assertEqual(self.violations(), [])
        self.write("cmake/pch.h", "#include <vector>\n#include <CLI/CLI.hpp>\n")
        self.assertEqual(len(self.violations()), 1)
        self.assertTrue(self.violations()[0].startswith("cmake/pch.h:2: CLI/CLI.hpp: "))
        self.write("cmake/pch.h", '#include "storage/storage.h"\n')
        self.assertEqual(len(self.violations()), 1)

    def test_tests_may_include_all_that_lies_below_and_nothing_above(self):
        self.assert_allowed("src/catalog/a_test.cc", '"commitlog/commitlog.h"')
        self.assert_allowed("src/catalog/test_a.h", '"commitlog/commitlog.h"')
        self.assert_allowed("src/api/a_fuzz.cc", '"storage/storage.h"')
        self.assert_refused("src/partition/a_test.cc", '"catalog/catalog.h"')

    def test_what_is_made_for_tests_is_for_tests(self):
        self.write("src/storage/test_store.h", "#pragma once\n")
        self.assert_allowed("src/storage/a_test.cc", '"storage/test_store.h"')
        self.assert_allowed("src/partition/test_a.h", '"storage/test_store.h"')
        self.assert_refused("src/storage/a.cc", '"storage/test_store.h"', "only tests")
        self.assert_allowed("src/storage/a_test.cc", "<gtest/gtest.h>")
        self.assert_refused("src/storage/a.cc", "<gmock/gmock.h>", "for tests only")

    def test_one_folder_of_the_command_line_may_include_the_server(self):
        self.assert_allowed("src/cli/operate/serve.cc", '"server/server.h"')
        self.assert_refused("src/cli/main.cc", '"server/server.h"')

    def test_heavy_libraries_stay_at_home(self):
        self.assert_allowed("src/storage/a.cc", "<rocksdb/db.h>")
        self.assert_refused("src/storage/a.h", "<rocksdb/db.h>", "not in headers")
        self.assert_refused("src/catalog/a.cc", "<rocksdb/db.h>", "src/storage")
        self.assert_allowed("src/http/a.cc", "<boost/beast/http.hpp>")
        self.assert_refused("src/api/a.cc", "<boost/beast.hpp>", "src/http")
        self.assert_allowed("src/api/a.cc", "<boost/asio.hpp>")
        self.assert_refused("src/protocol/a.cc", "<simdjson.h>", "src/json")
        self.assert_allowed("src/protocol/a.cc", "<openssl/sha.h>")
        self.assert_refused("src/api/a.cc", "<openssl/sha.h>", "src/http, src/protocol")
        self.assert_refused("src/http/a.h", "<openssl/ssl.h>", "not in headers")
        self.assert_allowed("src/http/test_a.h", "<openssl/ssl.h>")
        self.assert_refused("src/api/a.cc", "<prometheus/registry.h>", "src/server")
        self.assert_allowed("src/protocol/a.h", "<nlohmann/json.hpp>")
        self.assert_refused("src/partition/a.cc", "<nlohmann/json.hpp>", "nlohmann")
        self.assert_allowed("src/sinks/a.cc", "<libpq-fe.h>")
        self.assert_refused("src/api/a.cc", "<libpq-fe.h>", "src/commitlog")

    def test_public_headers_include_nothing_of_the_inside(self):
        self.assert_allowed("include/orrery/a.h", "<orrery/client.h>")
        self.assert_allowed("src/client/a.cc", '"orrery/client.h"')
        self.assert_refused("include/orrery/a.h", '"base/base.h"')
        self.assert_refused("src/api/a.cc", "<orrery/client.h>")

    def test_names_must_lead_somewhere(self):
        self.assert_refused("src/storage/a.cc", '"storage/missing.h"', "no such file")
        self.assert_refused("src/storage/a.cc", '"storage.h"', "named by their module")
        self.write("src/novel/a.h", "#pragma once\n")
        found = self.violations()
        self.assertEqual(len(found), 1)
        self.assertIn("not in the table", found[0])

    def test_comments_include_nothing(self):
        self.write("src/base/a.h", '// #include "json/json.h"\n/*\n#include "json/json.h"\n*/\n'
                                   '#include "json/json.h"\n')
        found = self.violations()
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("src/base/a.h:5:"), found[0])


if __name__ == "__main__":
    unittest.main()
