# SPDX-License-Identifier: Apache-2.0
"""The rules of the Trace Event Format that Perfetto reads JSON by, and what our own files promise beyond them.

check(trace) returns a sentence for each broken rule.
"""
import collections

FIELDS = {"X": {"dur", "ts", "name", "cat"}, "C": {"ts", "name", "args"}, "M": {"name", "args"}, "s": {"id", "ts", "cat", "name"},
          "f": {"id", "ts", "cat", "name", "bp"}}


def check_event(event):
    if event.get("ph") not in FIELDS:
        return f"unknown phase {event}"
    missing = (FIELDS[event["ph"]] | {"pid", "tid"}) - set(event)
    if missing:
        return f"{event} lacks {missing}"
    for field in {"ts", "dur"} & set(event):
        if not isinstance(event[field], (int, float)) or event[field] < 0:
            return f"{field} of {event} is no time in microseconds"
    if event["ph"] == "C" and not all(isinstance(v, (int, float)) for v in event["args"].values()):
        return f"a counter that is no number: {event}"
    return None


def overlaps(events):
    """Spans of one thread follow one another, but for the rounding of their ends (0.001 us each)."""
    lanes = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append(event)
    for spans in lanes.values():
        spans.sort(key=lambda e: e["ts"])
        for before, after in zip(spans, spans[1:]):
            if before["ts"] + before["dur"] > after["ts"] + 1:
                yield f"{before} ends in {after}"


def loose_arrows(events):
    """Each arrow begins once and ends once, in spans of two ranks, and not before it begins."""
    ends = collections.defaultdict(lambda: {"s": [], "f": []})
    for event in events:
        if event["ph"] in "sf":
            ends[event["id"]][event["ph"]].append(event)
    spans = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            spans[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for number, both in ends.items():
        if len(both["s"]) != 1 or len(both["f"]) != 1:
            yield f"arrow {number} has {len(both['s'])} beginnings and {len(both['f'])} ends"
            continue
        begin, end = both["s"][0], both["f"][0]
        if begin["pid"] == end["pid"]:
            yield f"arrow {number} stays on rank {begin['pid']}"
        if begin["ts"] > end["ts"]:
            yield f"arrow {number} ends before it begins: {begin} {end}"
        for event in (begin, end):
            if not any(a <= event["ts"] <= b for a, b in spans[event["pid"], event["tid"]]):
                yield f"arrow {number} is bound to no span: {event}"


def check(trace):
    events = trace["traceEvents"]
    found = [complaint for complaint in map(check_event, events) if complaint]
    if found:
        return found
    return [*overlaps(events), *loose_arrows(events)]
