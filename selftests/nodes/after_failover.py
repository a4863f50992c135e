# SPDX-License-Identifier: GPL-2.0
"""Every operation that can be moved, under a pulled cable or lost packets."""

from functools import partial

import shift
from ends import Ends
from registry import FULL, MAIN, STOCK, add
from testbed import check, wait_for
from traffic import QP_TIMEOUT
from nodes.failover import atomics_move, dropped, on_backup, pull, start, survives

MOVED = "write,write_imm,send,send_imm,read"
PACE = ["--progress", 50, "--depth", 16]
MIXED = ["--ops", MOVED, "--mix", "--size", "0-9000", *PACE]

# What is mixed, by name: options, QPs, which end loses its cable, kernels.
MIXES = {
    "all, both directions": (
        [*MIXED, "--bidir", "--signal-every", 4], 4, "local", MAIN),
    "all, one direction": (MIXED, 1, "remote", FULL),
    "ibv_wr_*, inline, lists": (
        [*MIXED, "--bidir", "--post", "wr", "--inline", "--sge", 4], 2, "local", FULL),
    "asleep": ([*MIXED, "--bidir", "--events"], 2, "remote", FULL),
    # What comes from the backup may wake more than asked for, and never less.
    "asleep, solicited events": (
        [*MIXED, "--bidir", "--events", "--solicited", "--more-events"], 2, "local", FULL),
    "one CQ for all, resized": (
        [*MIXED, "--bidir", "--shared-cq", "--resize-cq"], 4, "local", STOCK),
    "one CQ for all, remote cable": (
        [*MIXED, "--bidir", "--shared-cq"], 4, "remote", STOCK),
    "one CQ for all, asleep": (
        [*MIXED, "--bidir", "--shared-cq", "--events"], 2, "local", MAIN),
    "one CQ for all, unsignaled": (
        [*MIXED, "--bidir", "--shared-cq", "--signal-every", 8, "--chain", 8], 4,
        "local", STOCK),
    "ibv_start_poll": ([*MIXED, "--bidir", "--poll", "start"], 2, "local", FULL),
    "READs of no bytes, without a key": (
        ["--ops", "read", "--size", "0-1", "--keyless", "--bidir", *PACE], 2, "local", FULL),
    "messages of 64 KiB": (
        [*MIXED, "--bidir", "--size", "1-65536", "--progress", 10, "--depth", 8], 2, "local",
        FULL),
}

# Lost at the client on the backup, one after the other, each once: options, direction, opcodes.
REQUESTS = "out", ("RC_READ_REQ", "RC_WRITE_*", "RC_SEND_*") * 2
ANSWERS = "in", ("RC_READ_RESP_*",) * 6
# A retry of a READ behind a fenced operation is what rxe's own fence does not survive.
FENCED = [*MIXED, "--fence", 3]
# rxe 6.1 looks at the key of a READ of no bytes when it is repeated.
NO_BYTES = ["--ops", "read", "--size", "0-1", *PACE]
LOSSES = {
    "fences on the backup, requests lost": (FENCED, *REQUESTS),
    "fences on the backup, READ answers lost": (FENCED, *ANSWERS),
    "READs of no bytes on the backup, answers lost": (NO_BYTES, *ANSWERS),
}


def mixed(options, qps, side, bed):
    """Traffic, pull, traffic on the backup, all verified."""
    verify = start(bed, *options, qps=qps)
    survives(bed, verify, side, qps)


def states(node):
    """Of the node's QPs, sorted."""
    return sorted(row["state"] for row in shift.qps(node))


def one_cq(bed):
    """One QP ended by its application's own error, one away, one back, one at home; a cable."""
    client = bed.nodes[0]
    verify = start(bed, *MIXED, "--bidir", "--shared-cq", "--allow-error", "--sabotage", "rkey",
                   qps=4)
    counters = shift.Counters(bed)
    verify.go()
    verify.client.wait_line("^error qp 0 wr 0x")
    wait_for("one QP has ended", lambda: states(client).count("default") == 3)
    away, back, _ = [row["qpn"] for row in shift.qps(client) if row["state"] == "default"]
    for qpn, where, state in ((away, "backup", "fallback"), (back, "backup", "fallback"),
                              (back, "default", "returned")):
        shift.must(client, "qp", "move", bed.nics.default, str(qpn), where)
        wait_for(f"QP {qpn} is {state}", lambda qpn=qpn, state=state: state in (
            row["state"] for row in shift.qps(client) if row["qpn"] == qpn))
    verify.more(2)
    check([name for name in states(client) if name in ("default", "fallback", "returned")]
          == ["default", "fallback", "returned"], f"states: {states(client)}")
    pull(bed, "local")
    for node in bed.nodes[:2]:
        wait_for("three are on the backup", lambda node=node:
                 states(node).count("fallback") == 3, 60)
    verify.more(2)
    verify.finish()
    counters.moved("switches", 5)
    counters.still("illegal", "msg_bad")


def alone(name, side, bed):
    """One kind of operation only."""
    verify = start(bed, "--ops", name, "--size", "1-20000", "--guard", *PACE, qps=2)
    survives(bed, verify, side, 2)


def lost_answer(name, opcode, options, bed):
    """The peer executes it and its answers are lost until retries run out."""
    client = bed.nodes[0]
    verify = start(bed, "--ops", name, "--size", "1-9000", "--guard", *PACE, *options,
                   qps=2, timeout=QP_TIMEOUT)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    bed.drop(client, 0, direction="in", opcode=opcode)
    wait_for("failover on both nodes", lambda: all(
        n >= 2 for n in counters.delta("switches")), 120)
    check(dropped(bed) > 0, "no packet was dropped")
    if name != "read":
        check(counters.delta("executed")[0] > 0, "nothing was found executed")
    verify.more(3)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


def lost_on_backup(options, direction, opcodes, bed):
    """Packets are lost on the backup, one at a time, and rxe repeats them."""
    client = bed.nodes[0]
    verify = start(bed, *options, "--bidir", qps=2)
    survives(bed, verify, "local", 2, finish=False)
    counters = shift.Counters(bed)
    check(not dropped(bed, 1), "packets are lost already")
    for lost, opcode in enumerate(opcodes, 1):
        # its number among those to come; not always the first of a burst
        bed.drop(client, 1, direction=direction, opcode=opcode, skip=5 * lost,
                 count=1)
        wait_for(f"loss {lost}", lambda n=lost: dropped(bed, 1) == n, 60)
        verify.more(1)
    verify.more(2)
    on_backup(bed, 2)
    verify.finish()
    check(dropped(bed, 1) == len(opcodes), f"{dropped(bed, 1)} packets were lost")
    # Nobody left the path over it, and nothing stood still until its deadline.
    counters.still("switches", "stalled", "failed", "illegal", "msg_bad")


def odd_receive(bed):
    """A receive that cannot be posted on the backup is an error when a message takes it."""
    server = bed.nodes[1]
    ends = Ends(bed, "recv_edge")
    for node in bed.nodes[:2]:
        shift.protected(node, 1)
    ends.do(ends.server, "receive 2")
    ends.do(ends.client, "send", "0 success")
    pull(bed, "local")
    on_backup(bed, 1)
    counters = shift.Counters(bed)
    ends.do(ends.server, "spoil")
    ends.do(ends.server, "receive 2")
    # what was posted before it is of use, and nothing happens to the QP until it is its turn
    ends.do(ends.client, "send", "0 success")
    ends.do(ends.server, "next", "0 success")
    ends.do(ends.server, "next", "1 success")
    counters.still("failed")
    kicks = shift.stats(server)["kicks"]
    ends.client.send("send")
    seen = len(ends.server.lines)
    ends.server.send("next")
    said = Ends.said(ends.server, seen, 120)
    check(said.startswith("2 local "), f"the odd receive: '{said}'")
    for number in (3, 4):
        ends.do(ends.server, "next", f"{number} Work Request Flushed Error")
    check(shift.stats(server)["kicks"] <= kicks + 4, "it was tried again and again")
    ends.client.wait_line(r"^0 (?!success)", 120)
    counters.still("illegal", "msg_bad")
    ends.close()


def atomics(bed):
    """Among other work: one whose answer is lost ends in an error, is never applied twice.

    They may be moved here. One that stays on its NIC would need that to give up, and rxe of 6.1
    may forget to (Documentation/known-issues.md).
    """
    client = bed.nodes[0]
    with atomics_move(bed):
        verify = start(bed, "--ops", "fadd,cas,write", "--mix", "--allow-error", *PACE, qps=4)
        counters = shift.Counters(bed)
        verify.go()
        verify.more(3)
        bed.drop(client, 0, direction="in", opcode="RC_ATOMIC_ACK")
        wait_for("an answer lost", lambda: dropped(bed) > 0, 60)
        pull(bed, "local")
        wait_for("a QP that has failed", lambda: any(counters.delta("failed")), 120)
        verify.client.send("stop")
        status = verify.client.wait(120), verify.server.wait(120)
        check(status == (0, 0), f"they ended with {status}:\n{verify.client.tail()}\n"
                                f"{verify.server.tail()}")
        verify.client.wait_line("^error qp ")
        counters.still("illegal", "msg_bad")


def register():
    """Those on every kernel first."""
    for name, (options, qps, side, kernels) in MIXES.items():
        add("after_failover", name, partial(mixed, options, qps, side), kernels)
    for i, name in enumerate(MOVED.split(",")):
        side = ("local", "remote")[i % 2]
        add("after_failover", f"{name}, {side} cable", partial(alone, name, side), FULL)
    # those of one operation at a time are in exactly_once.py
    for name, opcode, options in (
            ("read", "RC_READ_RESP_*", ()), ("send", "RC_ACK", ("--shared-cq", "--bidir"))):
        add("after_failover", " ".join((name, "answers lost", *options)),
            partial(lost_answer, name, opcode, options), FULL)
    for name, losses in LOSSES.items():
        add("after_failover", name, partial(lost_on_backup, *losses))
    add("after_failover", "one CQ for QPs in every state", one_cq)
    add("after_failover", "a receive that cannot be posted there", odd_receive)
    add("after_failover", "atomics: an error where the answer is lost", atomics, FULL)


register()
