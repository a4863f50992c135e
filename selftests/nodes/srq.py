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


def says(end, words):
    """What an end answers to a line."""
    seen = len(end.lines)
    end.send(words)
    return Ends.said(end, seen)


class Shared:
    """share_edge: a server whose QPs are on one SRQ, and clients that are connected by and by."""

    def __init__(self, bed):
        self.client, self.server = bed.nodes[:2]
        self.words = ["share_edge", bed.nics.default]
        self.receiver = self.server.start(self.words, env=bed.nics.env)
        self.receiver.wait_line("^ready$")
        self.senders = []

    def connect(self, env):
        """One more."""
        seen = len(self.receiver.lines)
        check(says(self.receiver, "next") == "listening", "the server does not listen")
        self.meets(seen, env)

    def meets(self, seen, env):
        """The server has a QP for it, and listens since so many lines."""
        sender = self.client.start([*self.words, self.server.address(CONTROL_RAIL),
                                    str(len(self.senders))], env=env)
        sender.wait_line("^ready$")
        check(Ends.said(self.receiver, seen + 1) == "ok", "not connected")
        self.senders.append(sender)

    def again(self, number):
        """A client and the server use their QPs again."""
        sender = self.senders[number]
        seen = len(self.receiver.lines), len(sender.lines)
        self.receiver.send(f"again {number}")
        check(Ends.said(self.receiver, seen[0]) == "listening", "the server does not listen")
        sender.send("again")
        said = [Ends.said(self.receiver, seen[0] + 1), Ends.said(sender, seen[1])]
        check(said == ["ok", "ok"], f"not connected again: {said}")

    def message(self, number, count):
        """That many of a client's, one by one, are received."""
        message(self.receiver, self.senders[number], count)

    def does(self, order):
        """The server does."""
        said = says(self.receiver, order)
        check(said == "ok", f"'{order}': {said}")

    def close(self, number):
        """A client ends."""
        self.senders[number].send("end")
        self.senders[number].expect(0)

    def end(self):
        """The server ends, after its clients."""
        self.receiver.send("end")
        self.receiver.expect(0)


@test("srq", "a QP without a peer that moves is connected while the SRQ is away", kernels=MAIN)
def late(bed):
    """It finds receives, as it would without the module; so does the one that has moved."""
    server = bed.nodes[1]
    shared = Shared(bed)
    shared.connect(bed.nics.env)
    shift.protected(server, 1)
    shared.message(0, 4)
    shift.must(server, "pair", "drain", bed.nics.default)
    shift.protected(server, 1, "fallback")
    shared.message(0, 4)

    shared.connect(bed.nics.stock)
    for _ in range(3):
        shared.message(1, 20)
        shared.message(0, 20)
    states = sorted(row["state"] for row in shift.qps(server))
    check(states == ["fallback", "unprotected"], f"one is away and one is not: {states}")

    shift.must(server, "pair", "undrain", bed.nics.default)
    shared.message(1, 10)
    shared.close(1)
    shared.message(0, 20)
    shared.close(0)
    shared.end()


@test("srq", "the limit is reached while the SRQ is away")
def limit(bed):
    """One that was set before it left, and one that was set later: there is an event for each."""
    server = bed.nodes[1]
    shared = Shared(bed)
    shared.connect(bed.nics.env)
    shift.protected(server, 1)
    shared.message(0, 20)
    shared.does("limit 4")
    shift.must(server, "pair", "drain", bed.nics.default)
    shift.protected(server, 1, "fallback")
    for again in (True, False):
        # of 8 receives 3 are left, as the server does not look
        check(says(shared.senders[0], "send 5") == "ok", "not sent")
        shared.does("event")
        shared.does("got 5")
        shared.message(0, 20)
        if again:
            shared.does("limit 4")
    shift.must(server, "pair", "undrain", bed.nics.default)


@test("srq", "resized at home: it stays there")
def resized_at_home(bed):
    """Its receives are in another ring, and it is protected no more: a drain moves nothing."""
    client, server = bed.nodes[:2]
    shared = Shared(bed)
    shared.connect(bed.nics.env)
    shift.protected(server, 1)
    shared.message(0, 20)
    counters = shift.Counters(bed)
    shared.does("resize 64")
    shared.message(0, 20)
    shift.wait_reason(server, "srq")
    shift.must(client, "pair", "drain", bed.nics.default)
    shared.message(0, 50)
    shift.wait_reason(server, "srq")
    shared.close(0)
    shared.end()
    counters.still("switches", "side_wc", "failed", "illegal", "msg_bad")
    shift.must(client, "pair", "undrain", bed.nics.default)


@test("srq", "resized away: it comes home, and leaves again")
def resized_away(bed):
    """Its receives are not in the ring: those that are away go on, and so do their moves."""
    client, server = bed.nodes[:2]
    shared = Shared(bed)
    shared.connect(bed.nics.env)
    shift.protected(server, 1)
    shared.message(0, 4)
    counters = shift.Counters(bed)
    shift.must(client, "pair", "drain", bed.nics.default)
    shift.protected(server, 1, "fallback")
    shared.message(0, 4)
    shared.does("resize 64")
    shared.message(0, 50)
    shift.protected(server, 1, "fallback")
    shift.home(bed, 1)
    shared.message(0, 50)
    shift.must(client, "pair", "drain", bed.nics.default)
    shift.protected(server, 1, "fallback")
    shared.message(0, 50)
    shared.close(0)
    shared.end()
    counters.moved("switches", 3)
    counters.moved("returns")
    counters.still("failed", "illegal", "msg_bad")
    shift.must(client, "pair", "undrain", bed.nics.default)


@test("srq", "resized when those that were away have ended: its receives come home")
def resized_after(bed):
    """Who could not follow finds all of them in the next ring, as without the module."""
    client, server = bed.nodes[:2]
    shared = Shared(bed)
    shared.connect(bed.nics.env)
    shift.protected(server, 1)
    shift.must(client, "pair", "drain", bed.nics.default)
    shift.protected(server, 1, "fallback")
    shared.message(0, 4)
    shared.connect({})          # its peer has no module
    shared.message(1, 20)
    shared.message(0, 20)
    states = sorted(row["state"] for row in shift.qps(server))
    check(states == ["fallback", "unprotected"], f"one is away and one is not: {states}")
    shared.does("drop 0")
    shared.close(0)
    counters = shift.Counters(bed)
    shared.does("resize 64")
    shared.message(1, 50)
    kicks = counters.delta("kicks")
    check(kicks[1] == 0, f"the provider posts to the kernel still: {kicks}")
    shared.close(1)
    shared.end()
    counters.still("switches", "side_wc", "failed", "illegal", "msg_bad")
    shift.must(client, "pair", "undrain", bed.nics.default)


for _name, (_options, _qps, _side, _kernels) in FAULTS.items():
    add("srq", _name, partial(fault, _options, _qps, _side), _kernels)
for _name, (_move, _options, _qps, *_sides) in MOVES.items():
    add("srq", _name, partial(_move, _options, _qps, *_sides))
add("srq", "ACKs of SENDs lost", lost_acks)
