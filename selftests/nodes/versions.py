# SPDX-License-Identifier: GPL-2.0
"""Nodes whose modules are not of the same version."""

from contextlib import contextmanager
from functools import partial

import shift
from nodes.failover import shape, start, survives
from nodes.route import TOS, keep_class, lose_class
from registry import BARE, add, test
from testbed import check, each

MESSAGES = 4


@contextmanager
def modules(bed, *paths):
    """For a while each node has its module, and a pair, and knows the other one."""
    def begin(node):
        shift.load(node, paths[bed.nodes.index(node)])
        shift.pair(node)

    each(bed.nodes[:2], begin)
    try:
        shift.introduce(bed)
        yield
    finally:
        bed.stop_processes()
        bed.plug_all()
        shift.forget(bed)


def same_messages(bed, capabilities):
    """Every link that is up uses what both modules know, and nothing else."""
    for node in bed.nodes[:2]:
        for row in shift.links(node):
            found = row.get("msg_version"), row.get("msg_caps")
            check(found == (MESSAGES, capabilities), f"{node.name}: messages {found}: {row}")


@test("versions", "a node has a newer module than the other", state=BARE)
def newer(bed):
    """As while the nodes of a cluster are upgraded: QPs are protected, and survive a fault."""
    with modules(bed, shift.MODULE, shift.NEWER_MODULE):
        verify = start(bed, *shape(4096, 1))
        shift.wait_session(bed, 2)
        same_messages(bed, [0, 1])
        survives(bed, verify, "local")


def no_lanes(old, bed):
    """The path is judged by its link alone: without lanes no QP is spared when that is silent.

    What knows lanes asks the other one for none, which would be refused and counted.
    """
    paths = [shift.MODULE, shift.MODULE]
    paths[old] = shift.OLDER_MODULE
    with modules(bed, *paths):
        verify = start(bed, *shape(4096, 2), "--tos", TOS, qps=2)
        shift.wait_session(bed, 2)
        same_messages(bed, [0])
        counters = shift.Counters(bed)
        lose_class(bed, 0)
        try:
            for node in bed.nodes[:2]:
                shift.protected(node, 2, "fallback")
        finally:
            keep_class(bed)
        verify.go()
        verify.more(2)
        shift.wait_session(bed, 2)
        for node in bed.nodes[:2]:
            check(not any(row.get("dscps") for row in shift.links(node)),
                  f"{node.name} has lanes: {shift.links(node)}")
        shift.home(bed, 2)
        verify.more(2)
        verify.finish()
        counters.still("failed", "illegal", "msg_bad", "spared", "lanes_silent", "strangers")


# the client's side is the one that connects
for _old, _side in enumerate(("connecting", "listening")):
    add("versions", f"a node's module knows no lanes: the {_side} one", partial(no_lanes, _old),
        state=BARE)
