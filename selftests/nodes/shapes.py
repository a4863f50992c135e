# SPDX-License-Identifier: GPL-2.0
"""Queue pairs of every shape: each is moved, or is unprotected with a reason before the fault."""

from functools import partial

import shift
from ends import Ends
from registry import MAIN, STOCK, add
from testbed import check, wait_for
from nodes.failover import pull

# A QP that is on its way to be protected shows one of these.
PASSING = ("not-rts", "no-session", "peer-unprotected")
# What may be unprotected, and why: {reason: shapes, of which one has to fit}. A QP of mlx5 that
# cannot send is not registered (rdma-core/README.md), and its peer has nobody to move with.
WITHOUT_SENDS = {"no-provider": ({"sends": "0"},), "peer-unprotected": ({"peer_sends": "0"},)}
LEAST = 20      # that are protected on each device


def listed(end):
    """What a program says of its QPs: {number: {what: value}}."""
    seen = len(end.lines)
    end.send("list")
    count = int(Ends.said(end, seen))
    end.wait_line("", 60, start=seen + count)
    rows = [line.split() for _, line in end.lines[seen + 1:seen + 1 + count]]
    return {int(number): dict(word.split("=") for word in shape) for number, *shape in rows}


def fits(shape, reason, unprotected):
    """Whether a QP of that shape may be unprotected for that reason."""
    return any(kind.items() <= shape.items() for kind in unprotected.get(reason, ()))


def decided(node, shapes, unprotected):
    """Wait until each QP is protected or will not be; {number: reason, or None}."""
    def passing(number, reason):
        return reason in PASSING and not fits(shapes[number], reason, unprotected)

    def look():
        rows = {row["qpn"]: row for row in shift.qps(node) if row["qpn"] in shapes}
        if len(rows) < len(shapes) or any(
                passing(number, row.get("reason")) for number, row in rows.items()):
            return None
        return {number: None if row["state"] == "default" else row["reason"]
                for number, row in rows.items()}
    return wait_for(f"{node.name}: all QPs are protected, or are not and say why", look, 150, .5)


def moved(node, reasons):
    """Whether all QPs that were protected run on the backup."""
    states = {row["qpn"]: row["state"] for row in shift.qps(node)}
    return all(reason or states[number] == "fallback" for number, reason in reasons.items())


def outcomes(ends, reasons):
    """A line for each QP of the client's and its peer: the shape, and what becomes of it.

    ends: the shapes of each end; reasons: why QPs are unprotected. Both ends list their QPs in the
    same order.
    """
    lines = []
    for ours, theirs in zip(*map(list, ends)):
        shape = " ".join(f"{what}={value}" for what, value in ends[0][ours].items())
        why = [f"the {name}'s end is unprotected ({by_number[number]})" for name, by_number, number
               in zip(("client", "server"), reasons, (ours, theirs)) if by_number[number]]
        lines.append(f"{shape}: {', '.join(why) or 'moved'}")
    return lines


def shapes(side, unprotected, bed):
    """A round before the fault, one that meets it, and one after it.

    unprotected: as WITHOUT_SENDS. Such QPs work before the fault, and rest from then on.
    """
    client, server = bed.nodes[:2]
    ends = Ends(bed, "shape_edge")
    of_end = {client: ends.client, server: ends.server}
    found = {node: listed(end) for node, end in of_end.items()}
    check(len(found[client]) == len(found[server]) >= 30, f"QPs: {len(found[client])}")
    ends.both("round 1")
    ends.both("check 1")
    reasons = {node: decided(node, found[node], unprotected) for node in of_end}
    for node, by_number in reasons.items():
        for number, reason in by_number.items():
            shape = found[node][number]
            check(not reason or fits(shape, reason, unprotected),
                  f"{node.name}: QP {number} ({shape}) is unprotected: {reason}")
            if reason:
                ends.do(of_end[node], f"rest {number}")
    moving = [sum(not reason for reason in reasons[node].values()) for node in of_end]
    check(moving[0] == moving[1] >= LEAST, f"QPs that are protected: {moving}")
    counters = shift.Counters(bed)
    pull(bed, side)
    ends.both("round 2")
    ends.both("check 2")
    for node, by_number in reasons.items():
        wait_for(f"{node.name}: all on the backup",
                 lambda node=node, by_number=by_number: moved(node, by_number), 150, .5)
    ends.both("round 3")
    ends.both("check 3")
    counters.moved("switches", moving[0])
    counters.still("failed", "illegal", "msg_bad")
    bed.told += [f"shapes on {bed.nics.default}, {moving[0]} moved:",
                 *outcomes([found[node] for node in of_end], [reasons[node] for node in of_end])]
    ends.close()


add("shapes", "each is moved, the client's cable", partial(shapes, "local", {}), MAIN)
add("shapes", "each is moved, the server's cable", partial(shapes, "remote", {}), STOCK)
