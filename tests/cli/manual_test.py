"""`orrery man` and `orrery completion` say what help says; man and the shells understand them.

What needs a program that is not on this machine (groff, mandoc, zsh, fish) is skipped, with a line that says so.
"""

import dataclasses
import functools
import os
import pathlib
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import commands

OPTION_LINE = re.compile(r"^  (-[\w-]+(?:,-[\w-]+)*)(?: (\S+))?")
COMMAND_LINE = re.compile(r"^  ([a-z]+) {2,}\S")
POSITIONAL_LINE = re.compile(r"^  ([a-z]+) \S")
VARIABLE = re.compile(r"\(Env:(\w+)\)")
WORDS = re.compile(r"[a-z][\w-]*(\|[a-z][\w-]*)+")
ENTRY = re.compile(r"^\.TP\n(.*)$", re.MULTILINE)
COMMENT = re.compile(r'^\.\\".*\n', re.MULTILINE)
BOLD = re.compile(r"\\fB(.*?)\\fR")
# Pages have no date on purpose: the same version gives the same bytes on every day.
KNOWN_REMARKS = ("missing date, using \"\": TH",)


def orrery(*arguments):
    return subprocess.run([commands.BINARY, *arguments], text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=commands.PATIENCE)


def insist_on(*programs):
    """Skips the test, or class, without them; the reason is a line of its own, since unittest shows letters only."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        reason = f"{' and '.join(missing)} is not on this machine"
        print(f"\nskipped: {reason}", file=sys.stderr)
        raise unittest.SkipTest(reason)


# ── What help says ────────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass
class Command:
    """A command as help shows it."""
    words: tuple  # () is the program as a whole
    commands: list
    options: dict  # of each name, the words it takes; none where it takes another value, or no value
    positionals: list
    variables: list

    @property
    def line(self):
        return " ".join(("orrery", *self.words))

    @property
    def page_name(self):
        return "-".join(("orrery", *self.words))

    @property
    def long_options(self):
        return {name for name in self.options if name.startswith("--")}


def read_help(words):
    shown = orrery("help", *words)
    assert shown.returncode == 0, shown
    command = Command(tuple(words), [], {}, [], VARIABLE.findall(shown.stdout))
    section = ""
    for line in shown.stdout.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            section = line
        elif found := OPTION_LINE.match(line):
            takes = found[2] if found[2] and WORDS.fullmatch(found[2]) else ""
            command.options.update(dict.fromkeys(found[1].split(","), takes.split("|") if takes else []))
        elif section == "Subcommands:" and (found := COMMAND_LINE.match(line)):
            command.commands.append(found[1])
        elif section == "Positionals:" and (found := POSITIONAL_LINE.match(line)):
            command.positionals.append(found[1])
    return command


@functools.cache
def all_commands():
    """All commands, from the program as a whole down to those that have none below."""
    found, waiting = [], [()]
    while waiting:
        command = read_help(waiting.pop())
        found.append(command)
        waiting += [(*command.words, name) for name in command.commands]
    return found


class HelpTest(unittest.TestCase):
    def test_the_walk_through_help_finds_what_is_known_to_be_there(self):
        """All other tests compare with it."""
        found = {command.line: command for command in all_commands()}
        self.assertGreaterEqual(found.keys(), {"orrery", "orrery serve", "orrery backup create"})
        self.assertIn("backup", found["orrery"].commands)
        self.assertEqual(found["orrery serve"].options["--durability"], ["strict", "relaxed"])
        self.assertIn("-h", found["orrery"].options)
        self.assertIn("--poll-delay", found["orrery process"].options)  # of a group with a heading of its own
        self.assertEqual(found["orrery query"].positionals, ["container", "query"])
        self.assertIn("ORRERY_DATA_DIR", found["orrery serve"].variables)


# ── Man pages ─────────────────────────────────────────────────────────────────────────────────────


def plain(roff):
    """What a reader sees of roff, besides requests."""
    signs = {"e": "\\", "-": "-", "(aq": "'", "(dq": '"', "(ga": "`", "(ha": "^", "(ti": "~", "&": ""}
    text = re.sub(r"\\f[BIR]", "", COMMENT.sub("", roff))
    text = re.sub(r"\\\[u([0-9A-F]{4,6})\]", lambda found: chr(int(found[1], 16)), text)
    return re.sub(r"\\(\(..|.)", lambda found: signs[found[1]], text)


class ManPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.TemporaryDirectory(prefix="orrery-man-")
        cls.addClassCleanup(cls.room.cleanup)
        cls.directory = pathlib.Path(cls.room.name) / "share" / "man1"  # is made
        written = orrery("man", "--all", str(cls.directory))
        assert (written.returncode, written.stdout, written.stderr) == (0, "", ""), written

    def page(self, command):
        return (self.directory / f"{command.page_name}.1").read_text(encoding="ascii")

    def test_each_command_has_a_page(self):
        self.assertEqual({path.name for path in self.directory.iterdir()},
                         {f"{command.page_name}.1" for command in all_commands()})

    def test_a_page_that_is_printed_is_the_one_that_is_written(self):
        for command in all_commands():
            self.assertEqual(orrery("man", *command.words).stdout, self.page(command))

    def test_a_page_has_the_options_that_help_has_and_no_others(self):
        for command in all_commands():
            entries = [entry for entry in ENTRY.findall(self.page(command)) if entry.startswith("\\fB\\-")]
            named = [plain(name) for entry in entries for name in BOLD.findall(entry)]
            self.assertEqual(sorted(named), sorted(command.options), command.line)

    def test_a_page_has_the_commands_arguments_words_and_variables_of_help(self):
        for command in all_commands():
            page = plain(self.page(command))
            entries = [plain(entry) for entry in ENTRY.findall(self.page(command))]
            for name in command.commands:
                self.assertIn(f"{command.line} {name}", entries)
                self.assertIn(f"{command.page_name}-{name}(1)", page)
            for name in command.positionals:
                self.assertTrue(any(entry.split()[0] == name for entry in entries), (command.line, name))
            for name, words in command.options.items():
                if words:
                    self.assertIn(f"{name} {'|'.join(words)}", entries, command.line)
            for variable in command.variables:
                self.assertIn(f"Environment variable: {variable}.", page)

    def test_a_page_has_the_parts_that_every_page_has(self):
        for command in all_commands():
            page = self.page(command)
            for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", '"EXIT STATUS"', '"SEE ALSO"'):
                self.assertEqual(page.count(f"\n.SH {title}\n"), 1, (command.line, title))
            # What apropos and whatis list: one line, "name \\- what it does".
            name = command.page_name.replace("-", r"\-")
            self.assertRegex(page, rf"\n\.SH NAME\n{re.escape(name)} \\- [a-z].*\n\.SH ")

    def test_a_command_that_there_is_not_has_no_page(self):
        refused = orrery("man", "backup", "craete")
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("there is no command 'orrery backup craete'; did you mean 'create'?", refused.stderr)

    def test_a_directory_that_cannot_be_written_is_a_failure(self):
        refused = orrery("man", "--all", "/dev/null/man1")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("/dev/null/man1", refused.stderr)

    def test_groff_renders_all_pages_without_a_warning(self):
        insist_on("groff")
        for path in sorted(self.directory.iterdir()):
            for device in ("ascii", "utf8"):
                done = subprocess.run(["groff", "-man", "-ww", "-z", f"-T{device}", path], text=True,
                                      capture_output=True, timeout=commands.PATIENCE)
                remarks = done.stderr.splitlines()
                if device == "ascii":  # has no sign for everything that examples contain
                    remarks = [line for line in remarks if "special character" not in line]
                self.assertEqual((done.returncode, remarks), (0, []), path.name)

    def test_mandoc_has_nothing_to_say_about_them(self):
        insist_on("mandoc")
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *sorted(self.directory.iterdir())], text=True,
                              capture_output=True, timeout=commands.PATIENCE)
        remarks = [line for line in (done.stdout + done.stderr).splitlines() if not line.endswith(KNOWN_REMARKS)]
        self.assertEqual(remarks, [])


# ── Completion ────────────────────────────────────────────────────────────────────────────────────


def script_of(shell, directory):
    printed = orrery("completion", shell)
    assert (printed.returncode, printed.stderr) == (0, ""), printed
    path = pathlib.Path(directory) / f"orrery.{shell}"
    path.write_text(printed.stdout)
    return path


def run_script(shell, text, *options, **variables):
    done = subprocess.run([shell, *options, "-c", text], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                          env=os.environ | variables, timeout=commands.PATIENCE)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def answers_in(text):
    """A list of sets, from "? question" and a line for each answer."""
    found = []
    for line in text.splitlines():
        if line.startswith("? "):
            found.append(set())
        elif line:
            found[-1].add(line)
    return found


class Bash:
    OPTIONS = ("--norc", "--noprofile")

    def __init__(self, directory):
        self.script = script_of("bash", directory)
        run_script("bash", f"source {self.script}", *self.OPTIONS, "-n")

    @staticmethod
    def words_of(line):
        """As readline gives them to a function: taken apart at = and :, with the one before the cursor at the end."""
        words = [part for word in line.split() for part in re.findall(r"[=:]+|[^=:]+", word)]
        return words + [""] if line.endswith(" ") else words

    def ask_words(self, questions):
        """Of each list of words that COMP_WORDS can have."""
        text = f"source {self.script}\nask() {{ COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)); _orrery; echo '? ';\n" \
               "  if ((${#COMPREPLY[@]})); then printf '%s\\n' \"${COMPREPLY[@]}\"; fi; }\n"
        return answers_in(run_script("bash", text + "\n".join("ask " + shlex.join(words) for words in questions),
                                     *self.OPTIONS))

    def ask(self, lines):
        return self.ask_words([self.words_of(line) for line in lines])


class Zsh:
    """Completion is a matter of the line editor, which wants a terminal. It gets one line after the other, and what
    goes through compadd is written down."""
    SETTINGS = """
        PROMPT= RPROMPT= LISTMAX=100000
        [[ $SCRIPT == */_orrery ]] && fpath=(${SCRIPT:h} $fpath)
        autoload -Uz compinit && compinit -u -D
        [[ $SCRIPT == */_orrery ]] || source $SCRIPT
        compadd() {
          local -a found
          if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
            builtin compadd -A found "$@"
            print -rl -- $found >> $ANSWERS
          fi
          builtin compadd "$@"
        }
        asked=("${(@f)$(<$QUESTIONS)}")
        integer number=0
        zle-line-init() {
          (( ++number <= $#asked )) || exit 0
          print -r -- "? $asked[number]" >> $ANSWERS
          BUFFER=$asked[number] CURSOR=$#asked[number]
          zle list-choices
          BUFFER=
          zle accept-line
        }
        zle -N zle-line-init
    """

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.script = script_of("zsh", directory)
        subprocess.run(["zsh", "-n", self.script], check=True, timeout=commands.PATIENCE)
        (self.directory / ".zshrc").write_text(self.SETTINGS)

    def ask(self, lines, script=None):
        """The script is sourced; one with the name _orrery is found in a folder of $fpath instead."""
        questions, answers = self.directory / "questions", self.directory / "answers"
        questions.write_text("\n".join(lines))
        answers.write_text("")
        variables = {"ZDOTDIR": str(self.directory), "SCRIPT": str(script or self.script), "QUESTIONS": str(questions),
                     "ANSWERS": str(answers), "TERM": "dumb"}
        ours, its = pty.openpty()
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            shell = subprocess.Popen(["zsh", "-d", "-i"], stdin=its, stdout=its, stderr=its, env=os.environ | variables,
                                     start_new_session=True)
            os.close(its)
            watch = threading.Timer(commands.PATIENCE, shell.kill)
            watch.start()
            try:
                shown = self.read_to_the_end(terminal)
                assert shell.wait() == 0, shown
            finally:
                watch.cancel()
        return answers_in(answers.read_text())

    @staticmethod
    def read_to_the_end(terminal):
        """A terminal whose other side is closed is an error."""
        shown = b""
        try:
            while part := terminal.read(65536):
                shown += part
        except OSError:
            pass
        return shown.decode(errors="replace")


class Fish:
    def __init__(self, directory):
        self.script = script_of("fish", directory)
        self.home = str(directory)
        subprocess.run(["fish", "--no-execute", self.script], check=True, timeout=commands.PATIENCE)

    def ask(self, lines):
        return [{answer.split("\t")[0] for answer in answers} for answers in self.ask_for_all(lines)]

    def ask_for_all(self, lines, first=None):
        """With what is told of each, behind a tab. The script is sourced, unless something else is to be done first."""
        asked = "\n".join(f"echo '? '; complete -C {shlex.quote(line)}" for line in lines)
        # fish completes the options of a command only if there is one of that name.
        link = pathlib.Path(self.home) / "orrery"
        if not link.exists():
            link.symlink_to(pathlib.Path(commands.BINARY).resolve())
        variables = {"HOME": self.home, "PATH": f"{self.home}:{os.environ['PATH']}"}
        return answers_in(run_script("fish", f"{first or f'source {self.script}'}\n{asked}", **variables))


class CompletionTest:
    """The same questions for every shell."""

    @classmethod
    def setUpClass(cls):
        insist_on(cls.PROGRAM)
        cls.room = tempfile.TemporaryDirectory(prefix="orrery-completion-")
        cls.addClassCleanup(cls.room.cleanup)
        cls.directory = pathlib.Path(cls.room.name)
        (cls.directory / "files").mkdir()
        for name in ("alpha", "alpine", "beta"):
            (cls.directory / "files" / name).touch()
        cls.shell = cls.SHELL(cls.directory)

    def ask(self, lines):
        """What can come in the place of the last word, without --option= or the directory of a path."""
        lines = list(lines)
        answers = self.shell.ask(lines)
        self.assertEqual(len(answers), len(lines))
        return [{re.sub(r"^--[\w-]+=(?=.)", "", answer).rstrip("=").rpartition("/")[2] for answer in found}
                for found in answers]

    def assert_completed(self, expected):
        for (line, words), found in zip(expected.items(), self.ask(expected), strict=True):
            self.assertEqual(found, set(words), line)

    def test_commands_are_those_of_help(self):
        self.assert_completed({f"{command.line} ": command.commands for command in all_commands() if command.commands})

    def test_options_are_those_of_help(self):
        self.assert_completed({f"{command.line} --": command.long_options for command in all_commands()})

    def test_words_are_those_of_help(self):
        self.assert_completed({f"{command.line} {name} ": words for command in all_commands()
                               for name, words in command.options.items() if words})

    def test_the_beginning_of_a_command(self):
        self.assert_completed({"orrery ba": ["backup"], "orrery backup c": ["create"], "orrery ke": ["keygen", "keys"],
                               "orrery xyz": []})

    def test_the_beginning_of_an_option(self):
        self.assert_completed({"orrery serve --dura": ["--durability"],
                               "orrery serve --ephemeral --cac": ["--cache-mb"],
                               "orrery feed tail shop/orders --out": ["--output"],
                               # Two values belong to the first option.
                               "orrery merge shop/orders --ranges 1 2 --ins": ["--insecure"]})

    def test_a_word_that_an_option_takes(self):
        self.assert_completed({"orrery serve --durability ": ["strict", "relaxed"],
                               "orrery serve --durability r": ["relaxed"],
                               "orrery serve --durability=r": ["relaxed"],
                               "orrery emulator --enable-explorer ": ["true", "false"],
                               "orrery serve --listen 127.0.0.1:0 --log-level d": ["debug"],
                               "orrery serve --listen :8081 --log-level d": ["debug"]})

    def test_a_word_in_a_place(self):
        self.assert_completed({"orrery completion ": ["bash", "zsh", "fish"],
                               "orrery keys rotate s": ["secondary", "secondary-readonly"],
                               # Values that bash takes apart do not count as places.
                               "orrery keys rotate --endpoint http://127.0.0.1:8081/ s":
                                   ["secondary", "secondary-readonly"],
                               "orrery keys rotate --endpoint=http://127.0.0.1:8081/ s":
                                   ["secondary", "secondary-readonly"]})

    def test_the_command_behind_help_and_man(self):
        below = next(command for command in all_commands() if not command.words).commands
        self.assert_completed({"orrery help ": below, "orrery man ": below, "orrery help ba": ["backup"],
                               "orrery man backup r": ["restore"]})

    def test_a_file(self):
        files = self.directory / "files"
        self.assert_completed({f"orrery serve --data-dir {files}/al": ["alpha", "alpine"],
                               f"orrery serve --config={files}/al": ["alpha", "alpine"],
                               f"orrery keys rotate primary --key-file {files}/b": ["beta"]})


class BashCompletionTest(CompletionTest, unittest.TestCase):
    PROGRAM, SHELL = "bash", Bash

    def test_an_option_that_bash_does_not_take_apart(self):
        """Where = is not in COMP_WORDBREAKS."""
        files = self.directory / "files"
        self.assertEqual(self.shell.ask_words([("orrery", "serve", "--durability=r"),
                                               ("orrery", "serve", f"--data-dir={files}/b"),
                                               ("orrery", "serve", "--log-level=debug", "--dura")]),
                         [{"--durability=relaxed"}, {f"--data-dir={files}/beta"}, {"--durability"}])

    def test_a_file_with_a_blank(self):
        path = self.directory / "files" / "with a blank"
        path.touch()
        self.addCleanup(path.unlink)
        self.assertEqual(self.shell.ask_words([("orrery", "serve", "--data-dir", f"{path.parent}/w")]), [{str(path)}])

    def test_options_tell_what_there_is_where_there_is_nothing_else(self):
        self.assertIn("--help", self.ask(["orrery backup create "])[0])


class ZshCompletionTest(CompletionTest, unittest.TestCase):
    PROGRAM, SHELL = "zsh", Zsh

    def test_where_packages_put_it(self):
        place = self.directory / "site-functions" / "_orrery"
        place.parent.mkdir()
        shutil.copy(self.shell.script, place)
        self.assertEqual(self.shell.ask(["orrery ba", "orrery backup r"], place), [{"backup"}, {"restore"}])


class FishCompletionTest(CompletionTest, unittest.TestCase):
    PROGRAM, SHELL = "fish", Fish

    def test_each_word_is_told_of_by_itself(self):
        answers = self.shell.ask_for_all(["orrery serve --durability "])[0]
        told = dict(answer.split("\t") for answer in answers)
        self.assertEqual(told["strict"], "on the disk before it is acknowledged")
        self.assertIn("faster", told["relaxed"])

    def test_where_packages_put_it(self):
        place = self.directory / "completions" / "orrery.fish"
        place.parent.mkdir()
        shutil.copy(self.shell.script, place)
        answers = self.shell.ask_for_all(["orrery ba", "orrery backup r"], f"set -p fish_complete_path {place.parent}")
        self.assertEqual([{answer.split("\t")[0] for answer in found} for found in answers], [{"backup"}, {"restore"}])


class ScriptTest(unittest.TestCase):
    def test_a_shell_that_is_not_known_is_a_mistake(self):
        refused = orrery("completion", "tcsh")
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("bash, zsh or fish", refused.stderr)

    def test_options_that_help_does_not_show_are_in_none(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertNotIn("enable-telemetry", orrery("completion", shell).stdout)

    def test_the_same_on_every_run(self):
        for words in (("man", "process"), ("completion", "bash"), ("completion", "zsh"), ("completion", "fish")):
            self.assertEqual(len({orrery(*words).stdout for _ in range(3)}), 1, words)


if __name__ == "__main__":
    unittest.main()
