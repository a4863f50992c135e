# SPDX-License-Identifier: GPL-2.0
"""What an application does to the life of its QP while that is not where it thinks."""

from functools import partial

import shift
from ends import Ends
from registry import FULL, MAIN, STOCK, add, test
from testbed import check, wait_for
from nodes.failover import beating, dropped, fall_back, patience, pull

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


def kept_back(bed, ends):
    """Eight writes are lost, and so is what the peer is asked: the error is not shown.

    Lost where they arrive: rxe 6.12 does not survive that its netdev refuses a packet.
    """
    write(ends, 1)
    counters = shift.Counters(bed)
    for rail in (1, 0):
        bed.drop(bed.nodes[1], rail, direction="in")
    ends.do(ends.client, "post 8")
    ends.client.send("done 8")
    wait_for("an error is kept back", lambda: counters.delta("swallowed")[0] > 0, 60)
    return counters


def ended(order, state, bed):
    """What was kept back is shown, all of it, once; and the QP can be used again.

    No heartbeats: once a link has found out that the backup is dead, too, the module gives up.
    """
    ends = live(bed, SHORT)
    with patience(bed, 0), beating(bed, 0):
        counters = kept_back(bed, ends)
        seen = len(ends.client.lines)
        ends.do(ends.client, order)
        counters.still("switches", "failed", "illegal")
        got = ends.said(ends.client, seen + 1)
        check(got == "1 transport retry counter exceeded, 7 Work Request Flushed Error",
              f"completions: {got}")
        check(dropped(bed) > 0, "no packet was dropped")
        ends.do(ends.client, "state", state)
        bed.undrop()
    bed.plug_all()
    ends.both("reset")
    begin(bed, ends, LONG)
    write(ends, 2)
    fall_back(bed)
    write(ends, 3)
    ends.close()


for _order, _state in (("err", "ERR"), ("reset", "RESET")):
    add("application_qp", f"{_order} as errors are kept back", partial(ended, _order, _state), MAIN)


@test("application_qp", "a bad receive on the backup, and a second life", MAIN)
def bad_receive(bed):
    """What broke the first life is nothing to the second."""
    ends = live(bed)
    fall_back(bed)
    ends.do(ends.server, "bad")
    ends.server.send("done 1")
    ends.do(ends.client, "send", "1 remote operation error")
    bed.plug_all()
    shift.wait_session(bed)
    ends.both("reset")
    begin(bed, ends)
    write(ends, 2)
    counters = shift.Counters(bed)
    shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
    for node in bed.nodes[:2]:
        shift.protected(node, 1, "fallback")
    write(ends, 3)
    shift.home(bed, 1)
    ends.close()
    counters.still("failed", "illegal", "msg_bad")


@test("application_qp", "attributes changed while away", MAIN)
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


def cannot_send(bed):
    """Both ends on the backup, of which the server has not come further than RTR."""
    ends = Ends(bed, "life_edge")
    ends.both("rtr")
    ends.do(ends.client, f"rts {LONG}")
    for node in bed.nodes[:2]:
        shift.protected(node, 1)
    fall_back(bed)
    return ends


@test("application_qp", "RTS after its path has gone", MAIN)
def late(bed):
    """An end that only receives is moved; it sends when the application says so."""
    ends = cannot_send(bed)
    write(ends, 2)
    ends.do(ends.server, "state", "RTR")
    ends.do(ends.server, f"rts {LONG}")
    ends.do(ends.server, "state", "RTS")
    write(ends, 3, "server")
    write(ends, 4)
    ends.close()


@test("application_qp", "moved and reset before it could send, and a second life", STOCK)
def never_sent(bed):
    """What is outstanding in that life is counted from its own beginning, not from the first's."""
    ends = cannot_send(bed)
    write(ends, 1)
    bed.plug_all()
    shift.wait_session(bed)
    ends.both("reset")
    begin(bed, ends)
    counters = shift.Counters(bed)
    bed.drop(bed.nodes[1], 0, direction="out", opcode="RC_WRITE_*")
    ends.do(ends.server, "post 4")
    wait_for("a packet lost", lambda: dropped(bed) > 0, 60)
    seen = len(ends.server.lines)
    ends.server.send("done 4")
    # on a slow machine its retries may be over before
    pull(bed, "local")
    wait_for("failover on both nodes", lambda: min(counters.delta("switches")) >= 1, 60)
    check(ends.said(ends.server, seen) == "ok", "not all were executed")
    ends.do(ends.client, "byte", "1")
    check(counters.delta("replayed")[1] == 4, f"replayed: {counters.delta('replayed')}")
    write(ends, 5, "server")
    ends.close()
    counters.still("failed", "executed", "illegal", "msg_bad")


def answered(bed):
    """What was acknowledged to each node on the links of the backup."""
    return [sum(link["acked"] for link in shift.show(node, "link") if link["dev"] == "rxe1")
            for node in bed.nodes[:2]]


@test("application_qp", "a QP whose peer has ended is not paired with that", FULL)
def ended_peer(bed):
    """It tries, is refused, and is protected in its next life."""
    ends = live(bed)
    counters = shift.Counters(bed)
    ends.do(ends.server, "err")
    shift.wait_reason(bed.nodes[0], "peer-unprotected")
    for _ in range(3):
        before = answered(bed)
        ends.do(ends.client, "access 1")    # a step of its own has it try again
        wait_for("a PAIR and an answer", lambda old=before: all(
            new > count for new, count in zip(answered(bed), old)), 60)
        shift.wait_reason(bed.nodes[0], "peer-unprotected")
    ends.both("reset")
    begin(bed, ends)
    check(counters.delta("paired") == [1, 1], f"paired: {counters.delta('paired')}")
    write(ends, 1)
    fall_back(bed)
    write(ends, 2)
    ends.close()
    counters.still("failed", "illegal", "msg_bad")


@test("application_qp", "two lives of one QP", FULL)
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
