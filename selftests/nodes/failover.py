# SPDX-License-Identifier: GPL-2.0
"""A cable is pulled under traffic whose every byte is checked."""

from contextlib import contextmanager
from functools import partial

import shift
from registry import BARE, FULL, MAIN, SHIFT, STOCK, add, test
from testbed import Failure, check, each, wait_for
from traffic import BULK_TIMEOUT, QP_TIMEOUT, Verify

SIZES = {"1 B": 1, "4 KiB": 4096, "64 KiB": 65536, "1 MiB": 1 << 20}
SIDES = ("local", "remote")
SILENT_MS = 400         # the parameter as it is


def shape(size, qps):
    """Options that keep enough in flight and memory within a node's."""
    depth = {1: 64, 4096: 32, 65536: 16}.get(size, 4 if qps == 1 else 2)
    report = max(1, (1 << 20) // (size * 8)) if size > 64 else 500
    return ["--size", size, "--depth", depth, "--progress", min(report, 500)]


PACE = 3        # traffic rests so many times as long as it works: nodes' processors are few


def start(bed, *options, qps=1, state="default", timeout=BULK_TIMEOUT, **more):
    """Connect shift_verify and wait until all of its QPs are protected.

    A test in which retries are to run out on the QPs' own NIC asks for QP_TIMEOUT. Except on 6.1,
    links are waited for, too: RDMA CM of rxe 6.12 may never receive again if the cable goes
    while one is being connected (Documentation/status.md).
    """
    client, server = bed.nodes[:2]
    verify = Verify(client, server, "--qp-timeout", timeout, "--pace", PACE, *options, qps=qps,
                    **more)
    each((client, server), lambda node: shift.protected(node, qps, state))
    if bed.kernel != "6.1":
        shift.wait_session(bed)
    return verify


def pull(bed, side):
    """Pull the cable of rail 0 at the client's or the server's end."""
    bed.nodes[0 if side == "local" else 1].link(0, False)


def fall_back(bed, side="local"):
    """The cable is pulled under an idle QP; links as start() wants them."""
    if bed.kernel != "6.1":
        shift.wait_session(bed)
    counters = shift.Counters(bed)
    pull(bed, side)
    wait_for("failover on both nodes", lambda: min(counters.delta("switches")) >= 1, 60)


def on_backup(bed, qps):
    """Both nodes show all QPs on the backup."""
    each(bed.nodes[:2], lambda node: shift.protected(node, qps, "fallback"))


def survives(bed, verify, side, qps=1, finish=True):
    """The whole story: traffic, pull, traffic on the backup, clean end."""
    counters = shift.Counters(bed)
    verify.go()
    verify.more(3)
    pull(bed, side)
    try:
        wait_for("failover on both nodes",
                 lambda: all(n >= qps for n in counters.delta("switches")), 150)
    except Failure as failure:
        raise Failure(f"{failure}; switches {counters.delta('switches')}, "
                      f"client:\n{verify.client.tail()}") from None
    verify.more(3)
    on_backup(bed, qps)
    if finish:
        verify.finish()
    counters.moved("switches", qps)
    # The peer is asked; it need not have seen the fault itself.
    check(sum(counters.delta("faults")) >= 1, "no fault was counted")
    counters.still("failed", "illegal", "msg_bad")
    return counters


def matrix(side, qps, size, bed):
    """One field of {side} x {QPs} x {size}."""
    verify = start(bed, *shape(size, qps), qps=qps)
    survives(bed, verify, side, qps)


for _side in SIDES:
    for _qps in (1, 8):
        for _label, _size in SIZES.items():
            # One field of each row and column on the other kernels.
            _main = (_side, _qps, _label) in (
                ("local", 8, "64 KiB"), ("remote", 1, "4 KiB"))
            add("failover", f"{_side} cable, {_qps} QPs, {_label}",
                partial(matrix, _side, _qps, _size), MAIN if _main else FULL)


@test("failover", "ibv_wr_* calls")
def wr_calls(bed):
    """Work posted by ibv_wr_start .. ibv_wr_complete."""
    verify = start(bed, *shape(4096, 1), "--post", "wr", "--chain", 4)
    survives(bed, verify, "local")


@test("failover", "unsignaled, 1 of 8 signaled", STOCK)
def unsignaled(bed):
    """Most WRs have no completion to tell that they were executed."""
    verify = start(bed, *shape(4096, 1), "--signal-every", 8, "--chain", 4)
    survives(bed, verify, "local")


@test("failover", "scatter lists of 5 pieces, 2 registrations")
def scatter(bed):
    """Each lkey of a list has its own mirror."""
    verify = start(bed, *shape(65536, 1), "--sge", 5)
    survives(bed, verify, "local")


@test("failover", "inline data", STOCK)
def inline(bed):
    """The application reuses its buffer right after the post."""
    verify = start(bed, "--size", 100, "--depth", 64, "--progress", 500,
                   "--inline")
    survives(bed, verify, "local")


@test("failover", "inline data by ibv_wr_*")
def inline_wr(bed):
    """The same by the newer calls."""
    verify = start(bed, "--size", 64, "--depth", 64, "--progress", 500,
                   "--inline", "--post", "wr")
    survives(bed, verify, "remote")


@test("failover", "both directions of 4 QPs", STOCK)
def both_directions(bed):
    """Requester and responder on both sides of each QP."""
    verify = start(bed, *shape(4096, 4), "--bidir", qps=4)
    survives(bed, verify, "local", 4)


@test("failover", "completions by event channel")
def events(bed):
    """The application sleeps and is woken by what was replayed."""
    verify = start(bed, *shape(4096, 2), "--events", qps=2)
    survives(bed, verify, "local", 2)


@test("failover", "a stopped application", STOCK)
def stopped(bed):
    """One that polls nothing, with work under way, at both ends: it finds all done."""
    verify = start(bed, *shape(4096, 2), "--bidir", qps=2)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    for node in bed.nodes[:2]:
        node.must("killall -STOP shift_verify")
    pull(bed, "local")
    wait_for("failover on both nodes", lambda: min(counters.delta("switches")) >= 2, 60)
    for node in bed.nodes[:2]:
        node.must("killall -CONT shift_verify")
    verify.more(3)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


def cut_after_two(where, post, bed):
    """128 x 64 KiB in one post; the path goes silent after two messages.

    A message has 64 packets of 1 KiB. Cut at the client, the rest is lost;
    cut at the server's end of the way back, all is executed and no ACK tells.
    """
    verify = start(bed, "--size", 65536, "--depth", 128, "--chain", 128,
                   "--iters", 128, "--progress", 1, "--post", post)
    counters = shift.Counters(bed)
    client, server = bed.nodes[:2]
    if where == "data":
        bed.drop(client, 0, direction="out", opcode="RC_WRITE_*", skip=128)
    elif where == "acks":
        bed.drop(client, 0, direction="in", opcode="RC_ACK")
    else:
        bed.drop(server, 0, direction="in", skip=160)
    verify.go()
    if where == "data":
        verify.past(2)
    wait_for("packets lost", lambda: dropped(bed) > 0)
    # The cable follows only when the damage is done.
    client.link(0, False)
    verify.end()
    counters.moved("switches")
    counters.still("failed", "illegal", "msg_bad")
    check(counters.delta("replayed")[0] + counters.delta("executed")[0] > 0,
          "nothing was outstanding at the switch")
    if where == "acks":
        check(counters.delta("executed")[0] > 0,
              "no operation was found executed though its ACK was lost")


def rules(bed, rail):
    """(matched, dropped) of each of the lab's rules on a rail."""
    return [(rule["matched"], rule["dropped"]) for node in bed.nodes
            for rule in bed.rules(node, rail)]


def dropped(bed, rail=0):
    """Packets lost so far by the lab's rules on a rail."""
    return sum(lost for _, lost in rules(bed, rail))


add("failover", "128 x 64 KiB, data lost after the second",
    partial(cut_after_two, "data", "wr"), STOCK)
add("failover", "128 x 64 KiB, all ACKs lost",
    partial(cut_after_two, "acks", "send"), STOCK)
add("failover", "128 x 64 KiB, all packets lost inside the third",
    partial(cut_after_two, "all", "send"))


# Ways in which the program verifies; the second is that of the campaign.
WAYS = {"": ("--size", 65536, "--depth", 16),
        ", guarded": ("--size", "1-9000", "--depth", 16, "--guard", "--ops", "write")}


def wrong_is_caught(bed, *ways):
    """One packet too few is sent again: a byte is missing, and that is seen.

    What is replayed whole would hide it.
    """
    client = bed.nodes[0]
    for options in ways:
        verify = start(bed, *options, "--progress", 1, "--timeout", 10)
        counters = shift.Counters(bed)
        verify.go()
        verify.more(2)
        bed.drop(client, 0, direction="out", opcode="RC_WRITE_*", skip=5)
        wait_for("packets lost", lambda: dropped(bed) > 0)
        client.link(0, False)
        # 1: a violation; the other end may only find that nothing goes on
        statuses = {verify.client.wait(120), verify.server.wait(120)}
        text = f"{verify.client.tail()}{verify.server.tail()}"
        check(1 in statuses and 0 not in statuses and "VIOLATION" in text,
              f"not caught: {statuses}\n{text}")
        counters.moved("switches")
        again = counters.deltas("replayed", "resumed")
        check(sum(map(sum, again.values())) > 0, f"nothing was posted again: {again}")
        bed.stop_processes()
        bed.plug_all()


def wrong_replay(way, bed):
    """The negative control of all tests of a failover."""
    shift.setup(bed, shift.WRONG_MODULE)
    try:
        wrong_is_caught(bed, way)
    finally:
        bed.stop_processes()
        bed.plug_all()
        shift.forget(bed)


for _name, _way in WAYS.items():
    add("control", f"a module that replays from a wrong point is caught{_name}",
        partial(wrong_replay, _way), state=BARE)


def goes_silent(bed):
    """The path of rail 0 loses everything, and nobody is told."""
    bed.drop(bed.nodes[0], 0, direction="in")
    bed.drop(bed.nodes[0], 0, direction="out")


@contextmanager
def patience(bed, silent, scale=shift.DEADLINE_SCALE):
    """For a while: ms of silence that a link is dead after, 0: none is; and all deadlines."""
    def set_both(silent, scale):
        for node in bed.nodes[:2]:
            for name, value in ("silent_ms", silent), ("deadline_scale", scale):
                node.must(f"echo {value} > /sys/module/rdma_shift/parameters/{name}")
    set_both(silent, scale)
    try:
        yield
    finally:
        set_both(SILENT_MS, shift.DEADLINE_SCALE)


@contextmanager
def atomics_move(bed):
    """For a while: QPs with atomics are protected, though two NICs are not atomic to one another."""
    def set_all(value):
        for node in bed.nodes:
            node.must(f"echo {value} > /sys/module/rdma_shift/parameters/allow_nonglobal_atomics")
    set_all("Y")
    try:
        yield
    finally:
        set_all("N")


@test("failover", "silent loss and no cable event: found by the error", STOCK)
def silent(bed):
    """Only retries that run out tell of the fault; the error is kept back."""
    with patience(bed, 0):
        verify = start(bed, *shape(4096, 1), timeout=QP_TIMEOUT)
        counters = shift.Counters(bed)
        verify.go()
        verify.more(2)
        goes_silent(bed)
        wait_for("failover on both nodes",
                 lambda: min(counters.delta("switches")) >= 1, 90)
        verify.more(2)
    verify.finish()
    counters.still("failed", "illegal")


def heartbeat(busy, bed):
    """The links find out long before the application's own retries would."""
    verify = start(bed, *shape(4096, 2), "--bidir", timeout=23, qps=2)
    shift.wait_session(bed, 2)
    counters = shift.Counters(bed)
    if busy:
        verify.go()
        verify.more(2)
    goes_silent(bed)
    wait_for("failover on both nodes",
             lambda: min(counters.delta("switches")) >= 2, 90)
    if not bed.nics.flushes:
        counters.still("swallowed")
    causes = {row["cause"] for node in bed.nodes[:2] for row in shift.qps(node)}
    check("heartbeat" in causes and causes <= {"heartbeat", "peer"},
          f"the causes are {causes}")
    if not busy:
        verify.go()
    verify.more(2)
    verify.finish()
    counters.still("failed", "illegal")


add("failover", "silent loss, found by heartbeats", partial(heartbeat, True), MAIN)
add("failover", "silent loss while idle, found by heartbeats", partial(heartbeat, False))


def lost_alone(bed):
    """Only heartbeats are lost on a path, and the QPs go on there; then everything is."""
    client = bed.nodes[0]
    verify = start(bed, *shape(4096, 2), qps=2)
    shift.wait_session(bed, 2)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    for direction in "in", "out":
        bed.drop(client, 0, direction=direction, opcode="RC_SEND_*")
    # one end finds out and the other one hears of it, and the link is connected again at once
    wait_for("QPs that have seen it, and stay", lambda: sum(counters.delta("stayed")) >= 2, 120)
    verify.more(3)
    check(dropped(bed) > 0, "no packet was dropped")
    counters.still("switches", "failed", "illegal", "msg_bad")
    goes_silent(bed)
    wait_for("failover on both nodes",
             lambda: min(counters.delta("switches")) >= 2, 90)
    verify.more(2)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


add("failover", "heartbeats alone are lost: QPs that go on stay, until nothing does", lost_alone,
    STOCK)


def packets(node):
    """RoCE packets that each of its devices has sent."""
    return [int(node.read(f"/sys/class/infiniband/rxe{rail}/ports/1/hw_counters/sent_pkts"))
            for rail in range(2)]


def uptime(node):
    """Seconds of a node's own clock."""
    return float(node.read("/proc/uptime").split()[0])


@contextmanager
def beating(bed, seconds):
    """For a while: the interval of heartbeats."""
    parameter = "/sys/module/rdma_shift/parameters/heartbeat_ms"
    before = bed.nodes[0].must(f"cat {parameter}").strip()
    scaled = int(seconds * 1000 / shift.DEADLINE_SCALE)
    try:
        for node in bed.nodes:
            node.must(f"echo {scaled} > {parameter}")
        yield
    finally:
        for node in bed.nodes:
            node.must(f"echo {before} > {parameter}")


@contextmanager
def pauses(bed, milliseconds):
    """For a while: the first pause before a link is connected again."""
    parameter = "/sys/module/rdma_shift/parameters/retry_ms"
    before = bed.nodes[0].must(f"cat {parameter}").strip()
    try:
        for node in bed.nodes:
            node.must(f"echo {milliseconds} > {parameter}")
        yield
    finally:
        for node in bed.nodes:
            node.must(f"echo {before} > {parameter}")


@test("failover", "a port that is active again wakes its links", MAIN)
def woken(bed):
    """With pauses of an hour nothing else would connect them before the test is over."""
    client = bed.nodes[0]       # of the lower address: it connects

    def states(device):
        return {link["state"] for link in shift.show(client, "link") if link["dev"] == device}

    start(bed, *shape(4096, 1))
    shift.wait_session(bed, 2)
    with pauses(bed, 3600000):
        for rail, device in (0, "rxe0"), (1, "rxe1"):
            client.link(rail, False)
            wait_for(f"the link of {device} is down", lambda device=device:
                     states(device) == {"down"}, 60)
            client.link(rail, True)
            wait_for(f"the link of {device} is up", lambda device=device:
                     states(device) == {"up"}, 60)


@test("failover", "heartbeats: one at a time, and for protected QPs only", STOCK)
def beats(bed):
    """An idle path costs a packet and an ACK per interval and direction, or nothing at all."""
    client, server = bed.nodes[:2]
    with beating(bed, .2):
        verify = start(bed, *shape(4096, 1))
        shift.wait_session(bed, 2)
        began, first = uptime(client), packets(client)
        wait_for("heartbeats on both links", lambda: all(
            now - then >= 10 for now, then in zip(packets(client), first)), 60)
        sent = [now - then for now, then in zip(packets(client), first)]
        most = 2 * ((uptime(client) - began) / .2 + 2)
        check(max(sent) <= most, f"{sent} packets, more than {most:.0f}")
        verify.go()
        verify.finish()
        # the peer's provider does not know of us: links, and no protection
        verify = Verify(client, server, *shape(4096, 1), server_env=bed.nics.stock)
        shift.wait_reason(client, "peer-unprotected")
        shift.wait_session(bed, 2)
        began, first = uptime(client), packets(client)
        wait_for("ten intervals", lambda: uptime(client) - began > 2)
        sent = [now - then for now, then in zip(packets(client), first)]
        # on the backup it asks its peer now and then
        check(not sent[0] and sent[1] < 10, f"{sent} packets")
        verify.go()
        verify.finish()


@test("failover", "both cables at once, a QP in each direction")
def both_ends(bed):
    """Both sides detect, and may ask at the same time."""
    verify = start(bed, *shape(4096, 2), "--bidir", qps=2)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    for node in bed.nodes[:2]:
        node.link(0, False)
    wait_for("failover on both nodes",
             lambda: min(counters.delta("switches")) >= 2, 60)
    verify.more(2)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


@test("failover", "an idle QP, posted to after the switch")
def idle(bed):
    """Nothing is outstanding at the fault; what follows goes to the backup."""
    verify = start(bed, *shape(4096, 2), qps=2)
    counters = shift.Counters(bed)
    pull(bed, "local")
    wait_for("failover on both nodes",
             lambda: min(counters.delta("switches")) >= 2, 60)
    verify.go()
    verify.more(3)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


@test("failover", "destroyed on the backup, next application on the default")
def next_application(bed):
    """What is left after a failover does not reach the next application."""
    verify = start(bed, *shape(4096, 1))
    survives(bed, verify, "local")
    bed.plug_all()
    shift.wait_session(bed)
    for node in bed.nodes:
        wait_for(f"{node.name}: no QP left",
                 lambda node=node: not shift.qps(node))
    verify = start(bed, *shape(4096, 1))
    survives(bed, verify, "remote")


@test("control", "no module: the application gets its error", STOCK, BARE)
def negative(bed):
    """Proves that these tests can fail: the same pull without the module."""
    client, server = bed.nodes[:2]
    verify = Verify(client, server, *shape(4096, 1))
    verify.go()
    verify.more(3)
    pull(bed, "local")
    verify.fails()


@test("control", "no module: 8 QPs, remote cable, stock provider", FULL, BARE)
def negative_remote(bed):
    """The same without the patched provider."""
    client, server = bed.nodes[:2]
    verify = Verify(client, server, *shape(4096, 8), qps=8, env={})
    verify.go()
    verify.more(3)
    pull(bed, "remote")
    verify.fails()


@test("control", "no module: data, order, completions without a fault",
      STOCK, BARE)
def clean(bed):
    """The verifying program finds nothing wrong where nothing is."""
    client, server = bed.nodes[:2]
    verify = Verify(client, server, *shape(4096, 4), "--bidir", qps=4)
    verify.go()
    verify.more(4)
    verify.finish()


@test("control", "module: data, order, completions without a fault", MAIN,
      SHIFT)
def clean_protected(bed):
    """Protected and never in need of it: no switch."""
    verify = start(bed, *shape(4096, 4), "--bidir", qps=4)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(4)
    verify.finish()
    counters.still("faults", "switches", "failed", "swallowed", "illegal")
