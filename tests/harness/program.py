"""A program as a child process, and the lines that it prints."""

import ctypes
import os
import resource
import signal
import subprocess
import threading

END_SECONDS_MAX = 60.0
STREAM_SECONDS_MAX = 10.0  # children of its own may hold its output open for longer than it lives

_libc = ctypes.CDLL(None)


def before_exec(files_max=None):
    """For Popen's preexec_fn: the child dies with the thread that started it, so that a test that is killed leaves
    nothing behind, and may have so many files open."""
    def prepare():
        pr_set_pdeathsig = 1
        _libc.prctl(pr_set_pdeathsig, signal.SIGKILL)
        if files_max is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
    return prepare


def clean_environment(more=None):
    """The environment of the test without its ORRERY_ variables: each is also an option of the binary, and is meant
    for the test and not for the child. `more` comes on top."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("ORRERY_")}
    return own | (more or {})


class Program:
    """A running program. `lines` is its standard output so far, `errors` its standard error, without line ends.

    A context manager: at its end the program is killed if it still runs.
    """

    def __init__(self, words, environment=None, stdin=subprocess.DEVNULL):
        self.process = subprocess.Popen([str(word) for word in words], env=environment, stdin=stdin, text=True,
                                        errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=before_exec())
        self.lines, self.errors = [], []
        self.readers = [threading.Thread(target=collect, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for reader in self.readers:
            reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        """SIGKILL, as a crash."""
        self.process.kill()
        self.process.wait()

    def stop(self, number=signal.SIGTERM):
        """Asks it to end; its exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self, seconds=END_SECONDS_MAX):
        """Its exit code. Everything that it has printed is in `lines` and `errors` then."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it did not end in {seconds} s: {self.report()}") from None
        self.join()
        return self.process.returncode

    def join(self):
        for reader in self.readers:
            reader.join(STREAM_SECONDS_MAX)

    def close(self):
        if self.alive():
            self.kill()
        self.join()
        self.process.stdout.close()
        self.process.stderr.close()

    def report(self):
        """Its last lines, for the message of a failure."""
        return "\n".join([f"{self.process.args}: exit code {self.process.poll()}", *self.lines[-50:],
                          *self.errors[-50:]])


def collect(stream, lines):
    for line in stream:
        lines.append(line.rstrip("\n"))
