# SPDX-License-Identifier: GPL-2.0
"""QPs on a shared receive queue lose a cable: they move together."""

from functools import partial

import shift
from ends import Ends
from registry import FULL, MAIN, add, test
from testbed import CONTROL_RAIL, PATCHED, check, wait_for
from traffic import QP_TIMEOUT, Verify
from nodes.failover import dropped, start, survives
from nodes.failback import plugged, second, there_and_back

PACE = ["--progress", 50, "--depth", 16]
SENDS = ["--srq", "--ops", "send,send_imm,write_imm", "--mix", "--size", "0-9000",
         "--guard", *PACE]
MIXED = ["--srq", "--ops", "write,write_imm,send,send_imm,read", "--mix", "--size",
         "0-9000", *PACE]

# By name: options, QPs, which end loses its cable, kernels.
FAULTS = {
    "one QP, local cable": (SENDS, 1, "local", FULL),
    "one QP, remote cable": (SENDS, 1, "remote", FULL),
    "4 QPs, both directions, local cable": ([*SENDS, "--bidir"], 4, "local", MAIN),
    "4 QPs, both directions, remote cable": ([*MIXED, "--bidir"], 4, "remote", FULL),
    "one CQ for all, resized": (
        [*MIXED, "--bidir", "--shared-cq", "--resize-cq"], 4, "local", FULL),
    "ibv_start_poll": ([*MIXED, "--bidir", "--poll", "start"], 2, "remote", FULL),
    "asleep": ([*MIXED, "--bidir", "--events"], 2, "remote", FULL),
    "messages of 64 KiB": (
        ["--srq", "--ops", "send,write_imm", "--mix", "--bidir", "--size", "1-65536",
         "--progress", 10, "--depth", 8], 2, "local", FULL),
}


def fault(options, qps, side, bed):
    """Traffic, pull, traffic on the backup, all verified."""
    verify = start(bed, *options, qps=qps)
    survives(bed, verify, side, qps)


def lost_acks(bed):
    """SENDs are executed at the peer, and its ACKs are lost: none comes twice."""
    client = bed.nodes[0]
    verify = start(bed, "--srq", "--ops", "send", "--size", "1-9000", "--guard", *PACE,
                   qps=2, timeout=QP_TIMEOUT)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    bed.drop(client, 0, direction="in", opcode="RC_ACK")
    wait_for("failover on both nodes",
             lambda: all(n >= 2 for n in counters.delta("switches")), 120)
    check(dropped(bed) > 0, "no packet was dropped")
    check(counters.delta("executed")[0] > 0, "nothing was found executed")
    verify.more(3)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


# As in failback.py, by name.
MOVES = {
    "drain and undrain: one QP": (there_and_back, [*SENDS, "--bidir"], 1),
    "drain and undrain: 4 QPs": (there_and_back, [*MIXED, "--bidir"], 4),
    "drain and undrain: asleep, one CQ": (
        there_and_back, [*MIXED, "--bidir", "--events", "--shared-cq"], 2),
    "local cable, plugged again, pulled again": (
        plugged, [*SENDS, "--bidir"], 4, "local"),
    "remote cable, plugged again, pulled again": (
        plugged, [*MIXED, "--bidir"], 2, "remote"),
    "local cable, then the backup's": (second, [*MIXED, "--bidir"], 2, "local"),
}


@test("srq", "not allowed: unprotected, with that reason")
def not_allowed(bed):
    """By the module parameter; such a QP runs as without the module."""
    client = bed.nodes[0]
    shift.srq(client, False)
    try:
        verify = Verify(*bed.nodes[:2], *SENDS, "--iters", 200, env=PATCHED)
        wait_for("a reason", lambda: [(row["state"], row.get("reason")) for row in
                                      shift.qps(client)] == [("unprotected", "srq")])
        verify.go()
        check((verify.client.wait(), verify.server.wait()) == (0, 0), "it did not run")
    finally:
        shift.srq(client, True)


def message(receiver, sender, count):
    """Messages are sent, one by one, and are received."""
    seen = len(sender.lines), len(receiver.lines)
    receiver.send(f"got {count}")
    sender.send(f"send {count}")
    said = [Ends.said(end, n) for end, n in zip((sender, receiver), seen)]
    check(said == ["ok", "ok"], f"{count} messages: sent '{said[0]}', received '{said[1]}'")


@test("srq", "a QP without a peer that moves is connected while the SRQ is away", kernels=MAIN)
def late(bed):
    """It finds receives, as it would without the module; so does the one that has moved."""
    client, server = bed.nodes[:2]
    words = ["share_edge", bed.nics.default]
    receiver = server.start(words, env=PATCHED)
    receiver.wait_line("^ready$")

    def connect(number, env):
        seen = len(receiver.lines)
        receiver.send("next")
        check(Ends.said(receiver, seen) == "listening", "the server does not listen")
        sender = client.start([*words, server.address(CONTROL_RAIL), str(number)], env=env)
        sender.wait_line("^ready$")
        check(Ends.said(receiver, seen + 1) == "ok", "not connected")
        return sender

    first = connect(0, PATCHED)
    shift.protected(server, 1)
    message(receiver, first, 4)
    shift.must(server, "pair", "drain", bed.nics.default)
    shift.protected(server, 1, "fallback")
    message(receiver, first, 4)

    second = connect(1, {})
    for _ in range(3):
        message(receiver, second, 20)
        message(receiver, first, 20)
    states = sorted(row["state"] for row in shift.qps(server))
    check(states == ["fallback", "unprotected"], f"one is away and one is not: {states}")

    shift.must(server, "pair", "undrain", bed.nics.default)
    message(receiver, second, 10)
    second.send("end")
    second.expect(0)
    message(receiver, first, 20)
    first.send("end")
    first.expect(0)
    receiver.send("end")
    receiver.expect(0)


def says(end, words):
    """What an end answers to a line."""
    seen = len(end.lines)
    end.send(words)
    return Ends.said(end, seen)


@test("srq", "the limit is reached while the SRQ is away")
def limit(bed):
    """One that was set before it left, and one that was set later: there is an event for each."""
    client, server = bed.nodes[:2]
    words = ["share_edge", bed.nics.default]
    receiver = server.start(words, env=bed.nics.env)
    receiver.wait_line("^ready$")
    check(says(receiver, "next") == "listening", "the server does not listen")
    seen = len(receiver.lines)
    sender = client.start([*words, server.address(CONTROL_RAIL), "0"], env=bed.nics.env)
    sender.wait_line("^ready$")
    check(Ends.said(receiver, seen) == "ok", "not connected")
    shift.protected(server, 1)
    message(receiver, sender, 20)
    check(says(receiver, "limit 4") == "ok", "the limit was not set")
    shift.must(server, "pair", "drain", bed.nics.default)
    shift.protected(server, 1, "fallback")
    for again in (True, False):
        # of 8 receives 3 are left, as the server does not look
        check(says(sender, "send 5") == "ok", "not sent")
        found = says(receiver, "event")
        check(found == "ok", f"the limit is reached: {found}")
        check(says(receiver, "got 5") == "ok", "not received")
        message(receiver, sender, 20)
        if again:
            check(says(receiver, "limit 4") == "ok", "the limit was not set once more")
    shift.must(server, "pair", "undrain", bed.nics.default)


for _name, (_options, _qps, _side, _kernels) in FAULTS.items():
    add("srq", _name, partial(fault, _options, _qps, _side), _kernels)
for _name, (_move, _options, _qps, *_sides) in MOVES.items():
    add("srq", _name, partial(_move, _options, _qps, *_sides))
add("srq", "ACKs of SENDs lost", lost_acks)
