#!/usr/bin/env python3
"""That check_maps.py finds each kind of lie, and that a true map has none.

The tests write a small project with true maps, change one thing in it, and look at what is said.
"""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_maps  # noqa: E402
import cpp_text  # noqa: E402
import markdown  # noqa: E402

WAY = """### {section}

| # | file | function | step |
|---|---|---|---|
| 1 | `src/storage/store.cc` | `Store::commit`, `probe` | writes; then `Store::retry` |
| 2 | `src/server/server.cc` | `ServerImpl::start` | waits |

"""

ARCHITECTURE = "# Architecture\n\nSee `storage/store.h` and `src/storage/store.cc`, `store.cc`.\n\n" + \
    "".join(WAY.format(section=section) for section in check_maps.PATHS) + """## Disk

| family | key | value |
|---|---|---|
| `heads` | partition | head |
| `log` | LSN | version |

## Modules

```layers
│       cli       │
│     server      │
│ http │ storage  │
│      json       │
│      base       │
```

| module | what it is | may include, of ours |
|---|---|---|
| [base](../src/base/README.md) | ground | nothing |
| [json](../src/json/README.md) | text | base |
| [http](../src/http/README.md) | the port | base |
| [storage](../src/storage/README.md) | RocksDB | base, json |
| [server](../src/server/README.md) | wiring | base, json, http, storage |
| [cli](../src/cli/README.md) | commands | base, json, `include/orrery`; in `src/cli/operate` also server |

| library | may be included in |
|---|---|
| RocksDB | storage |
"""

THREADS = """# Threads

| threads | member | file | how many |
|---|---|---|---|
| main | — | — | 1 |
| writer pool | `ServerImpl::writers_` | `src/server/server.cc` | 2, at most |
| committer | `ServerImpl::committer_` | `src/server/server.cc` | 1 |
| helpers | `ServerImpl::help` | `src/server/server.cc` | some |
"""

COMPATIBILITY = """# Compatibility

| waits for | tests |
|---|---|
| scripts | 1 |
| nothing: a fault | 1 |
| **together** | **2** |

| file | pass | wait |
|---|---|---|
| `a.js` | 2 | 1 |
| others | 1 | 1 |
| **together** | **3** | **2** |
"""

OWN_TESTS = """{"pass": ["a.js: one", "a.js: two", "b.js: one"],
 "waits": {"a.js: three": "scripts", "b.js: two": "nothing: because"}}"""

STORE = """// enum class Family { Wrong };
namespace orrery::storage {
constexpr std::array<const char*, 2> kFamilyNames = {"heads", "log"};

void probe() {
  flush();
}

Result<> Store::commit(Batch batch) {
  return write(batch);
}

Result<> Store::retry() { return {}; }
}
"""

SERVER = """namespace orrery::server {
constexpr std::size_t kWriters = 2;

class ServerImpl final : public Server {
 public:
  Result<> start() {
    // Nothing: void stop()
    return open();
  }

 private:
  asio::thread_pool& other_;
  asio::thread_pool writers_{kWriters};
  std::thread committer_;
};

void ServerImpl::help() {
  std::thread([] {}).detach();
}
}
"""

FILES = {
    "docs/architecture.md": ARCHITECTURE,
    "docs/internals/threads.md": THREADS,
    "docs/compatibility.md": COMPATIBILITY,
    "docs/guide.md": "# Guide\n\n[disk](architecture.md#disk), [store](../src/storage/store.cc)\n",
    "docs/architecture.svg": "<svg><text>writer pool: 2 threads</text><text>heads, log</text></svg>",
    "tests/sdks/documentdb_own_expected.json": OWN_TESTS,
    "include/orrery/client.h": "",
    "src/base/base.h": "",
    "src/json/json.h": "",
    "src/http/http.h": "",
    "src/storage/store.h": "",
    "src/storage/store.cc": STORE,
    "src/storage/store_open.cc": STORE + "#include <rocksdb/db.h>\n",
    "src/storage/batch.h": "enum class Family : std::uint8_t { Heads, Log };\n",
    "src/server/server.cc": SERVER,
    "src/server/server_test.cc": "std::thread mine;\n",
    "src/cli/operate/serve.cc": "",
    "CMakeLists.txt": "orrery_module(base LIBS spdlog)\norrery_module(json DEPS base LIBS simdjson)\n"
                      "orrery_module(cli DEPS base json server)\n",
}


class MapsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        for name, text in FILES.items():
            self.write(name, text)
        for module in ("base", "json", "http", "storage", "server", "cli"):
            self.write(f"src/{module}/README.md", "")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def change(self, name, before, after):
        text = (self.root / name).read_text(encoding="utf-8")
        self.assertIn(before, text)
        self.write(name, text.replace(before, after, 1))

    def lies(self):
        return check_maps.MapChecker(self.root).check()

    def assert_lie(self, words, count=1):
        """There is a lie with these words, and `count` in all."""
        found = self.lies()
        self.assertTrue(any(words in lie for lie in found), f"'{words}' in {found}")
        self.assertEqual(len(found), count, found)
        for lie in found:
            self.assertRegex(lie, r"^[\w./-]+:\d+: ")

    def test_true_maps_have_no_lie(self):
        self.assertEqual(self.lies(), [])

    # ── files and functions ──

    def test_a_file_that_is_not_there(self):
        for place, wrong in (("`storage/store.h`", "`storage/shop.h`"), ("`store.cc`", "`shop.cc`"),
                             ("`src/storage/store.cc`, ", "`src/storage/shop.cc`, ")):
            with self.subTest(wrong):
                self.change("docs/architecture.md", place, wrong)
                self.assert_lie(f"docs/architecture.md:3: there is no file '{wrong[1:8]}")
                self.write("docs/architecture.md", ARCHITECTURE)

    def test_a_file_of_a_way_that_is_not_there(self):
        (self.root / "src/server/server.cc").unlink()
        found = self.lies()
        self.assertTrue(any("there is no file 'src/server/server.cc'" in lie for lie in found))

    def test_a_function_that_is_called_but_not_defined(self):
        self.change("docs/architecture.md", "`Store::commit`, `probe`", "`Store::commit`, `flush`")
        self.assert_lie("src/storage/store.cc has no function 'flush'")

    def test_a_function_of_another_type(self):
        self.change("docs/architecture.md", "`ServerImpl::start`", "`Server::start`")
        self.assert_lie("has no function 'Server::start'")

    def test_a_function_that_is_only_in_a_comment(self):
        self.change("docs/architecture.md", "`ServerImpl::start`", "`ServerImpl::stop`")
        self.assert_lie("has no function 'ServerImpl::stop'")

    def test_a_qualified_name_in_the_text_of_a_step(self):
        self.change("docs/architecture.md", "then `Store::retry`", "then `Store::repeat`")
        self.assert_lie("has no function 'Store::repeat'")

    def test_a_function_that_was_renamed(self):
        self.change("src/storage/store.cc", "Store::commit", "Store::write")
        self.assert_lie("has no function 'Store::commit'", count=len(check_maps.PATHS))

    def test_a_step_without_a_function_or_out_of_order(self):
        self.change("docs/architecture.md", "| `ServerImpl::start` |", "| |")
        self.assert_lie("names one file and at least one function")
        self.write("docs/architecture.md", ARCHITECTURE.replace("| 2 |", "| 3 |", 1))
        self.assert_lie("step 2 has the number '3'")

    def test_a_path_without_its_way(self):
        self.change("docs/architecture.md", "### A split", "### A cut")
        self.assert_lie("'A split' has no way through the code")

    # ── modules ──

    def test_a_module_that_the_table_lacks(self):
        self.change("docs/architecture.md", "| [http](../src/http/README.md) | the port | base |\n",
                    "")
        self.assert_lie("the table of modules lacks 'http'")

    def test_a_module_that_is_not_there(self):
        self.change("docs/architecture.md", "| [base](../src/base/README.md) |", "| ground |")
        self.assert_lie("src/ has no module 'ground'", count=2)

    def test_a_module_twice(self):
        row = "| [base](../src/base/README.md) | ground | nothing |\n"
        self.change("docs/architecture.md", row, row + row)
        self.assert_lie("the table of modules has 'base' twice")

    def test_another_may_include_than_that_of_the_layers(self):
        self.change("docs/architecture.md", "| the port | base |", "| the port | base, json |")
        self.assert_lie("'http' may include base, not base, json")

    def test_an_exception_that_is_not_told_or_is_another(self):
        self.change("docs/architecture.md", "; in `src/cli/operate` also server", "")
        self.assert_lie("the exceptions of 'cli' are")
        self.write("docs/architecture.md", ARCHITECTURE.replace("also server", "also http"))
        self.assert_lie("the exceptions of 'cli' are")

    def test_modules_to_come_are_passed_over(self):
        self.assertIn("script", check_maps.check_layers.MAY_INCLUDE["server"])
        self.assertEqual(self.lies(), [])

    def test_deps_beyond_the_layers(self):
        self.change("CMakeLists.txt", "json DEPS base", "json DEPS base http")
        self.assert_lie("CMakeLists.txt:2: 'json' has 'http' in DEPS")

    # ── layers ──

    def test_a_drawing_upside_down(self):
        self.change("docs/architecture.md", "│      json       │\n│      base       │",
                    "│      base       │\n│      json       │")
        self.assert_lie("'json' may include 'base', which is not below it")

    def test_modules_side_by_side_that_include_each_other(self):
        self.change("docs/architecture.md", "│     server      │\n│ http │ storage  │",
                    "│ http │ storage  │ server │")
        self.assert_lie("'server' may include 'http', which is not below it", count=2)

    def test_a_drawing_that_lacks_doubles_or_invents_a_module(self):
        self.change("docs/architecture.md", "│ http │", "│")
        self.assert_lie("the drawing lacks the module 'http'")
        self.write("docs/architecture.md", ARCHITECTURE.replace("│ http │", "│ http │ http │"))
        self.assert_lie("the drawing has 'http' twice")
        self.write("docs/architecture.md", ARCHITECTURE.replace("│ http │", "│ http │ magic │"))
        self.assert_lie("the drawing has 'magic', which is no module")

    def test_no_drawing(self):
        self.change("docs/architecture.md", "```layers", "```text")
        self.assert_lie("0 drawings of layers")

    # ── libraries and families ──

    def test_libraries_elsewhere_missing_or_unused(self):
        self.change("docs/architecture.md", "| RocksDB | storage |", "| RocksDB | server |")
        self.assert_lie("'RocksDB' may be included in storage, not server")
        self.write("docs/architecture.md", ARCHITECTURE.replace("| RocksDB | storage |\n", ""))
        self.assert_lie("the table of libraries lacks 'RocksDB'")
        self.write("docs/architecture.md", ARCHITECTURE + "| Beast | http |\n")
        self.assert_lie("nobody includes 'Beast'")

    def test_families_that_differ(self):
        self.change("docs/architecture.md", "| `log` | LSN | version |\n", "")
        self.assert_lie("the column families are heads, log; the table has heads")
        self.write("docs/architecture.md", ARCHITECTURE.replace("| `log` |", "| `logs` |"))
        self.assert_lie("the table has heads, logs")

    def test_names_of_families_that_do_not_agree_in_the_code(self):
        self.write("src/storage/batch.h", "enum class Family { Heads, Ids };\n")
        self.assertTrue(any("do not agree" in lie for lie in self.lies()))

    # ── threads ──

    def test_a_thread_without_a_row(self):
        self.write("src/http/loop.h", "class Loop {\n  std::optional<asio::thread_pool> pool_;\n};\n")
        self.assert_lie("src/http/loop.h:2: 'Loop::pool_' holds threads and has no row")

    def test_a_detached_thread_without_a_row(self):
        self.write("src/http/loop.cc", "void Loop::run() {\n  std::thread([] {}).detach();\n}\n")
        self.assert_lie("src/http/loop.cc:2: 'Loop::run' holds threads and has no row")

    def test_a_row_without_a_thread(self):
        self.change("src/server/server.cc", "  std::thread committer_;\n", "")
        self.assert_lie("has no member 'ServerImpl::committer_' that holds threads")

    def test_a_pool_of_another_size(self):
        self.change("src/server/server.cc", "kWriters = 2", "kWriters = 3")
        self.assert_lie("'ServerImpl::writers_' has 3 threads, not '2, at most'")

    def test_a_picture_with_other_pools_or_families(self):
        self.change("docs/architecture.svg", "writer pool: 2", "writer pool: 4")
        self.assert_lie("'writer pool' has 2, at most in docs/internals/threads.md, here 4")
        self.write("docs/architecture.svg", "<svg>scan pool: 2 threads, heads, log</svg>")
        self.assert_lie("'scan pool' has no row")
        self.write("docs/architecture.svg", "<svg>heads</svg>")
        self.assert_lie("the column family 'log' is missing")

    # ── documentdb's own tests, links ──

    def test_counts_of_own_tests(self):
        self.change("docs/compatibility.md", "| `a.js` | 2 | 1 |", "| `a.js` | 3 | 1 |")
        self.assert_lie("pass: tests/sdks/documentdb_own_expected.json has 2 tests, not 3")
        self.write("docs/compatibility.md", COMPATIBILITY.replace("**2**", "**1**"))
        self.assert_lie("has 2 tests, not **1**", count=2)
        self.write("docs/compatibility.md", COMPATIBILITY.replace("| scripts | 1 |\n", ""))
        self.assert_lie("no row says that tests wait for 'scripts'")
        self.write("docs/compatibility.md", COMPATIBILITY.replace("| scripts | 1 |",
                                                                  "| scripts | 7 |"))
        self.assert_lie("has 1 tests, not 7")

    def test_links_that_lead_nowhere(self):
        self.change("docs/guide.md", "../src/storage/store.cc", "../src/storage/shop.cc")
        self.assert_lie("docs/guide.md:3: the link leads to '../src/storage/shop.cc'")
        self.write("docs/guide.md", "[a](architecture.md#disks) [b](#here) [c](https://x.example/y)\n")
        self.assert_lie("'architecture.md' has no heading '#disks'", count=2)

    def test_a_map_that_is_not_there(self):
        (self.root / "docs/internals/threads.md").unlink()
        self.assertTrue(any("docs/internals/threads.md:1: there is no such file" in lie
                            for lie in self.lies()))


class ReadingTest(unittest.TestCase):
    def test_definitions(self):
        text = cpp_text.without_comments(
            "// void in_comment();\n"
            "template <typename T>\nResult<std::optional<T>>\nsplit_line(T t) {\n  return call(t);\n}\n"
            "class Outer::Inner final {\n  [[nodiscard]] bool ready() const { return ask(); }\n};\n"
            "Outer::Inner* Outer::make(int) {\n  co_await pause(1);\n  const auto x = find(2);\n}\n"
            "namespace a::documents {\nAsync<> create(int) {}\n}\n")
        for name in ("split_line", "Inner::ready", "Outer::Inner::ready", "Outer::make", "ready",
                     "documents::create", "create"):
            self.assertTrue(cpp_text.defines(text, name), name)
        for name in ("in_comment", "call", "ask", "pause", "find", "Outer::ready", "other::create",
                     "Inner::make"):
            self.assertFalse(cpp_text.defines(text, name), name)

    def test_thread_holders(self):
        text = ("constexpr int kMany = 5;\nstruct A {\n  void f(std::thread& t, asio::thread_pool& p);\n"
                "  BackgroundPool pool_{kMany, [] {}};\n  BackgroundPool* other_ = nullptr;\n};\n"
                "class B {\n  std::vector<std::jthread> all_;\n};\n")
        self.assertEqual([(each.name, each.size) for each in cpp_text.thread_holders(text)],
                         [("A::pool_", 5), ("B::all_", None)])

    def test_tables_and_blocks(self):
        text = "## One\n\n```layers\n| a | b |\n```\n| x | y |\n|---|---|\n| `1|2` | 3 |\n"
        self.assertEqual(markdown.blocks(text)[0].lines, ("| a | b |",))
        table, = markdown.tables(text)
        self.assertEqual((table.section, table.rows[0].line, table.rows[0].cells),
                         ("One", 8, {"x": "`1|2`", "y": "3"}))

    def test_anchors(self):
        self.assertEqual(markdown.anchors("# On it: the C++ `SDK`\n```\n# no\n```\n"),
                         {"on-it-the-c-sdk"})


if __name__ == "__main__":
    unittest.main()
