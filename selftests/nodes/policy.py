# SPDX-License-Identifier: GPL-2.0
"""When there is nobody to fail over to: as without the module, and why."""

import time

import kmsg
import shift
from registry import FULL, LOADED, MAIN, STOCK, test
from testbed import check, wait_for
from traffic import QP_TIMEOUT, Verify
from nodes.failover import pull, shape, start
from nodes.second_failure import goes_down


def flap(node, rail, seconds):
    """Pull a cable and put it back after that long.

    The only place where time itself is what is tested.
    """
    # The kernel tells drivers at most once a second: wait until it has.
    text = f"infiniband rxe{rail}: set down"
    downs = node.console.count(text)
    node.link(rail, False)
    wait_for(f"{node.name}: port down",
             lambda: node.console.count(text) > downs)
    time.sleep(seconds)
    node.link(rail, True)


def false_alarm(bed, whose):
    """A 200 ms flap while a backup is dead: nobody may consent."""
    verify = start(bed, *shape(4096, 1), timeout=QP_TIMEOUT)
    client = bed.nodes[0]
    bed.nodes[0 if whose == "own" else 1].link(1, False)
    wait_for("no link on rail 1", lambda: all(
        sum(row["state"] == "up" for row in shift.show(node, "link")) <= 1
        for node in bed.nodes), 90)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(3)
    flap(client, 0, 0.2)
    verify.more(3, timeout=120)
    verify.finish()
    counters.still("switches", "failed", "illegal")


# On 6.1 only: rxe of 6.12 may fail a QP the moment its carrier goes, module or not.
@test("policy", "200 ms flap while the peer's backup is dead")
def flap_peer(bed):
    """Consent before fence: no error, nothing switched."""
    false_alarm(bed, "peer")


@test("policy", "200 ms flap while the own backup is dead")
def flap_own(bed):
    """The same with no path to ask over."""
    false_alarm(bed, "own")


@test("policy", "backup and default dead: the error comes in time", MAIN)
def all_dead(bed):
    """What the application would have got without us, and soon."""
    verify = start(bed, *shape(4096, 2), qps=2, timeout=QP_TIMEOUT)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(3)
    bed.nodes[0].link(1, False)
    bed.nodes[0].link(0, False)
    verify.fails(timeout=90)
    counters.still("illegal")


@test("policy", "backup first, default later: the error comes in time")
def dead_in_turn(bed):
    """The session knows before the fault that the backup is dead."""
    verify = start(bed, *shape(4096, 1), timeout=QP_TIMEOUT)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    goes_down(bed, 1)
    wait_for("no link on rail 1", lambda: all(
        sum(row["state"] == "up" for row in shift.show(node, "link")) <= 1
        for node in bed.nodes), 90)
    verify.more(2)
    goes_down(bed, 0, side=0)
    verify.fails(timeout=90)
    counters.still("switches", "illegal")


def unprotected(bed, reason, *options, env=None, **more):
    """Runs as without the module; says why; gets its own error."""
    client, server = bed.nodes[:2]
    keywords = dict(more) if env is None else dict(more, env=env)
    verify = Verify(client, server, *shape(4096, 1), *options, **keywords)
    shift.wait_reason(client, reason)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(3)
    pull(bed, "local")
    verify.fails()
    counters.still("switches", "swallowed", "illegal")


@test("policy", "stock provider: unprotected, its own error", STOCK)
def stock_provider(bed):
    """Both sides run the libraries of the distribution."""
    unprotected(bed, "no-provider", env=bed.nics.stock)


@test("policy", "no peer in the directory", FULL, LOADED)
def no_peer(bed):
    """Pairs are there, nobody told of the other node."""
    try:
        for node in bed.nodes:
            shift.pair(node)
        unprotected(bed, "no-peer")
    finally:
        bed.stop_processes()
        for node in bed.nodes:
            for row in shift.show(node, "pair"):
                shift.must(node, "pair", "del", row["dev"])


@test("policy", "the peer runs without the module", FULL, LOADED)
def peer_without(bed):
    """The directory knows the peer, its module is not loaded."""
    client, server = bed.nodes[:2]
    try:
        for node in bed.nodes:
            shift.pair(node)
        shift.introduce(bed)
        for row in shift.show(server, "pair"):
            shift.must(server, "pair", "del", row["dev"])
        for row in shift.show(server, "peer"):
            shift.must(server, "peer", "del", row["node"])
        shift.unload(server)
        verify = Verify(client, server, *shape(4096, 1), env=shift_env(bed))
        shift.wait_reason(client, "no-session")
        verify.go()
        verify.more(3)
        pull(bed, "local")
        verify.fails()
    finally:
        bed.stop_processes()
        for row in shift.show(client, "peer"):
            shift.must(client, "peer", "del", row["node"])
        for row in shift.show(client, "pair"):
            shift.must(client, "pair", "del", row["dev"])
        if not shift.loaded(server):
            shift.load(server)


def shift_env(_bed):
    """The patched provider, also where there is no module."""
    from testbed import PATCHED         # pylint: disable=C0415
    return PATCHED


@test("policy", "rmmod and pair del refused with protected QPs")
def rmmod_refused(bed):
    """Both nodes, before and after a failover; nothing changes by asking."""
    verify = start(bed, *shape(4096, 1))
    verify.go()
    verify.more(2)
    for node in bed.nodes:
        check(node.run("rmmod rdma_shift").status != 0,
              f"{node.name}: rmmod was not refused")
        shift.refused(node, "pair", "del", bed.nics.default)
    pull(bed, "local")
    wait_for("on the backup", lambda: all(
        row["state"] == "fallback" for node in bed.nodes
        for row in shift.qps(node)), 60)
    for node in bed.nodes:
        check(node.run("rmmod rdma_shift").status != 0,
              f"{node.name}: rmmod was not refused in Fallback")
    verify.more(2)
    verify.finish()


@test("policy", "an application killed in the middle of a failover", MAIN)
def killed(bed):
    """SIGKILL right after the cable went; nothing is left, the next runs."""
    client, server = bed.nodes[:2]
    verify = start(bed, *shape(65536, 4), qps=4)
    verify.go()
    verify.more(2)
    pull(bed, "local")
    client.must("killall -9 shift_verify")
    check(verify.client.wait(60) == 137, "the client was not killed")
    verify.server.wait(60)
    for node in (client, server):
        wait_for(f"{node.name}: no QP left",
                 lambda node=node: not shift.qps(node), 60)
    bed.plug_all()
    shift.wait_session(bed)
    verify = start(bed, *shape(4096, 1), state="default")
    verify.go()
    verify.more(2)
    verify.finish()


@test("policy", "the peer's application killed under traffic")
def peer_killed(bed):
    """The survivor gets the error it would have got, and soon."""
    server = bed.nodes[1]
    verify = start(bed, *shape(4096, 2), qps=2, timeout=QP_TIMEOUT)
    verify.go()
    verify.more(2)
    server.must("killall -9 shift_verify")
    status = verify.client.wait(90)
    check(status == 3, f"the client ended with {status}:\n"
                       f"{verify.client.tail()}")
    for node in bed.nodes:
        wait_for(f"{node.name}: no QP left",
                 lambda node=node: not shift.qps(node), 60)


@test("policy", "kmemleak finds nothing", ("debug",))
def leaks(bed):
    """After all the others on this kernel: what lost its last pointer."""
    for node in bed.nodes:
        check(not node.run("test -e /sys/kernel/debug/kmemleak").status,
              f"{node.name}: this kernel has no kmemleak")
        found = kmsg.kmemleak(node)
        check(not found, f"{node.name}:\n{found}")
