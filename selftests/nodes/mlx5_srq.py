# SPDX-License-Identifier: GPL-2.0
"""Shared receive queues of the patched libmlx5: they leave mls0, whose ring keeps what it has.

What srq.py does on rxe, and what is different here (internals/srq.md, mlx5).
"""

from functools import partial

import shift
from registry import FULL, add
from testbed import check, wait_for
from nodes import srq
from nodes.failover import start
from nodes.mlx5 import KEEPING, MLX5, SMALL, devices
from nodes.mlx5_handback import stays_returned


def on_mlx5_srq(function, bed, nics=KEEPING):
    """QPs on SRQs that are home stay on the kernel's QPs."""
    with devices(bed, nics):
        function(bed)


def new_ones(bed):
    """QPs are connected while others are away: to a ring that has receives which are elsewhere.

    Each of them empties it, in a CQ that has no room for all at once, and receives. They follow
    the others, so that what the ring was lent is stale again when the next one comes.
    """
    server = bed.nodes[1]
    shared = srq.Shared(bed)
    shared.does("cqes 15")
    shared.connect(bed.nics.env)
    shift.protected(server, 1)
    shared.message(0, 4)
    shift.must(server, "pair", "drain", bed.nics.default)
    shift.protected(server, 1, "fallback")
    shared.message(0, 4)
    counters = shift.Counters(bed)

    def all_receive(number, state):
        shift.protected(server, number, state)
        for i in range(number):
            shared.message(i, 10)

    shared.connect(bed.nics.env)
    shared.message(1, 10)
    all_receive(2, "fallback")
    shift.must(server, "pair", "undrain", bed.nics.default)
    all_receive(2, "returned")
    shared.connect(bed.nics.env)
    shared.message(2, 10)
    all_receive(3, "returned")
    shared.again(0)
    shared.message(0, 10)
    all_receive(3, "returned")
    shift.must(server, "pair", "drain", bed.nics.default)
    all_receive(3, "fallback")
    for number in range(3):
        shared.close(number)
    shared.end()
    counters.still("failed", "illegal", "msg_bad")
    shift.must(server, "pair", "undrain", bed.nics.default)


def unconnected(bed):
    """A QP that is not connected yet does not keep the others, and is connected later."""
    server = bed.nodes[1]
    shared = srq.Shared(bed)
    shared.connect(bed.nics.env)
    shift.protected(server, 1)
    shared.message(0, 4)
    seen = len(shared.receiver.lines)
    check(srq.says(shared.receiver, "next") == "listening", "the server does not listen")
    shift.must(server, "pair", "drain", bed.nics.default)
    wait_for("the other one has left", lambda: sorted(
        row["state"] for row in shift.qps(server)) == ["fallback", "unprotected"])
    shared.meets(seen, bed.nics.env)
    for number in (1, 0, 1, 0):
        shared.message(number, 10)
    shift.must(server, "pair", "undrain", bed.nics.default)
    shared.close(0)
    shared.close(1)
    shared.end()


def atomics(bed):
    """A QP on an SRQ leaves with the others, and an atomic is an error then: it says so before."""
    verify = start(bed, "--ops", "send,fadd", "--mix", "--srq", *SMALL)
    verify.go()
    verify.more(1)
    shift.wait_reason(bed.nodes[0], "operation")
    verify.finish()


def not_handed_back(bed):
    """Even if the module parameter handback is on."""
    stays_returned(start(bed, "--ops", "send", "--bidir", "--srq", *SMALL), bed)


for _name, (_options, _qps, _side, _kernels) in srq.FAULTS.items():
    add("mlx5", f"SRQ: {_name}",
        partial(on_mlx5_srq, partial(srq.fault, _options, _qps, _side)), FULL)
for _name, (_move, _options, _qps, *_sides) in srq.MOVES.items():
    add("mlx5", f"SRQ: {_name}",
        partial(on_mlx5_srq, partial(_move, _options, _qps, *_sides)), FULL)
for _name, _function in (
        ("ACKs of SENDs lost", srq.lost_acks),
        ("the limit is reached while it is away", srq.limit),
        ("atomics are said to be unprotected", atomics),
        ("a QP without a peer that moves is connected while it is away", srq.late),
        ("QPs are connected while it is away, and are used again", new_ones),
        ("a QP that was not connected yet is connected while it is away", unconnected)):
    add("mlx5", f"SRQ: {_name}", partial(on_mlx5_srq, _function), FULL)
add("mlx5", "SRQ: not handed back", partial(on_mlx5_srq, not_handed_back, nics=MLX5), FULL)
