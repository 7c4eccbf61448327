"""`orrery query`: rows as a table or as JSON, mistakes at their place, and how rows were found."""

import json
import os
import pty
import subprocess
import unittest

import commands
from commands import MANY_RANGES
from harness import wire

MOONS = {"io": ("jupiter", 1821.6), "europa": ("jupiter", 1560.8), "titan": ("saturn", 2574.7),
         "moon": ("earth", 1737.4)}


class QueryTest(commands.CommandLineTest):
    def moons(self, **options):
        container = self.container(headers=MANY_RANGES, **options)
        for name, (planet, radius) in MOONS.items():
            container.write(name, planet=planet, radius=radius)
        return container

    def query(self, container, text, *arguments, stdin=None):
        """Its standard output and standard error."""
        done = self.run_command("query", container.name, text, *arguments, stdin=stdin)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout, done.stderr

    def rows(self, container, text, *arguments, stdin=None):
        out, said = self.query(container, text, *arguments, stdin=stdin)
        self.assertEqual(said, "")
        return [json.loads(line) for line in out.splitlines()]

    def complaint(self, *arguments, code=1):
        done = self.run_command("query", *arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done)
        return done.stderr

    # ── rows ──

    def test_json_lines_in_a_pipe(self):
        container = self.moons()
        self.assertEqual(self.rows(container, "SELECT VALUE c.id FROM c ORDER BY c.radius DESC"),
                         ["titan", "io", "moon", "europa"])
        self.assertEqual(self.rows(container, "SELECT c.planet, COUNT(1) AS n FROM c "
                                              "GROUP BY c.planet ORDER BY c.planet")[1],
                         {"planet": "jupiter", "n": 2})
        documents = self.rows(container, "SELECT * FROM c")
        self.assertEqual({each["id"] for each in documents}, set(MOONS))
        self.assertIn("_etag", documents[0])

    def test_a_document_with_line_breaks_is_one_line(self):
        container = self.container()
        text = '{"id": "a",\n "pk": "a",\r\n "n": 1.0}'
        made = self.connection.post(f"/{container.link}/docs", text, wire.key_header(["a"]))
        self.assertEqual(made.status, 201)
        out, _ = self.query(container, "SELECT * FROM c")
        self.assertEqual(len(out.splitlines()), 1)
        self.assertIn('"n": 1.0', out)

    def test_a_table_is_aligned_and_leaves_out_what_the_server_adds(self):
        container = self.moons()
        out, said = self.query(container, "SELECT * FROM c WHERE c.planet = 'jupiter' "
                                          "ORDER BY c.radius", "--table")
        self.assertEqual(out, "id      pk      planet   radius\n"
                              "------  ------  -------  ------\n"
                              "europa  europa  jupiter  1560.8\n"
                              "io      io      jupiter  1821.6\n")
        self.assertRegex(said, r"^2 rows · \d+\.\d\d RU · \d+\.\d ms\n$")

    def test_a_terminal_gets_a_table_that_fits(self):
        container = self.container()
        container.write("a", text="x" * 200)
        main, terminal = pty.openpty()
        with subprocess.Popen([commands.BINARY, "query", container.name,
                               "SELECT c.id, c.text FROM c"], env=self.environment,
                              stdin=terminal, stdout=terminal, stderr=subprocess.PIPE) as process:
            os.close(terminal)
            shown = b""
            try:
                while piece := os.read(main, 4096):
                    shown += piece
            except OSError:
                pass  # The last one has closed it.
            process.stderr.read()
            self.assertEqual(process.wait(commands.PATIENCE), 0)
        os.close(main)
        lines = shown.decode().splitlines()
        self.assertEqual(lines[0].split(), ["id", "text"])
        self.assertTrue(lines[2].startswith("a   xxx") and lines[2].endswith("x…"), lines)

    def test_parameters_are_json(self):
        container = self.moons()
        text = "SELECT VALUE c.id FROM c WHERE c.planet = @planet AND c.radius > @min"
        self.assertEqual(self.rows(container, text, "--param", 'planet="jupiter"',
                                   "--param", "@min=1600"), ["io"])
        self.assertEqual(self.rows(container, "SELECT VALUE ARRAY_LENGTH(@list)",
                                   "--param", "list=[1, 2, 3]", "--max", 1), [3])
        self.assertIn("--param 'planet=\"jupiter\"'", self.complaint(
            container.name, text, "--param", "planet=jupiter", code=2))
        self.assertIn("NAME=JSON", self.complaint(container.name, text, "--param", "planet",
                                                  code=2))

    def test_one_partition_key(self):
        container = self.moons()
        for key in ('"io"', '["io"]'):
            self.assertEqual(self.rows(container, "SELECT VALUE COUNT(1) FROM c", "--key", key), [1])
        self.assertEqual(self.rows(container, "SELECT VALUE COUNT(1) FROM c"), [4])

    def test_pages_are_fetched_as_needed(self):
        container = self.container(headers=MANY_RANGES)
        ids = sorted(container.fill(25))
        text = "SELECT VALUE c.id FROM c ORDER BY c.id"
        self.assertEqual(self.rows(container, text, "--page-size", 2), ids)
        self.assertEqual(self.rows(container, text, "--max", 7), ids[:7])
        self.assertEqual(self.rows(container, text, "--max", 7, "--page-size", 3), ids[:7])
        _, said = self.query(container, text, "--table", "--max", 7)
        self.assertIn("7 rows", said)
        self.assertIn("more rows may follow", said)

    def test_the_text_may_come_from_standard_input(self):
        container = self.moons()
        self.assertEqual(self.rows(container, "-", stdin="SELECT VALUE\n c.planet FROM c\n"
                                                         "WHERE c.id = 'moon'\n"), ["earth"])

    # ── mistakes ──

    def test_a_mistake_is_shown_at_its_place(self):
        container = self.moons()
        self.assertEqual(self.complaint(container.name, "SELECT *\nFROM c\nWHERE c.id ! 1")
                         .splitlines()[1:], ["  line 3: WHERE c.id ! 1",
                                             "                     ^"])
        lines = self.complaint(container.name, "SELECT c.id FROM c WHERE").splitlines()
        self.assertIn("Syntax error", lines[0])
        self.assertEqual(lines[1:], ["  SELECT c.id FROM c WHERE",
                                     "                          ^"])
        lines = self.complaint(container.name, "SELECT VALUE NO_SUCH(c.id) FROM c").splitlines()
        self.assertIn("NO_SUCH", lines[0])
        self.assertEqual(lines[2].find("^"), lines[1].find("NO_SUCH"))

    def test_what_is_not_there_is_said_in_one_line(self):
        container = self.container()
        for arguments, code, words in (
                (("no/where", "SELECT * FROM c"), 1, "there is no container no/where"),
                (("nowhere", "SELECT * FROM c"), 2, "DATABASE/CONTAINER"),
                ((container.name, "SELECT * FROM c", "--key", "{"), 1, "key")):
            said = self.complaint(*arguments, code=code)
            self.assertIn(words, said)
            self.assertEqual(len(said.splitlines()), 1, said)

    def test_options_that_make_no_sense(self):
        container = self.container()
        for options in (("--max", "0"), ("--page-size", "0"), ("--json", "--table")):
            done = self.run_command("query", container.name, "SELECT * FROM c", *options)
            self.assertEqual(done.returncode, 2, done)

    # ── explanations ──

    def test_explain_says_what_was_scanned(self):
        container = self.moons()
        out, said = self.query(container, "SELECT VALUE c.id FROM c WHERE CONTAINS(c.id, 'o')",
                               "--explain")
        self.assertEqual(sorted(map(json.loads, out.splitlines())), ["europa", "io", "moon"])
        self.assertRegex(said, r"No index was used in all \d+ ranges that were asked: "
                               r"4 documents were read one after the other, and 3 rows came of them")
        self.assertRegex(said, r"The server took \d+\.\d\d ms for 1 page:")

    def test_explain_counts_the_rows_that_are_shown(self):
        container = self.container()
        container.fill(2)
        out, said = self.query(container, "SELECT VALUE c.id FROM c", "--explain", "--page-size", 1)
        self.assertEqual(len(out.splitlines()), 2)
        self.assertIn("and 2 rows came of them", said)

    def test_explain_does_not_propose_what_has_served(self):
        container = self.container()
        container.write("a", **{"b,c": 5})
        _, said = self.query(container, "SELECT * FROM c WHERE c.id = 'a' AND c.pk = 'a'", "--explain")
        self.assertIn("The index on /id found the documents", said)
        self.assertNotIn("would help", said)
        _, said = self.query(container, "SELECT * FROM c WHERE c['b,c'] = 5", "--explain")
        self.assertIn('An index on /"b,c" would help', said)

    def test_explain_names_the_index_that_served(self):
        container = self.container()
        container.fill(50, kind="common")
        container.write("rare", kind="rare")
        text = "SELECT VALUE c.id FROM c WHERE c.kind = 'rare'"
        out, said = self.query(container, text, "--explain")
        self.assertEqual(out, '"rare"\n')
        self.assertIn("51 documents were read one after the other, and 1 row came of them", said)
        self.assertIn("An index on /kind would help", said)
        # So few documents are not worth an index, unless somebody insists.
        built = self.connection.post(f"/{container.link}/docs", {"query": text}, {
            "x-ms-documentdb-isquery": "True", "x-orrery-query-access": "index",
             "x-ms-documentdb-query-enablecrosspartition": "True"})
        self.assertEqual(built.status, 200, built)
        out, said = self.query(container, text, "--explain")
        self.assertEqual(out, '"rare"\n')
        self.assertIn("The index on /kind found the documents in the only range that was asked: "
                      "1 entry and 1 document were read, and 1 row came of it", said)


if __name__ == "__main__":
    unittest.main()
