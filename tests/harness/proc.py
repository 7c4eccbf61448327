"""Figures of a process, read from /proc."""

import os
import pathlib

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")  # per second


def memory(pid, field):
    """VmRSS, VmHWM (the highest VmRSS so far) and their like, in bytes."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) << 10
    raise KeyError(field)


def resident_bytes(pid):
    return memory(pid, "VmRSS")


def processor_seconds(pid):
    """User and system time so far."""
    fields = fields_after_name(pid)
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def is_running(pid):
    """Not gone, and not a zombie that its parent has not yet waited for."""
    try:
        return fields_after_name(pid)[0] not in "ZX"
    except OSError:
        return False


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def fields_after_name(pid):
    """Of /proc/<pid>/stat, from the state on: the name before it may contain spaces and brackets."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def idle_check(pid, seconds_max=0.1):
    """A condition for wait_until: whether the process has computed less than this since the condition was looked at
    last. The pause of wait_until is the time that is looked at."""
    before = float("-inf")

    def is_idle():
        nonlocal before
        now = processor_seconds(pid)
        used, before = now - before, now
        return used < seconds_max
    return is_idle
