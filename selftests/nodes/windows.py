# SPDX-License-Identifier: GPL-2.0
"""Memory windows and invalidations under faults and moves."""

from functools import partial

import shift
from ends import Ends
from registry import FULL, MAIN, add
from testbed import check, wait_for
from traffic import QP_TIMEOUT
from nodes.failover import dropped, fall_back, start, survives
from nodes.failback import everywhere, home, plugged, second

ALL = "write,write_imm,send,send_imm,send_inv,read,mw"
PACE = ["--progress", 50, "--depth", 16, "--guard"]
# Retries make rxe execute a BIND_MW once more, and fail it: few of them.
MIXED = ["--ops", ALL, "--mix", "--size", "0-5000", "--qp-timeout", 21, *PACE]

# What is mixed, by name: options, QPs, which end loses its cable.
MIXES = {
    "all, both directions": ([*MIXED, "--bidir", "--signal-every", 4], 4, "local"),
    "all, remote cable": ([*MIXED, "--bidir"], 2, "remote"),
    "ibv_wr_*, inline, lists": (
        [*MIXED, "--bidir", "--post", "wr", "--inline", "--sge", 4], 2, "local"),
    "asleep": ([*MIXED, "--bidir", "--events"], 2, "remote"),
    "SRQ, both directions": ([*MIXED, "--bidir", "--srq"], 4, "local"),
    "SRQ, send_inv": (["--srq", "--ops", "send_inv,send", "--mix", "--size", "1-9000", *PACE],
                      2, "remote"),
    "send_inv": (["--ops", "send_inv", "--size", "1-9000", *PACE], 2, "local"),
    "send_inv, remote cable": (["--ops", "send_inv", "--size", "1-9000", *PACE], 2, "remote"),
    "mw": (["--ops", "mw,write", "--size", "1-9000", "--qp-timeout", 21, *PACE], 2, "local"),
}


def allowed(bed, yes=True):
    """Whether QPs and windows made from now on may be protected."""
    for node in bed.nodes[:2]:
        node.must(f"echo {'YN'[not yes]} > /sys/module/rdma_shift/parameters/windows")


def mixed(options, qps, side, bed):
    """Traffic, pull, traffic on the backup, all verified."""
    allowed(bed)
    verify = start(bed, *options, qps=qps)
    survives(bed, verify, side, qps)


def there_and_back(more, bed):
    """Drained and taken back twice, under traffic with windows both ways."""
    allowed(bed)
    verify = start(bed, *MIXED, "--bidir", *more, qps=2)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    for _ in range(2):
        shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
        everywhere(bed, verify, "fallback")
        verify.more(2)
        home(bed, verify)
        verify.more(2)
    verify.finish()
    counters.moved("returns", 4)
    counters.still("failed", "illegal", "msg_bad")


def lost_answers(more, bed):
    """Executed, and no ACK tells: neither a second receive nor a second invalidation."""
    allowed(bed)
    client = bed.nodes[0]
    verify = start(bed, "--ops", "send_inv", "--size", "1-9000", *PACE, *more, qps=2,
                   timeout=QP_TIMEOUT)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    bed.drop(client, 0, direction="in", opcode="RC_ACK")
    wait_for("failover on both nodes", lambda: all(
        n >= 2 for n in counters.delta("switches")), 120)
    check(dropped(bed) > 0, "no packet was dropped")
    check(counters.delta("executed")[0] > 0, "nothing was found executed")
    verify.more(3)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


def twice(story, bed):
    """A second fault: the same cable once more, or the backup's, with windows both ways."""
    allowed(bed)
    story([*MIXED, "--bidir"], 2, "local", bed)


class Edge(Ends):
    """window_edge on two nodes."""

    def __init__(self, bed):
        super().__init__(bed, "window_edge")

    def bind(self, window):
        """The server binds it, and the client knows its key."""
        self.do(self.server, f"bind {window}")
        self.do(self.client, f"get {window}")

    def write(self, window, byte):
        """All of the window is written, and nothing beside it."""
        self.do(self.client, f"write {window} {byte:02x}")
        self.do(self.server, f"page {window}", f"page c1 {byte:02x} {byte:02x} c1")


def edge(bed):
    """Both ends, protected."""
    allowed(bed)
    both = Edge(bed)
    for node in bed.nodes[:2]:
        shift.protected(node, 1)
    return both


def windows_move(bed):
    """Bound before the fault, invalidated before it, both after it, and home again."""
    both = edge(bed)
    counters = shift.Counters(bed)
    for window in range(4):
        both.bind(window)
    both.write(0, 0x11)
    both.write(1, 0x12)
    both.do(both.client, "sendinv 1")
    both.do(both.server, "recv", "window 1")
    both.do(both.server, "inv 2")
    fall_back(bed)
    both.write(0, 0x21)		# bound before
    both.write(3, 0x22)		# never used before
    both.bind(1)		# invalidated there, bound here
    both.write(1, 0x23)
    both.bind(2)
    both.write(2, 0x24)
    both.do(both.client, "sendinv 0")
    both.do(both.server, "recv", "window 0")
    both.do(both.server, "inv 3")
    both.bind(0)
    both.write(0, 0x25)
    bed.plug_all()
    shift.wait_session(bed)
    shift.home(bed, 1)
    both.write(0, 0x31)
    both.write(1, 0x32)
    both.do(both.client, "sendinv 2")
    both.do(both.server, "recv", "window 2")
    both.bind(3)
    both.write(3, 0x33)
    for window in (0, 1, 3):
        both.do(both.server, f"inv {window}")
    # rxe refuses it while a window is bound
    both.do(both.server, "forget")
    both.close()
    counters.still("failed", "illegal", "msg_bad")


# How a window is closed, by name: orders, who gets them, and when the cable is pulled.
CLOSED = {
    "by the peer, before": (("client sendinv 0", "server recv"), (), "write 0 55"),
    "by its owner, before": (("server inv 0",), (), "write 0 55"),
    "by the peer, after": ((), ("client sendinv 0", "server recv"), "write 0 55"),
    "by its owner, after": ((), ("client write 0 44", "server inv 0"), "write 0 55"),
    "by its owner, after, never used": ((), ("server inv 0",), "write 0 55"),
    "behind its end": ((), (), "past 0"),
}


def closed(before, after, last, bed):
    """Access that the window does not allow is an error, and changes nothing."""
    both = edge(bed)
    both.bind(0)

    def run(orders):
        for order in orders:
            who, what = order.split(" ", 1)
            both.do(getattr(both, who), what, "window 0" if what == "recv" else "ok")

    run(before)
    fall_back(bed)
    run(after)
    both.do(both.client, last, "remote access error")
    page = both.server.lines
    seen = len(page)
    both.server.send("page 0")
    both.server.wait_line("^page ", start=seen)
    check("55" not in page[seen][1] and page[seen][1].endswith("c1"),
          f"it was written: {page[seen][1]}")
    both.close()


# What a QP in Fallback is refused, by name: who does it, and what it gets.
REFUSED = {
    "a bind with another key": ("server", "stale 1", "memory management operation error"),
    "a bind beyond the memory": ("server", "wide 1", "memory management operation error"),
    "a bind of a bound window": ("server", "bind 0", "memory management operation error"),
    "invalidation of a free window": ("server", "inv 1", "local QP operation error"),
    "the peer's invalidation of nothing": ("client", "wild", "remote access error"),
}


def refused(who, order, says, bed):
    """What names keys that it must not is an error of its own, and nothing worse."""
    both = edge(bed)
    fall_back(bed)
    both.bind(0)
    both.write(0, 0x11)
    both.do(getattr(both, who), order, says)
    both.close()


def not_allowed(bed):
    """With the parameter off the QPs are unprotected, and windows work."""
    allowed(bed, False)
    try:
        both = Edge(bed)
        server = bed.nodes[1]
        wait_for("the reason", lambda: [row["reason"] for row in shift.qps(server)] == ["mw"], 30)
        both.bind(0)
        both.write(0, 0x11)
        both.do(both.client, "sendinv 0")
        both.do(both.server, "recv", "window 0")
        both.close()
    finally:
        allowed(bed)


def register():
    """All of them."""
    for name, (options, qps, side) in MIXES.items():
        add("windows", name, partial(mixed, options, qps, side), FULL)
    for more in ((), ("--srq",)):
        name = " ".join(("", *more))
        add("windows", f"there and back{name}", partial(there_and_back, more), FULL)
        add("windows", f"send_inv, answers lost{name}", partial(lost_answers, more), FULL)
    add("windows", "a cable, plugged again, pulled again", partial(twice, plugged), FULL)
    add("windows", "a cable, then the backup's", partial(twice, second), FULL)
    add("windows", "bound before and after, and home again", windows_move, MAIN)
    for name, (before, after, last) in CLOSED.items():
        add("windows", f"closed: {name}", partial(closed, before, after, last), FULL)
    for name, (who, order, says) in REFUSED.items():
        add("windows", f"refused: {name}", partial(refused, who, order, says), FULL)
    add("windows", "not allowed", not_allowed, FULL)


register()
