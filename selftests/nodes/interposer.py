# SPDX-License-Identifier: GPL-2.0
"""Another module that replaces an operation of the device, before rdma_shift does or after it.

It is interposer.ko, which passes on each call of modify_qp, or holds those of one QP, or those that
end QPs of the kernel.
"""

from contextlib import contextmanager

import shift
from ends import Ends
from registry import LOADED, test
from testbed import PREFIX, check, wait_for
from traffic import Verify
from nodes.module import no_trace

PARAMETERS = "/sys/module/interposer/parameters"
TAKEN = "another module has changed the device's operations"


def says(node, name):
    """A parameter of the other module's."""
    return node.read(f"{PARAMETERS}/{name}").strip()


def put_in(node):
    """It replaces the operation."""
    node.write(f"{PARAMETERS}/on", "1\n")


def hold_ends(node, wanted=True):
    """Queue pairs of the kernel are kept from being brought to ERR, or not any more."""
    node.write(f"{PARAMETERS}/hold", f"{(1 << 32) - 1 if wanted else 0}\n")


def leaves(node):
    """It restores what it has found; whether its own entry was there."""
    return node.run(["lab-write", f"{PARAMETERS}/on"], stdin=b"0\n").status == 0


@contextmanager
def interposer(node):
    """The other module, while it lasts; it has replaced nothing yet."""
    node.must(f"insmod {PREFIX}/interposer.ko dev=rxe0", timeout=120)
    try:
        yield
    finally:
        # a call that it holds ends by that
        leaves(node)
        removal = node.run("rmmod interposer", timeout=120)
    check(removal.status == 0, f"it stays: {removal.text}")


def passes(node, tracked=True):
    """A QP is brought to INIT through all that was replaced; whether rdma_shift knows it."""
    before = int(says(node, "calls"))
    process = node.start(["ibv_rc_pingpong", "-d", "rxe0", "-g", "1"])
    try:
        wait_for("modify_qp is passed on", lambda: process.status is not None or
                 int(says(node, "calls")) > before)
        check(process.status is None, f"it ended: {process.text}")
        if tracked:
            wait_for("the QP is tracked", lambda: shift.tracked(node))
    finally:
        process.stop()
    if tracked:
        wait_for("no QP left", lambda: not shift.tracked(node))


@test("pair", "another module has replaced an operation before", state=LOADED)
def below(bed):
    """It gets its entry back, as it was, and cannot leave before."""
    node = bed.nodes[0]
    with interposer(node):
        put_in(node)
        shift.must(node, "pair", "add", "rxe0", "rxe1")
        passes(node)
        check(not leaves(node), "its entry was there: nothing is interposed")
        shift.must(node, "pair", "del", "rxe0")
        passes(node, tracked=False)
        check(leaves(node), "its entry is not there any more")


@test("pair", "another module replaces an operation meanwhile", state=LOADED)
def above(bed):
    """pair del is refused and changes nothing, as long as the other module is there."""
    node = bed.nodes[0]
    shift.must(node, "pair", "add", "rxe0", "rxe1")
    with interposer(node):
        put_in(node)
        passes(node)
        before = shift.show(node, "pair")
        shift.refused(node, "pair", "del", "rxe0", says=TAKEN)
        check(shift.show(node, "pair") == before, f"it changed {before}")
        passes(node)
        check(leaves(node), "its entry is not there any more")
    shift.must(node, "pair", "del", "rxe0")
    check(shift.show(node, "pair") == [], "a pair is left")


@test("pair", "rmmod waits for another module's operation", state=LOADED)
def unloaded_below(bed):
    """What the other module calls stays until that has gone."""
    node = bed.nodes[0]
    shift.must(node, "pair", "add", "rxe0", "rxe1")
    told = node.console.count("waiting until it is gone")
    try:
        with interposer(node):
            put_in(node)
            removal = node.start(["rmmod", "rdma_shift"])
            wait_for("rmmod waits", lambda: removal.status is not None or
                     node.console.count("waiting until it is gone") > told)
            passes(node, tracked=False)
            check(removal.status is None, f"rmmod did not wait: {removal.text}")
            check(leaves(node), "its entry is not there any more")
            removal.expect(0)
        no_trace(node)
    finally:
        if not shift.loaded(node):
            shift.load(node)


def state(node, qpn):
    """The state of one QP, without any wait."""
    return [row["state"] for row in shift.qps(node) if row["qpn"] == qpn]


def asks(node, qpn):
    """Whether a QP asks its peer to move; it is told to if not: it gives up without an answer."""
    # a move that waits for the peer's answer
    if state(node, qpn) == ["wait-sinked"]:
        return True
    # refused if it has begun meanwhile
    shift.ctl(node, "qp", "move", "rxe0", str(qpn), "backup")
    return False


def number(node, comm):
    """The QP of a program that has one."""
    found = [row["qpn"] for row in shift.qps(node) if row["comm"] == comm]
    check(len(found) == 1, f"QPs of {comm}: {found}")
    return found[0]


@contextmanager
def slow_driver(node):
    """The other module is below rdma_shift on rxe0."""
    with interposer(node):
        shift.must(node, "pair", "del", "rxe0")
        put_in(node)
        shift.must(node, "pair", "add", "rxe0", "rxe1")
        try:
            yield
        finally:
            # a program can end only when nothing of it is held
            node.run(["lab-write", f"{PARAMETERS}/hold"], stdin=b"0\n")
            node.cluster.stop_processes()
        wait_for("no QP left", lambda: not shift.tracked(node))
        shift.must(node, "pair", "del", "rxe0")
    shift.must(node, "pair", "add", "rxe0", "rxe1")


@test("pair", "a driver's verb takes long: other QPs of the link fail over")
def held(bed):
    """The mutex of one QP is held all the time, and a message for it has come before theirs."""
    client, server = bed.nodes[:2]
    with slow_driver(client):
        ends = Ends(bed, "life_edge")
        ends.both("rtr")
        ends.both("rts 18")
        verify = Verify(client, server, "--progress", 200)
        for node in (client, server):
            shift.protected(node, 2)
        slow, slow_peer = (number(node, "life_edge") for node in (client, server))
        other, other_peer = (number(node, "shift_verify") for node in (client, server))
        verify.go()
        verify.more(1)

        client.write(f"{PARAMETERS}/hold", f"{slow}\n")
        seen = len(ends.client.lines)
        ends.client.send("access 1")
        wait_for("the verb is held", lambda: says(client, "held") == "Y")
        wait_for("its peer has asked", lambda: asks(server, slow_peer))
        shift.must(server, "qp", "move", "rxe0", str(other_peer), "backup")
        wait_for("the other QP has failed over", lambda: state(client, other) ==
                 state(server, other_peer) == ["fallback"], 90)
        verify.more(2)
        check(state(client, slow) == ["default"], f"it is not held: {state(client, slow)}")
        check(says(client, "held") == "Y" and len(ends.client.lines) == seen,
              "the verb has ended meanwhile")

        client.write(f"{PARAMETERS}/hold", "0\n")
        check(ends.said(ends.client, seen) == "ok", f"the verb failed: {ends.client.tail()}")
        shift.must(server, "pair", "drain", "rxe0")
        for node in (client, server):
            shift.protected(node, 2, "fallback")
        shift.must(server, "pair", "undrain", "rxe0")
        shift.home(bed, 2)
        verify.finish()
        ends.close()
