# SPDX-License-Identifier: GPL-2.0
"""Queue pairs of every shape: each is protected, and moved."""

from functools import partial

import shift
from ends import Ends
from registry import MAIN, STOCK, add
from testbed import check, wait_for
from nodes.failover import pull

# A QP that is on its way to be protected shows one of these.
PASSING = ("not-rts", "no-session", "peer-unprotected")


def listed(end):
    """What a program says of its QPs: {number: {what: value}}."""
    seen = len(end.lines)
    end.send("list")
    count = int(Ends.said(end, seen))
    end.wait_line("", 60, start=seen + count)
    rows = [line.split() for _, line in end.lines[seen + 1:seen + 1 + count]]
    return {int(number): dict(word.split("=") for word in shape) for number, *shape in rows}


def decided(node, shapes):
    """Wait until each QP is protected or will not be; {number: reason, or None}."""
    def look():
        rows = {row["qpn"]: row for row in shift.qps(node) if row["qpn"] in shapes}
        if len(rows) < len(shapes) or any(row.get("reason") in PASSING for row in rows.values()):
            return None
        return {number: None if row["state"] == "default" else row["reason"]
                for number, row in rows.items()}
    return wait_for(f"{node.name}: all QPs are protected, or are not and say why", look, 150, .5)


def moved(node, shapes):
    """Whether all of these QPs run on the backup."""
    states = {row["qpn"]: row["state"] for row in shift.qps(node)}
    return all(states[number] == "fallback" for number in shapes)


def shapes(side, bed):
    """A round before the fault, one that meets it, and one after it."""
    client, server = bed.nodes[:2]
    ends = Ends(bed, "shape_edge")
    found = {client: listed(ends.client), server: listed(ends.server)}
    count = len(found[client])
    check(count == len(found[server]) >= 30, f"QPs: {count}")
    ends.both("round 1")
    ends.both("check 1")
    for node, of_node in found.items():
        for number, reason in decided(node, of_node).items():
            check(not reason,
                  f"{node.name}: QP {number} ({of_node[number]}) is unprotected: {reason}")
    counters = shift.Counters(bed)
    pull(bed, side)
    ends.both("round 2")
    ends.both("check 2")
    for node, of_node in found.items():
        wait_for(f"{node.name}: all on the backup",
                 lambda node=node, of_node=of_node: moved(node, of_node), 150, .5)
    ends.both("round 3")
    ends.both("check 3")
    counters.moved("switches", count)
    counters.still("failed", "illegal", "msg_bad")
    bed.told += [f"shapes on {bed.nics.default}, {count} moved:",
                 *(" ".join(f"{what}={value}" for what, value in shape.items())
                   for shape in found[client].values())]
    ends.close()


add("shapes", "each is moved, the client's cable", partial(shapes, "local"), MAIN)
add("shapes", "each is moved, the server's cable", partial(shapes, "remote"), STOCK)
