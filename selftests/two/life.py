# SPDX-License-Identifier: GPL-2.0
"""What an application does to the life of its QP while that is not where it thinks."""

import shift
from ends import Ends
from registry import FULL, MAIN, test
from testbed import check, wait_for
from two.failover import dropped, fall_back

SHORT = 16		# timeout of an ACK: 0.27 s
LONG = 18		# 1 s


def live(bed, timeout=LONG):
    """Both ends connected and protected."""
    ends = Ends(bed, "life_edge")
    begin(bed, ends, timeout)
    return ends


def begin(bed, ends, timeout=LONG):
    """A life, from RESET on."""
    ends.both("rtr")
    ends.both(f"rts {timeout}")
    for node in bed.nodes[:2]:
        shift.protected(node, 1)


def write(ends, value, sender="client"):
    """One end writes, the other has it."""
    receiver = "server" if sender == "client" else "client"
    ends.do(getattr(ends, sender), f"write {value}")
    ends.do(getattr(ends, receiver), "byte", str(value))


@test("life", "ended as its errors are kept back", MAIN)
def ended(bed):
    """The peer is asked and does not answer: what failed is shown, all of it, once."""
    ends = live(bed, SHORT)
    client = bed.nodes[0]
    write(ends, 1)
    counters = shift.Counters(bed)
    bed.drop(client, 1, "--dir", "out")
    bed.drop(client, 0, "--dir", "out")
    ends.do(ends.client, "post 8")
    ends.client.send("done 8")
    wait_for("an error is kept back", lambda: counters.delta("swallowed")[0] > 0, 60)
    seen = len(ends.client.lines)
    ends.do(ends.client, "err")
    counters.still("switches", "failed", "illegal")
    got = ends.said(ends.client, seen + 1)
    check(got == "1 transport retry counter exceeded, 7 Work Request Flushed Error",
          f"completions: {got}")
    check(dropped(bed) > 0, "no packet was dropped")
    ends.do(ends.client, "state", "ERR")
    bed.undrop()
    ends.close()


@test("life", "attributes changed while away", MAIN)
def changed(bed):
    """Access that is taken back on the backup is refused there, as on the own NIC."""
    ends = live(bed)
    fall_back(bed)
    write(ends, 2)
    ends.do(ends.server, "access 0")
    ends.do(ends.server, "access 1")
    write(ends, 3)
    ends.do(ends.server, "access 0")
    ends.do(ends.client, "write 4", "1 remote invalid request error")
    ends.do(ends.server, "byte", "3")
    ends.do(ends.client, "state", "ERR")
    ends.close()


@test("life", "RTS after its path has gone", MAIN)
def late(bed):
    """An end that only receives is moved; it sends when the application says so."""
    ends = Ends(bed, "life_edge")
    ends.both("rtr")
    ends.do(ends.client, f"rts {LONG}")
    for node in bed.nodes[:2]:
        shift.protected(node, 1)
    fall_back(bed)
    write(ends, 2)
    ends.do(ends.server, "state", "RTR")
    ends.do(ends.server, f"rts {LONG}")
    ends.do(ends.server, "state", "RTS")
    write(ends, 3, "server")
    write(ends, 4)
    ends.close()


@test("life", "two lives of one QP", FULL)
def again(bed):
    """Reset while away, connected again, and moved again."""
    ends = live(bed)
    counters = shift.Counters(bed)
    for value in (10, 20):
        write(ends, value)
        fall_back(bed)
        write(ends, value + 1)
        write(ends, value + 2, "server")
        bed.plug_all()
        shift.wait_session(bed)
        ends.both("reset")
        ends.do(ends.client, "state", "RESET")
        begin(bed, ends)
    write(ends, 30)
    ends.close()
    counters.moved("switches", 2)
    counters.still("failed", "illegal", "msg_bad")
