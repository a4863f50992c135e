# SPDX-License-Identifier: GPL-2.0
"""The module's tracepoints: a failover as tracefs shows it."""

import re
from collections import defaultdict
from operator import itemgetter

import shift
from nodes.failover import dropped, on_backup, pull, shape, start
from registry import MAIN, test
from testbed import CONTROL_RAIL, check, each, wait_for

EVENTS = "/sys/kernel/tracing/events/shift"
RECORD = re.compile(r"^\s*\S+-\d+\s.*?\s(\d+\.\d+): (shift_\w+): (.*)$", re.M)
# A number that has a name is shown by that; without one it would be shown as a number.
NAMED = {"from", "to", "event", "action", "type"}


def record(node, on):
    """Begin with an empty buffer, or stop."""
    node.must(f"{'echo >/sys/kernel/tracing/trace; ' if on else ''}"
              f"echo {int(on)} >{EVENTS}/enable")


def records(node):
    """What was recorded, oldest first: (name of the event, its fields)."""
    text = node.must("cat /sys/kernel/tracing/trace")
    found = []
    for _, name, fields in RECORD.findall(text):
        pairs = dict(field.partition("=")[::2] for field in fields.split())
        for key, value in pairs.items():
            if key in NAMED:
                check(re.fullmatch("[A-Z][A-Z_]*", value), f"{name}: {key} has no name: {fields}")
            elif key != "dev":
                pairs[key] = int(value, 0)
        found.append((name, pairs))
    lines = sum(not line.startswith("#") for line in text.splitlines())
    check(len(found) == lines, f"lines that are no records of ours:\n{text[-2000:]}")
    return found


def of(found, name):
    """The fields of all records of one event."""
    return [fields for event, fields in found if event == name]


def one_life(node, found, qpn):
    """Each step begins in the state that the one before it has led to; the epoch never falls."""
    steps = of(found, "shift_qp_transition")
    check(steps, f"{node.name}: no step of a QP")
    for before, after in zip(steps, steps[1:]):
        check(after["from"] == before["to"] and after["epoch"] >= before["epoch"],
              f"{node.name}: {before} is followed by {after}")
    check(steps[0]["from"] == steps[-1]["to"] == "RUN", f"{node.name}: {steps[0]} to {steps[-1]}")
    check({"FENCE", "SYNC"} <= {step["to"] for step in steps}, f"{node.name}: {steps}")
    for name, fields in found:
        check(fields["dev"] == "rxe0" and fields["qpn"] == qpn and 0 <= fields["epoch"] < 100,
              f"{node.name}: {name} {fields}, and the QP is {qpn} of rxe0")


@test("tracepoints", "a failover, record by record")
def failover(bed):
    """Every event of the module is recorded, and its fields are those of what has happened."""
    nodes = bed.nodes[:2]
    verify = start(bed, *shape(4096, 1), "--bidir")
    shift.wait_session(bed, 2)
    verify.go()
    verify.more(2)
    counters = shift.Counters(bed)
    each(nodes, lambda node: record(node, True))
    try:
        verify.more(1)
        idle = each(nodes, records)
        check(not any(of(found, "shift_qp_transition") for found in idle),
              f"steps without a fault: {idle}")
        # something of node1's is under way when the cable goes
        bed.drop(nodes[0], 0, direction="in", opcode="RC_WRITE_*")
        wait_for("a WRITE lost", lambda: dropped(bed) > 0)
        pull(bed, "local")
        on_backup(bed, 1)
        wait_for("failover on both nodes", lambda: min(counters.delta("switches")) >= 1, 60)
        verify.more(2)
    finally:
        each(nodes, lambda node: record(node, False))
    events = set(nodes[0].must(f"ls -d {EVENTS}/*/ | xargs -n 1 basename").split())
    everything = each(nodes, records)
    seen = {name for found in everything for name, _ in found}
    check(seen == events, f"recorded were {sorted(seen)} of {sorted(events)}")
    done = counters.deltas("executed", "replayed")
    check(shift.show_stats(nodes[0]).keys() == shift.stats(nodes[0]).keys(),
          "shiftctl and sysfs show different counters")
    for index, (node, found) in enumerate(zip(nodes, everything)):
        one_life(node, found, shift.qps(node)[0]["qpn"])
        for fence in of(found, "shift_fence"):
            check(not fence["err"] and 0 <= fence["expected_psn"] <= 0xffffff,
                  f"{node.name}: {fence}")
        replays = of(found, "shift_replay")
        for key, delta in done.items():
            check(sum(replay[key] for replay in replays) == delta[index],
                  f"{node.name}: {key} by {delta[index]}: {replays}")
        check(node == nodes[0] or sum(map(itemgetter("replayed"), replays)) > 0,
              f"{node.name}: nothing was under way: {replays}")
    # what one node has sent the other one has received
    heard = [defaultdict(int), defaultdict(int)]
    for found, counts in zip(everything, heard):
        for message in of(found, "shift_msg_rx"):
            counts[message["type"], message["epoch"]] += 1
    for index, found in enumerate(everything):
        for message in of(found, "shift_msg_tx"):
            key = message["type"], message["epoch"]
            check(heard[not index][key],
                  f"{nodes[index].name} has sent {key}; the other node has received "
                  f"{dict(heard[not index])}")
    verify.finish()


def writing(bed):
    """(server, client) of dereg_edge: the client writes into the server's memory."""
    client, server = bed.nodes[:2]
    words = ["dereg_edge", bed.nics.default]
    serving = server.start(words, env=bed.nics.env)
    serving.wait_line("^listening$")
    writes = client.start([*words, server.address(CONTROL_RAIL)], env=bed.nics.env)
    serving.wait_line("^connected$")
    each(bed.nodes[:2], lambda node: shift.protected(node, 1))
    writes.send("go")
    writes.wait_line("^progress$")
    return serving, writes


@test("tracepoints", "memory is deregistered when the peer has forgotten its key", MAIN)
def forgotten(bed):
    """On the backup; the peer's answer takes its time, so that it is certain who waits."""
    client, server = bed.nodes[:2]
    # a queue that is put in under traffic drops packets, and rxe of 6.12 ends a QP for one
    client.must("tc qdisc replace dev rail1 root netem limit 20000")
    serving, writes = writing(bed)
    pull(bed, "local")
    on_backup(bed, 1)
    writes.wait_line("^progress$", start=len(writes.lines))
    record(server, True)
    client.must("tc qdisc change dev rail1 root netem delay 10ms limit 20000")
    try:
        serving.send("go")
        serving.wait_line("^deregistered$")
        writes.wait_line("^error ")
        writes.expect(0)
        serving.send("look")
        serving.wait_line("^untouched$")
        serving.expect(0)
    finally:
        client.lossless()
        record(server, False)
    trace = server.must("cat /sys/kernel/tracing/trace")
    order = re.findall("(shift_msg_[tr]x): .*type=RKEY_GONE|(tracing_mark)_write: deregistered",
                       trace)
    seen = [message or mark for message, mark in order]
    check("tracing_mark" in seen and "shift_msg_rx" in seen and
          seen.index("shift_msg_tx") < seen.index("shift_msg_rx") < seen.index("tracing_mark"),
          f"{server.name}: {seen}\n{trace[-2000:]}")
