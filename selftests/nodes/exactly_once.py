# SPDX-License-Identifier: GPL-2.0
"""One packet of one chosen operation is lost, then the path: it is executed exactly once."""

from functools import partial

import shift
from registry import FULL, STOCK, add
from testbed import check, wait_for
from nodes.failover import (atomics_move, beating, dropped, fall_back, pull, rules, start,
                            survives)
from nodes.failback import everywhere

# Packets of a message of 64 KiB: 1, 62 and 1. How many of its opcode go before the lost one,
# and how many of the message have arrived by then.
PACKETS, MIDDLE = 64, 62
PLACES = {
    "the first packet": ("FIRST", 5, 0),
    "one in the middle": ("MIDDLE", 5 * MIDDLE + 30, 31),
    "the last packet": ("LAST", 5, 63),
}
MESSAGES = 20
COUNTED = 1000000000    # packets that a rule only counts
# One operation at a time: the answer that is lost is that of one that was executed.
ONE = ["--depth", 1, "--progress", 1, "--guard", "--size", "1-9000"]
BEFORE = 5		# answers or requests that are not lost


def cut(bed):
    """What was lost is lost for good: the cable goes, too."""
    wait_for("a packet lost", lambda: dropped(bed) > 0, 60)
    pull(bed, "local")


def switched(bed, verify, counters):
    """Once at both ends, and all is well after it."""
    wait_for("failover on both nodes", lambda: min(counters.delta("switches")) >= 1, 120)
    verify.more(3)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


def hole(place, skip, there, bed):
    """From one packet of a long WRITE on nothing of its kind arrives: it goes on just there."""
    client, server = bed.nodes[:2]
    verify = start(bed, "--size", 65536, "--depth", 1, "--iters", MESSAGES, "--progress", 1)
    counters = shift.Counters(bed)
    bed.drop(client, 0, direction="out", opcode=f"RC_WRITE_{place}", skip=skip)
    bed.drop(server, 1, direction="in", opcode="RC_WRITE_*", skip=COUNTED)
    verify.go()
    cut(bed)
    verify.end()
    counters.moved("switches")
    counters.still("failed", "illegal", "msg_bad")
    resumed, replayed = counters.delta("resumed")[0], counters.delta("replayed")[0]
    check((resumed, replayed) == (bool(there), 1), f"resumed {resumed}, replayed {replayed}")
    (came, _), = rules(bed, 1)
    want = (MESSAGES - 5) * PACKETS - there
    check(came == want, f"{came} packets came by the backup, not {want}")


def long(operation, opcode, options, bed):
    """Some packets of a message are lost: it is sent whole, and takes one receive."""
    qps = 4 if "--srq" in options else 1
    verify = start(bed, "--ops", operation, "--size", 65536, "--depth", 4, "--progress", 1,
                   "--guard", *options, qps=qps)
    counters = shift.Counters(bed)
    bed.drop(bed.nodes[0], 0, direction="out", opcode=opcode, skip=200)
    verify.go()
    cut(bed)
    switched(bed, verify, counters)
    check(counters.delta("replayed")[0] > 0, "nothing was replayed")
    counters.still("resumed")


def lost_again(operations, bed):
    """The answer to a READ is lost on both paths: it is asked a third time.

    What is behind it was executed at the first: never again.
    """
    client = bed.nodes[0]
    verify = start(bed, "--ops", operations, "--depth", 2, "--progress", 1, "--guard",
                   "--size", "100-9000", timeout=21)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    for rail in (1, 0):
        bed.drop(client, rail, direction="in", opcode="RC_READ_RESP_*")
    cut(bed)
    wait_for("an answer lost on the backup", lambda: dropped(bed, 1) > 0, 120)
    bed.clear(client, 0)
    client.link(0, True)
    bed.plugged(client)
    shift.wait_session(bed, 2)
    client.link(1, False)
    for node in bed.nodes[:2]:
        shift.protected(node, 1, "returned")
    check(counters.delta("replayed")[0] >= 2, f"replayed: {counters.delta('replayed')}")
    verify.more(3)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


def one(operation, direction, opcode, expected, bed):
    """Its request or its answer is lost: (executed, replayed) says what was made of it."""
    verify = start(bed, "--ops", operation, *ONE)
    counters = shift.Counters(bed)
    bed.drop(bed.nodes[0], 0, direction=direction, opcode=opcode, skip=BEFORE)
    verify.go()
    cut(bed)
    switched(bed, verify, counters)
    found = counters.delta("executed")[0], counters.delta("replayed")[0]
    check(found == expected, f"executed, replayed: {found}, not {expected}")


def again(operation, direction, opcode, expected, options, bed):
    """The same on the backup, whose QP is the kernel's, and on the way home."""
    client = bed.nodes[0]
    verify = start(bed, "--ops", operation, *(options or ONE))
    survives(bed, verify, "local", finish=False)
    bed.plug_all()
    shift.wait_session(bed, 2)
    shift.settled(bed)
    # what links send is not to be the answer that is lost
    with beating(bed, 0):
        counters = shift.Counters(bed)
        bed.drop(client, 1, direction=direction, opcode=opcode, skip=BEFORE)
        wait_for("a packet lost", lambda: dropped(bed, 1) > 0, 60)
        client.link(1, False)
        for node in bed.nodes[:2]:
            shift.protected(node, 1, "returned")
        verify.more(3)
        verify.finish()
    found = tuple(counters.delta(name)[0] for name in ("executed", "replayed", "resumed"))
    check(found == expected, f"executed, replayed, resumed: {found}, not {expected}")
    counters.still("failed", "illegal", "msg_bad")


def rewritten(bed):
    """A WRITE whose ACK is lost: its memory, which is changed as soon as it is there, stays."""
    verify = start(bed, "--size", 4096, "--depth", 1, "--progress", 1)
    counters = shift.Counters(bed)
    bed.drop(bed.nodes[0], 0, direction="in", opcode="RC_ACK", skip=BEFORE)
    verify.go()
    cut(bed)
    switched(bed, verify, counters)
    check(counters.delta("executed")[0] == 1, f"executed: {counters.delta('executed')}")


def ends_in_error(bed, verify, counters):
    """One QP's operation is reported, and the program finds all else right."""
    verify.go()
    cut(bed)
    for process in (verify.client, verify.server):
        process.expect(0, 120)
    verify.client.wait_line("^error qp 0 wr ")
    check(counters.delta("failed")[0] == 1, "no QP has failed")


def unanswered(operation, opcode, bed):
    """Between two NICs that are not atomic towards each other it is not moved: an error."""
    verify = start(bed, "--ops", operation, "--allow-error", *ONE)
    counters = shift.Counters(bed)
    bed.drop(bed.nodes[0], 0, direction="out", opcode=opcode, skip=BEFORE)
    bed.drop(bed.nodes[1], 1, direction="in", opcode=opcode, skip=COUNTED)
    verify.go()
    cut(bed)
    for process in (verify.client, verify.server):
        process.expect(0, 120)
    verify.client.wait_line("^error qp 0 wr ")
    # it is paired again now and then; if its retries run out just then, it is fenced, and fails
    counters.still("executed", "illegal", "msg_bad")
    (came, _), = rules(bed, 1)
    check(not came, f"{came} went by the backup")


def new_atomic(bed):
    """One that is posted on the backup, between NICs that are not atomic towards each other."""
    verify = start(bed, "--ops", "fadd", "--allow-error", *ONE)
    counters = shift.Counters(bed)
    fall_back(bed)
    bed.drop(bed.nodes[1], 1, direction="in", opcode="RC_FETCH_ADD", skip=COUNTED)
    verify.go()
    for process in (verify.client, verify.server):
        process.expect(0, 120)
    verify.client.wait_line("^error qp 0 wr ")
    (came, _), = rules(bed, 1)
    check(not came, f"{came} went by the backup")
    counters.moved("switches")
    counters.still("executed", "illegal", "msg_bad")


def comes_home(options, qps, bed):
    """One that is posted on the backup while its own NIC is good: its QP goes back for it.

    The NICs are not atomic towards each other, so none may go by the backup.
    """
    client = bed.nodes[0]
    verify = start(bed, *options, qps=qps)
    shift.wait_session(bed, 2)
    counters = shift.Counters(bed)
    bed.drop(bed.nodes[1], 1, direction="in", opcode="RC_FETCH_ADD", skip=COUNTED)
    try:
        shift.must(client, "pair", "drain", bed.nics.default)
        everywhere(bed, verify, "fallback")     # nothing was posted yet
        verify.go()
        everywhere(bed, verify, "returned")
        verify.more(2)
        shift.must(client, "pair", "drain", bed.nics.default)
        wait_for("there and back under traffic",
                 lambda: min(counters.delta("returns")) >= 2 * qps, 120)
        verify.more(2)
        verify.finish()
    finally:
        shift.must(client, "pair", "undrain", bed.nics.default)
    (came, _), = rules(bed, 1)
    check(not came, f"{came} went by the backup")
    counters.still("failed", "illegal", "msg_bad")


def request(operation, opcode, bed):
    """The atomic was not executed: it is, once, on the other path."""
    with atomics_move(bed):
        one(operation, "out", opcode, (0, 1), bed)


def late_answer(bed):
    """An operator's move waits for an atomic's answer, there and back; it is no error."""
    client = bed.nodes[0]
    with atomics_move(bed):
        verify = start(bed, "--ops", "fadd", *ONE, timeout=21)
        counters = shift.Counters(bed)
        verify.go()
        for rail, verb, state in ((0, "drain", "fallback"), (1, "undrain", "returned")):
            verify.more(2)
            before = shift.Counters(bed)
            bed.drop(client, rail, direction="in", opcode="RC_ATOMIC_ACK")
            wait_for("an answer lost", lambda rail=rail: dropped(bed, rail) > 0, 60)
            shift.must(client, "pair", verb, bed.nics.default)
            wait_for("a move that is called off",
                     lambda before=before: before.delta("abandoned")[0] > 0, 60)
            bed.undrop()
            everywhere(bed, verify, state)
        verify.more(2)
        verify.finish()
        counters.still("failed", "illegal", "msg_bad")


def atomic_answer(operation, bed):
    """Executed, and what was there before it is lost: an error, and not a second time."""
    with atomics_move(bed):
        verify = start(bed, "--ops", operation, "--allow-error", *ONE)
        counters = shift.Counters(bed)
        bed.drop(bed.nodes[0], 0, direction="in", opcode="RC_ATOMIC_ACK", skip=BEFORE)
        ends_in_error(bed, verify, counters)
        counters.still("replayed", "illegal", "msg_bad")


def register():
    """Those on both kernels first."""
    for name, place in PLACES.items():
        add("exactly_once", f"{name} of a WRITE of 64 KiB is lost", partial(hole, *place), STOCK)
    for operation, opcode, options in (
            ("write_imm", "RC_WRITE_MIDDLE", ()), ("send", "RC_SEND_MIDDLE", ()),
            ("send", "RC_SEND_LAST", ("--srq",))):
        add("exactly_once", " ".join((f"{opcode} of a {operation} is lost", *options)),
            partial(long, operation, opcode, options))
    add("exactly_once", "a WRITE is not written again when its ACK is lost", rewritten)
    for operations in ("read", "read,write"):
        add("exactly_once", f"the answer to a READ is lost on both paths: {operations}",
            partial(lost_again, operations))
    for operation in ("send", "send_imm", "write", "write_imm", "read"):
        # the peer has executed it; a READ is asked again, as it changes nothing
        opcode, expected = (("RC_READ_RESP_*", (0, 1)) if operation == "read" else
                            ("RC_ACK", (1, 0)))
        add("exactly_once", f"the answer to one {operation} is lost",
            partial(one, operation, "in", opcode, expected),
            STOCK if operation == "send" else FULL)
    for operation, opcode in (("fadd", "RC_FETCH_ADD"), ("cas", "RC_CMP_SWAP")):
        add("exactly_once", f"one {operation} is lost", partial(request, operation, opcode),
            STOCK if operation == "fadd" else FULL)
        add("exactly_once", f"the answer to one {operation} is lost",
            partial(atomic_answer, operation), STOCK if operation == "fadd" else FULL)
    small = [*ONE[:-1], "1-1000"]       # one packet each
    long_write = ["--size", 65536, "--depth", 1, "--progress", 1]
    for name, args in (
            ("the answer to a send", ("send", "in", "RC_ACK", (1, 0, 0), ())),
            ("the answer to a write", ("write", "in", "RC_ACK", (1, 0, 0), ())),
            ("the answer to a read", ("read", "in", "RC_READ_RESP_*", (0, 1, 0), ())),
            ("a write", ("write", "out", "RC_WRITE_*", (0, 1, 0), small)),
            ("the middle of a write of 64 KiB",
             ("write", "out", "RC_WRITE_MIDDLE", (0, 1, 1), long_write))):
        add("exactly_once", f"on the backup {name} is lost", partial(again, *args))
    add("exactly_once", "a fadd that is posted on the backup is an error", new_atomic)
    add("exactly_once", "a fadd that is posted on the backup comes home",
        partial(comes_home, ["--ops", "fadd", *ONE], 1), STOCK)
    add("exactly_once", "atomics among others come home, both directions",
        partial(comes_home, ["--ops", "write,send,read,fadd", "--mix", "--bidir", "--guard",
                             "--size", "1-5000", "--depth", 16, "--progress", 20], 3))
    add("exactly_once", "an operator's move waits for the answer to a fadd", late_answer, STOCK)
    add("exactly_once", "one fadd is lost and may not be moved", partial(unanswered, "fadd",
                                                                  "RC_FETCH_ADD"))


register()
