# SPDX-License-Identifier: GPL-2.0
"""One packet of one chosen operation is lost, then the path: it is executed exactly once."""

from functools import partial

import shift
from registry import FULL, STOCK, add
from testbed import check, wait_for
from two.failover import atomics_move, dropped, pull, shape, start

# Packets of a WRITE of 64 KiB: 1, 62 and 1. How many go before the lost one, and what of the
# WRITE it was in is not sent again.
PLACES = {
    "the first packet": ("RC_WRITE_FIRST", 5, False),
    "one in the middle": ("RC_WRITE_MIDDLE", 5 * 62 + 30, True),
    "the last packet": ("RC_WRITE_LAST", 5, True),
}
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


def hole(opcode, skip, resumes, bed):
    """From one packet of a long WRITE on nothing of its kind arrives: it goes on there."""
    verify = start(bed, *shape(65536, 1))
    counters = shift.Counters(bed)
    bed.drop(bed.nodes[0], 0, "--dir", "out", "--opcode", opcode, "--skip", skip)
    verify.go()
    cut(bed)
    switched(bed, verify, counters)
    check(counters.delta("replayed")[0] > 0, "nothing was replayed")
    resumed = counters.delta("resumed")[0]
    check(resumed == resumes, f"{resumed} operations were resumed")


def one(operation, direction, opcode, expected, bed):
    """Its request or its answer is lost: (executed, replayed) says what was made of it."""
    verify = start(bed, "--ops", operation, *ONE)
    counters = shift.Counters(bed)
    bed.drop(bed.nodes[0], 0, "--dir", direction, "--opcode", opcode, "--skip", BEFORE)
    verify.go()
    cut(bed)
    switched(bed, verify, counters)
    found = counters.delta("executed")[0], counters.delta("replayed")[0]
    check(found == expected, f"executed, replayed: {found}, not {expected}")


def request(operation, opcode, bed):
    """The atomic was not executed: it is, once, on the other path."""
    with atomics_move(bed):
        one(operation, "out", opcode, (0, 1), bed)


def atomic_answer(operation, bed):
    """Executed, and what was there before it is lost: an error, and not a second time."""
    with atomics_move(bed):
        verify = start(bed, "--ops", operation, "--allow-error", *ONE)
        counters = shift.Counters(bed)
        bed.drop(bed.nodes[0], 0, "--dir", "in", "--opcode", "RC_ATOMIC_ACK", "--skip",
                 BEFORE)
        verify.go()
        cut(bed)
        for process in (verify.client, verify.server):
            process.expect(0, 120)
        verify.client.wait_line("^error qp 0 wr ")
        check(counters.delta("failed")[0] == 1, "no QP has failed")
        counters.still("replayed", "illegal", "msg_bad")


def register():
    """Those on both kernels first."""
    for name, place in PLACES.items():
        add("exact", f"{name} of a WRITE of 64 KiB is lost", partial(hole, *place), STOCK)
    for operation in ("send", "send_imm", "write", "write_imm", "read"):
        # the peer has executed it; a READ is asked again, as it changes nothing
        opcode, expected = (("RC_READ_RESP_*", (0, 1)) if operation == "read" else
                            ("RC_ACK", (1, 0)))
        add("exact", f"the answer to one {operation} is lost",
            partial(one, operation, "in", opcode, expected),
            STOCK if operation == "send" else FULL)
    for operation, opcode in (("fadd", "RC_FETCH_ADD"), ("cas", "RC_CMP_SWAP")):
        add("exact", f"one {operation} is lost", partial(request, operation, opcode),
            STOCK if operation == "fadd" else FULL)
        add("exact", f"the answer to one {operation} is lost",
            partial(atomic_answer, operation), STOCK if operation == "fadd" else FULL)


register()
