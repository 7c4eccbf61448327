"""Waits for a condition, with a deadline. Nothing else in the tests sleeps in order to wait."""

import time

PAUSE_SECONDS = 0.005


class TimedOut(AssertionError):
    """The condition did not hold in time."""


def wait_until(condition, seconds=10.0, what="the condition", pause=PAUSE_SECONDS):
    """Polls; returns the value of condition() as soon as that is true. TimedOut after so many seconds.

    `what` names the condition for the message. `pause` is the time between two looks: a condition that costs the
    server or the processor something is looked at less often.
    """
    deadline = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        if time.monotonic() >= deadline:
            raise TimedOut(f"{what}: not within {seconds} s")
        time.sleep(pause)
