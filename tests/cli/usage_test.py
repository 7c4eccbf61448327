"""The binary as a newcomer meets it: help, the version, words that are no commands, keys."""

import base64
import os
import pathlib
import stat
import subprocess
import tempfile
import unittest

import commands

COMMANDS = ("serve", "feed", "query", "process", "leases", "copy", "split", "merge", "keygen", "version")


def orrery(*arguments):
    return subprocess.run([commands.BINARY, *arguments], text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=commands.PATIENCE)


class HelpTest(unittest.TestCase):
    def test_help_is_shown_to_whoever_asks_or_says_nothing(self):
        for words in ((), ("help",), ("--help",)):
            shown = orrery(*words)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""), words)
            for command in COMMANDS:
                self.assertRegex(shown.stdout, rf"\n +{command} +\w")

    def test_each_command_has_help(self):
        for words in (*((command,) for command in COMMANDS), ("feed", "tail"), ("leases", "reset")):
            shown = orrery("help", *words)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""), words)
            self.assertIn(f"Usage: orrery {' '.join(words)}", shown.stdout)
            self.assertEqual(orrery(*words, "--help").stdout, shown.stdout)
            # Words of people, not of the library that parses them.
            self.assertNotRegex(shown.stdout.partition("A handler may answer")[0], r"ENUM|\bU?INT\b|FLOAT|\{")

    def test_options_that_are_words_show_them(self):
        for command, words in ((("serve",), "--durability strict|relaxed"),
                               (("serve",), "--log-level debug|info|warning|error|off"),
                               (("serve",), "--cross-partition-queries serve|plan"),
                               (("process",), "--balance equal|weighted"),
                               (("feed", "tail"), "--output pretty|json|etag")):
            self.assertIn(words, orrery("help", *command).stdout)

    def test_the_version(self):
        versions = {(orrery(word).returncode, orrery(word).stdout) for word in ("version", "--version")}
        self.assertEqual(len(versions), 1, versions)
        self.assertRegex(versions.pop()[1], r"^orrery \d+\.\d+\.\d+( \([0-9a-f]{12}(-dirty)?\))?\n$")


class MistakesTest(unittest.TestCase):
    def assert_mistake(self, *words, says):
        done = orrery(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done)
        self.assertIn(says, done.stderr)
        self.assertLess(len(done.stderr.splitlines()), 3, done.stderr)

    def test_what_was_meant(self):
        self.assert_mistake("sevre", says="did you mean 'serve'?")
        self.assert_mistake("leases", "stauts", says="did you mean 'status'?")
        self.assert_mistake("xyzzy", says="there is no command 'orrery xyzzy'\n")
        self.assert_mistake("serve", "--data-dri", "x", says="did you mean --data-dir?")
        self.assert_mistake("feed", says="tail or lag")

    def test_values_that_an_option_does_not_take(self):
        self.assert_mistake("serve", "--durability", "fast",
                            says='orrery: --durability must be strict or relaxed, not "fast"\n')
        self.assert_mistake("serve", "--log-level", "loud",
                            says='--log-level must be debug, info, warning, error or off, not "loud"')
        self.assert_mistake("serve", "--threads", "many", says="--threads must be from 0 to 256, not many")
        self.assert_mistake("serve", "--threads", "999", says="--threads must be from 0 to 256, not 999")
        self.assert_mistake("serve", "--listen", "[::1", says="--listen takes ADDRESS:PORT")


class KeygenTest(unittest.TestCase):
    def test_a_key_is_one_line(self):
        first, second = orrery("keygen"), orrery("keygen")
        self.assertEqual((first.returncode, first.stderr), (0, ""))
        self.assertEqual(first.stdout.count("\n"), 1)
        self.assertEqual(len(base64.b64decode(first.stdout, validate=False)), 64)
        self.assertNotEqual(first.stdout, second.stdout)

    def test_a_file_of_it_is_new_and_its_owners(self):
        with tempfile.TemporaryDirectory(prefix="orrery-cli-") as directory:
            path = pathlib.Path(directory) / "key"
            self.assertEqual(orrery("keygen", "--file", str(path)).returncode, 0)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            before = path.read_text()
            again = orrery("keygen", "--file", str(path))
            self.assertEqual(again.returncode, 1)
            self.assertIn("File exists", again.stderr)
            self.assertEqual(path.read_text(), before)


if __name__ == "__main__":
    unittest.main()
