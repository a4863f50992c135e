# SPDX-License-Identifier: GPL-2.0
"""Nodes whose modules are not of the same version."""

import shift
from nodes.failover import shape, start, survives
from registry import BARE, test
from testbed import check, each

MESSAGES, CAPABILITIES = 4, [0, 1]


def same_messages(bed):
    """Every link that is up uses what both modules know, and nothing else."""
    for node in bed.nodes[:2]:
        for row in shift.links(node):
            found = row.get("msg_version"), row.get("msg_caps")
            check(found == (MESSAGES, CAPABILITIES), f"{node.name}: messages {found}: {row}")


@test("versions", "a node has a newer module than the other", state=BARE)
def newer(bed):
    """As while the nodes of a cluster are upgraded: QPs are protected, and survive a fault."""
    def begin(node):
        shift.load(node, shift.NEWER_MODULE if node is bed.nodes[1] else shift.MODULE)
        shift.pair(node)

    each(bed.nodes[:2], begin)
    try:
        shift.introduce(bed)
        verify = start(bed, *shape(4096, 1))
        shift.wait_session(bed, 2)
        same_messages(bed)
        survives(bed, verify, "local")
    finally:
        bed.stop_processes()
        bed.plug_all()
        shift.forget(bed)
