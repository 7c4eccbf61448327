"""The invariants of a chaos run, checked when it is over."""

import bisect
import collections
import json

FINDINGS_SHOWN = 5
SHOWN_AFTER_PAUSE_SECONDS = 3


class Run:
    """One observer: a lease on a host, from its acquisition to its end."""

    def __init__(self, opened):
        self.name, self.host = opened["run"], opened["host"]
        self.lease, self.epoch, self.opened = opened["lease"], opened["epoch"], opened["begin"]
        self.batches = []
        self.closed = None

    def __str__(self):
        return f"lease {self.lease} at epoch {self.epoch} on {self.name}"


class Records:
    """The records of all hosts, read as they grow."""

    def __init__(self):
        self.runs = {}
        self.processed = set()  # (key, number)
        self.offsets = collections.defaultdict(int)
        self.oddities = []  # calls that must not be

    def read(self, hosts):
        for host in hosts:
            try:
                with open(host.record_path, "rb") as record:
                    record.seek(self.offsets[host.record_path])
                    text = record.read()
            except FileNotFoundError:
                continue  # It has not got as far.
            whole = text[:text.rfind(b"\n") + 1]
            self.offsets[host.record_path] += len(whole)
            for line in whole.splitlines():
                self.take(json.loads(line))

    def take(self, line):
        if line["what"] == "open":
            if line["run"] in self.runs:
                self.oddities.append(f"{line['run']} was opened twice")
            self.runs[line["run"]] = Run(line)
            return
        run = self.runs.get(line["run"])
        if run is None:
            return self.oddities.append(f"{line['what']} without open: {line['run']}")
        if run.closed is not None:
            return self.oddities.append(f"{line['what']} after close: {run}")
        if line["what"] == "close":
            run.closed = line
            return
        if run.batches and line["begin"] < run.batches[-1]["end"]:
            self.oddities.append(f"two batches at once: {run}")
        if not line["changes"]:
            self.oddities.append(f"an empty batch: {run}")
        run.batches.append(line)
        self.processed.update((change[0], change[2]) for change in line["changes"])

    def batches(self):
        return [(run, batch) for run in self.runs.values() for batch in run.batches]


# Each check returns what it found wrong, and in words what it has looked at.

def check_processed(final, acknowledged, processed):
    """`final`: id → (key, number) of every document; the last version is the one that counts."""
    wrong = []
    for (key, number), document_id in acknowledged.items():
        now = final.get(document_id)
        if now is None or now[1] < number:
            wrong.append(f"the server has lost {document_id} at {number}: there is {now}")
    for document_id, version in final.items():
        if version not in processed:
            wrong.append(f"{document_id} at {version[1]} was never processed")
    return wrong, f"{len(acknowledged)} acknowledged writes, {len(final)} documents"


def check_order(records):
    """Within a run the numbers of a key rise."""
    wrong, seen = [], 0
    for run in records.runs.values():
        last = {}
        for batch in run.batches:
            for key, document_id, number, _ in batch["changes"]:
                seen += 1
                if number <= last.get(key, 0):
                    wrong.append(f"{document_id} at {number} after {last[key]}: {run}")
                last[key] = number
    return wrong, f"{seen} changes in {len(records.runs)} runs"


def check_nothing_skipped(records, final):
    """When a change is processed, those before it of its key have been. A version that was replaced
    by a later one may never have been seen; so only those that stayed count."""
    done_at = {}
    for _, batch in records.batches():
        for key, _, number, _ in batch["changes"]:
            version = key, number
            done_at[version] = min(done_at.get(version, batch["end"]), batch["end"])
    numbers = collections.defaultdict(list)
    for key, number in final.values():
        numbers[key].append(number)
    latest = {}  # for each key, when all up to the one at that index were done
    for key, those in numbers.items():
        those.sort()
        latest[key], so_far = [], 0
        for number in those:
            so_far = max(so_far, done_at.get((key, number), float("inf")))
            latest[key].append(so_far)

    wrong = []
    for run, batch in records.batches():
        last = {}
        for key, document_id, number, _ in batch["changes"]:
            those = numbers[key]
            before = bisect.bisect_left(those, number)
            if key not in last:
                missed = before > 0 and latest[key][before - 1] > batch["begin"]
            else:
                between = those[bisect.bisect_right(those, last[key]):before]
                missed = any(done_at[key, each] > batch["begin"] for each in between)
            if missed:
                wrong.append(f"{document_id} at {number} before an earlier change of {key}: {run}")
            last[key] = number
    return wrong, f"{sum(len(each) for each in numbers.values())} last versions in order"


def check_duplicates(records, page_size):
    """A batch is confirmed before the next one begins: only the last batch of a run may come again.
    So every change is in at most one batch that is not the last of its run."""
    confirmed, wrong, allowed = {}, [], 0
    deliveries = collections.Counter()
    for run in records.runs.values():
        for index, batch in enumerate(run.batches):
            is_last = index == len(run.batches) - 1
            allowed += len(batch["changes"]) if is_last else 0
            if len(batch["changes"]) > page_size:
                wrong.append(f"a batch of {len(batch['changes'])} changes: {run}")
            for key, document_id, number, _ in batch["changes"]:
                deliveries[key, number] += 1
                if is_last:
                    continue
                if (key, number) in confirmed:
                    wrong.append(f"{document_id} at {number} was confirmed by "
                                 f"{confirmed[key, number]} and came again: {run}")
                confirmed[key, number] = run
    # One that was confirmed must not come in a run that began after that.
    for run in records.runs.values():
        if not run.batches:
            continue
        for key, document_id, number, _ in run.batches[-1]["changes"]:
            by = confirmed.get((key, number))
            if by is not None and by is not run and confirmed_at(by, key, number) < run.opened:
                wrong.append(f"{document_id} at {number} was confirmed by {by} before this run "
                             f"began: {run}")
    repeated = sum(deliveries.values()) - len(deliveries)
    if repeated > allowed:
        wrong.append(f"{repeated} duplicates, at most {allowed} can be explained")
    ends = sum(1 for run in records.runs.values() if run.batches)
    return wrong, (f"{repeated} duplicates; {ends} runs may leave a batch unconfirmed, "
                   f"{allowed} changes")


def confirmed_at(run, key, number):
    """When the batch after it began: by then its checkpoint was written."""
    for index, batch in enumerate(run.batches[:-1]):
        if any(change[0] == key and change[2] == number for change in batch["changes"]):
            return run.batches[index + 1]["begin"]
    return float("inf")


def check_epochs(records, hosts):
    """No epoch of a lease twice; later acquisitions have higher ones. A host that was stopped
    between acquiring and opening is late, and its epoch may be behind."""
    woken = collections.defaultdict(list)
    for host in hosts:
        woken[host.name] += [end for _, end in host.pauses if end is not None]
    by_lease = collections.defaultdict(list)
    for run in records.runs.values():
        by_lease[run.lease].append(run)
    wrong = []
    for runs in by_lease.values():
        runs.sort(key=lambda run: run.opened)
        epochs = collections.Counter(run.epoch for run in runs)
        wrong += [f"epoch {epoch} was given {count} times: {runs[0]}"
                  for epoch, count in epochs.items() if count > 1]
        highest = -1
        for run in runs:
            late = any(0 <= run.opened - end < SHOWN_AFTER_PAUSE_SECONDS
                       for end in woken[run.host])
            if run.epoch < highest and not late:
                wrong.append(f"epoch {run.epoch} after {highest}: {run}")
            highest = max(highest, run.epoch)
    return wrong, f"{len(by_lease)} leases in {len(records.runs)} acquisitions"


def check_tiling(leases):
    """The leases are the whole container, without gaps, and nothing twice."""
    areas = sorted((each["FeedRange"]["Range"]["min"], each["FeedRange"]["Range"]["max"])
                   for each in leases)
    edges = [""] + [end for _, end in areas]
    wrong = [] if edges == [begin for begin, _ in areas] + ["FF"] else [f"leases cover {areas}"]
    return wrong, f"{len(leases)} leases"


def check_open_observers(records, leases, hosts):
    """In calm each lease is open on the host that owns it, and on no other."""
    names = {host.name for host in hosts}
    paths = {host.name: host.process.pid for host in hosts}
    wrong = []
    for lease in leases:
        if lease["Owner"] not in names:
            wrong.append(f"lease {lease['LeaseToken']} belongs to {lease['Owner']!r}")
    at = collections.defaultdict(list)
    for run in records.runs.values():
        alive = run.name.startswith(f"{run.host}/{paths.get(run.host)}/")
        if run.closed is None and alive:
            at[run.lease].append(run.host)
    for lease in leases:
        token = lease["LeaseToken"]
        if at[token] != [lease["Owner"]]:
            wrong.append(f"lease {token} belongs to {lease['Owner']} and is open on {at[token]}")
    return wrong, f"{len(leases)} leases on {len(names)} hosts"
