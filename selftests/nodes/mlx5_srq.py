# SPDX-License-Identifier: GPL-2.0
"""Shared receive queues of the patched libmlx5: they leave mls0 once, and for good.

What srq.py does on rxe, and what is different here (internals/srq.md, mlx5).
"""

from functools import partial

import shift
from registry import FULL, add
from testbed import CONTROL_RAIL, check, each, wait_for
from nodes import srq
from nodes.failover import start
from nodes.mlx5 import KEEPING, MLX5, SMALL, devices
from nodes.mlx5_handback import stays_returned

SRQ = "/sys/module/rdma_shift/parameters/mlx5_srq"


def on_mlx5_srq(function, bed, nics=KEEPING):
    """QPs on SRQs are protected; those that are home stay on the kernel's QPs."""
    with devices(bed, nics):
        each(bed.nodes, lambda node: node.must(f"echo 1 >{SRQ}"))
        try:
            function(bed)
        finally:
            each(bed.nodes, lambda node: node.must(f"echo 0 >{SRQ}"))


def one_way(bed):
    """The receives have left the ring for good: no QP is connected that would draw from it."""
    client, server = bed.nodes[:2]
    words = ["share_edge", bed.nics.default]
    receiver = server.start(words, env=bed.nics.env)
    receiver.wait_line("^ready$")

    def connect(number):
        seen = len(receiver.lines)
        receiver.send("next")
        check(srq.Ends.said(receiver, seen) == "listening", "the server does not listen")
        sender = client.start([*words, server.address(CONTROL_RAIL), str(number)],
                              env=bed.nics.env)
        return sender, seen

    first, seen = connect(0)
    first.wait_line("^ready$")
    check(srq.Ends.said(receiver, seen + 1) == "ok", "not connected")
    shift.protected(server, 1)
    srq.message(receiver, first, 20)
    shift.must(server, "pair", "drain", bed.nics.default)
    shift.protected(server, 1, "fallback")
    srq.message(receiver, first, 50)
    shift.must(server, "pair", "undrain", bed.nics.default)
    shift.protected(server, 1, "returned")
    srq.message(receiver, first, 50)
    connect(1)
    receiver.expect(2)
    check("busy" in receiver.text, f"not refused as busy: {receiver.tail()}")


def unconnected(bed):
    """A QP that is not connected yet keeps the others, which would lock it out."""
    client, server = bed.nodes[:2]
    words = ["share_edge", bed.nics.default]
    receiver = server.start(words, env=bed.nics.env)
    receiver.wait_line("^ready$")
    receiver.send("next")
    receiver.wait_line("^listening$")
    sender = client.start([*words, server.address(CONTROL_RAIL), "0"], env=bed.nics.env)
    sender.wait_line("^ready$")
    shift.protected(server, 1)
    seen = len(receiver.lines)
    receiver.send("next")
    check(srq.Ends.said(receiver, seen) == "listening", "the server does not listen")
    wait_for("both are unprotected, the first one for the other", lambda: sorted(
        (row["state"], row["reason"]) for row in shift.qps(server)) ==
             [("unprotected", "not-rts"), ("unprotected", "srq")])


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
        ("no more connections once it is away", one_way),
        ("a QP that is not connected yet keeps it", unconnected)):
    add("mlx5", f"SRQ: {_name}", partial(on_mlx5_srq, _function), FULL)
add("mlx5", "SRQ: not handed back", partial(on_mlx5_srq, not_handed_back, nics=MLX5), FULL)
