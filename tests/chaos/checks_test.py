#!/usr/bin/env python3
"""Each check of a chaos run finds what it is there for, in small records made by hand."""

import collections
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import checks  # noqa: E402

Host = collections.namedtuple("Host", "name pauses process", defaults=((), None))
Process = collections.namedtuple("Process", "pid")


class Story:
    """Calls of observers, one after the other; each takes a tenth of a second."""

    def __init__(self):
        self.records, self.now = checks.Records(), 0.0

    def line(self, what, run, lease, epoch, **more):
        begin, self.now = self.now, self.now + 0.1
        self.records.take({"what": what, "run": run, "host": run.split("/")[0], "lease": lease,
                           "epoch": epoch, "begin": begin, "end": begin + 0.1, **more})

    def open(self, run, lease="0", epoch=1):
        self.line("open", run, lease, epoch)

    def batch(self, run, *numbers, lease="0", epoch=1):
        self.line("batch", run, lease, epoch,
                  changes=[["k", f"k-{number}", number, number] for number in numbers])

    def close(self, run, lease="0", epoch=1):
        self.line("close", run, lease, epoch, reason=1)


def documents(*numbers):
    return {f"k-{number}": ("k", number) for number in numbers}


class Checks(unittest.TestCase):
    def setUp(self):
        self.story = Story()

    def assert_found(self, outcome, count=1):
        self.assertEqual(len(outcome[0]), count, outcome)

    def test_what_was_acknowledged_must_be_there_and_be_processed(self):
        self.story.open("a/1/1")
        self.story.batch("a/1/1", 1, 2)
        processed = self.story.records.processed
        acknowledged = {("k", 1): "k-1", ("k", 2): "k-2"}
        self.assert_found(checks.check_processed(documents(1, 2), acknowledged, processed), 0)
        self.assert_found(checks.check_processed(documents(1), acknowledged, processed))
        self.assert_found(checks.check_processed(documents(1, 2, 3), acknowledged, processed))

    def test_an_earlier_number_within_a_run_is_found(self):
        self.story.open("a/1/1")
        self.story.batch("a/1/1", 1, 3)
        self.assert_found(checks.check_order(self.story.records), 0)
        self.story.batch("a/1/1", 2)
        self.assert_found(checks.check_order(self.story.records))

    def test_a_later_run_may_begin_with_what_was_not_confirmed(self):
        self.story.open("a/1/1")
        self.story.batch("a/1/1", 1, 2)
        self.story.batch("a/1/1", 3, 4)
        self.story.open("b/2/1", epoch=2)
        self.story.batch("b/2/1", 3, 4, 5, epoch=2)
        self.assert_found(checks.check_order(self.story.records), 0)
        self.assert_found(checks.check_nothing_skipped(self.story.records,
                                                       documents(1, 2, 3, 4, 5)), 0)
        self.assert_found(checks.check_duplicates(self.story.records, 20), 0)

    def test_what_is_skipped_and_comes_later_is_found(self):
        self.story.open("a/1/1")
        self.story.batch("a/1/1", 1)
        self.story.open("b/2/1", epoch=2)
        self.story.batch("b/2/1", 3, epoch=2)
        self.story.open("c/3/1", epoch=3)
        self.story.batch("c/3/1", 2, epoch=3)
        self.assert_found(checks.check_nothing_skipped(self.story.records, documents(1, 2, 3)))

    def test_what_is_skipped_within_a_batch_is_found(self):
        self.story.open("a/1/1")
        self.story.batch("a/1/1", 1, 3)
        self.story.batch("a/1/1", 2)
        self.assert_found(checks.check_nothing_skipped(self.story.records, documents(1, 2, 3)))

    def test_a_version_that_was_replaced_need_not_be_seen(self):
        self.story.open("a/1/1")
        self.story.batch("a/1/1", 1, 3)
        self.assert_found(checks.check_nothing_skipped(self.story.records, documents(1, 3)), 0)

    def test_what_was_confirmed_and_comes_again_is_found(self):
        self.story.open("a/1/1")
        self.story.batch("a/1/1", 1)
        self.story.batch("a/1/1", 2)
        self.story.open("b/2/1", epoch=2)
        self.story.batch("b/2/1", 1, epoch=2)
        self.assert_found(checks.check_duplicates(self.story.records, 20))
        self.story.batch("b/2/1", 2, 3, epoch=2)
        self.assert_found(checks.check_duplicates(self.story.records, 20))

    def test_who_lost_its_lease_may_finish_its_batch_late(self):
        self.story.open("a/1/1")
        self.story.open("b/2/1", epoch=2)
        self.story.batch("b/2/1", 1, epoch=2)
        self.story.batch("b/2/1", 2, epoch=2)
        self.story.batch("a/1/1", 1)
        self.assert_found(checks.check_duplicates(self.story.records, 20), 0)
        self.story.batch("a/1/1", 2)  # but not go on
        self.assert_found(checks.check_duplicates(self.story.records, 20))

    def test_a_batch_that_is_too_large_is_found(self):
        self.story.open("a/1/1")
        self.story.batch("a/1/1", 1, 2, 3)
        self.assert_found(checks.check_duplicates(self.story.records, 2))

    def test_an_epoch_that_does_not_rise_is_found(self):
        self.story.open("a/1/1", epoch=2)
        self.story.open("b/2/1", epoch=3)
        self.assert_found(checks.check_epochs(self.story.records, [Host("a"), Host("b")]), 0)
        self.story.open("c/3/1", epoch=3)
        self.assert_found(checks.check_epochs(self.story.records, [Host("c")]))
        self.story.open("d/4/1", epoch=1)
        self.assert_found(checks.check_epochs(self.story.records, [Host("d")]), 2)
        # One that was stopped before it could open is late.
        self.assert_found(checks.check_epochs(self.story.records, [Host("d", [(0.0, 0.2)])]), 1)

    def test_gaps_and_overlaps_of_leases_are_found(self):
        def leases(*areas):
            return [{"FeedRange": {"Range": {"min": low, "max": high}}} for low, high in areas]

        self.assert_found(checks.check_tiling(leases(("1F", "FF"), ("", "1F"))), 0)
        self.assert_found(checks.check_tiling(leases(("", "1F"), ("2F", "FF"))))
        self.assert_found(checks.check_tiling(leases(("", "1F"), ("", "FF"))))

    def test_leases_that_are_open_elsewhere_are_found(self):
        hosts = [Host("a", (), Process(1)), Host("b", (), Process(2))]
        leases = [{"LeaseToken": "0", "Owner": "a"}]
        self.story.open("a/1/1")
        self.assert_found(checks.check_open_observers(self.story.records, leases, hosts), 0)
        self.story.open("b/2/1", epoch=2)
        self.assert_found(checks.check_open_observers(self.story.records, leases, hosts))
        self.story.close("b/2/1", epoch=2)
        self.assert_found(checks.check_open_observers(self.story.records, leases, hosts), 0)
        leases[0]["Owner"] = "gone"
        self.assert_found(checks.check_open_observers(self.story.records, leases, hosts), 2)

    def test_calls_out_of_turn_are_found(self):
        self.story.batch("a/1/1", 1)
        self.story.open("b/1/1")
        self.story.close("b/1/1")
        self.story.batch("b/1/1", 1)
        self.story.open("b/1/1")
        self.story.batch("b/1/1")
        self.assertEqual(len(self.story.records.oddities), 4)


if __name__ == "__main__":
    unittest.main()
