# SPDX-License-Identifier: GPL-2.0
"""Atomics of mlx5 QPs: their driver posts none for the kernel, so that they stay on their NIC."""

from functools import partial

import shift
from registry import FULL, add
from testbed import check, wait_for
from nodes.failover import pull, start
from nodes.mlx5 import SMALL, on_mlx5
from nodes.mlx5_soft import inject, stats


def stays(bed):
    """Its own driver posts no atomics for the kernel: no operator moves who posts them."""
    client = bed.nodes[0]
    verify = start(bed, "--ops", "write,fadd", "--mix", "--bidir", *SMALL)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    shift.must(client, "pair", "drain", bed.nics.default)
    try:
        verify.more(5)
    finally:
        shift.must(client, "pair", "undrain", bed.nics.default)
    verify.finish()
    counters.still("switches", "failed", "illegal", "msg_bad")


def outlast(side, bed):
    """Before the fault it is said of who posts them, and so it is: an outage that is shorter than
    its NIC's own retries is outlived there, whoever's cable it is."""
    client = bed.nodes[0]
    verify = start(bed, "--ops", "write,fadd", "--mix", *SMALL, timeout=22)
    shift.wait_session(bed, 2)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(1)
    shift.wait_reason(client, "operation")
    pull(bed, side)
    if side == "remote":
        wait_for("the peer's wish to leave is refused",
                 lambda: counters.delta("abandoned")[1] > 0, 60)
    else:
        wait_for("a link is down", lambda: not shift.links_up(client), 60)
    bed.plug_all()
    verify.more(2)
    shift.wait_reason(client, "operation")
    verify.finish()
    counters.still("switches", "failed", "illegal", "msg_bad")


def given_up(name, value, bed):
    """The NIC's own retries have run out: an atomic is an error, executed or not, and never
    executed twice."""
    verify = start(bed, "--ops", "write,fadd,cas", "--mix", "--allow-error", *SMALL)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(1)
    inject(bed.nodes[0], name, value)
    for process in (verify.client, verify.server):
        process.expect(0, 120)
    verify.client.wait_line("^error qp 0 wr ")
    check(stats(bed.nodes[0])["faults"] == 1, "there was no fault")
    counters.still("illegal", "msg_bad")


for _name, _function, _kernels in (
        ("atomics stay on their device", stays, FULL),
        ("atomics outlast an outage, the client's cable", partial(outlast, "local"), FULL),
        ("atomics outlast an outage, the server's cable", partial(outlast, "remote"), FULL),
        ("atomics, an ACK that the device loses", partial(given_up, "lose_ack", 3), FULL),
        ("atomics, retries that run out", partial(given_up, "fail_next", 0x15), FULL)):
    add("mlx5", _name, partial(on_mlx5, _function), _kernels)
