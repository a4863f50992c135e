# SPDX-License-Identifier: GPL-2.0
"""What NCCL posts, and what its receivers look at: Documentation/user/protocols.md."""

import re
from functools import partial

import shift
import variants
from registry import BARE, FULL, MAIN, STOCK, add, test
from testbed import check, wait_for
from traffic import BULK_TIMEOUT, Verify
from nodes.failover import dropped, wrong_is_caught
from nodes.failback import telling

# Options and QPs of a connection.
PROTOCOLS = {
    "simple": (["--protocol", "simple", "--size", 16384, "--depth", 8, "--progress", 16], 2),
    "ll": (["--protocol", "ll", "--size", 8192, "--depth", 16, "--progress", 32], 1),
    "ll128": (["--protocol", "ll128", "--size", 16384, "--depth", 8, "--progress", 16], 1),
}
# What is lost on the client's cable before one is pulled: direction, opcodes, how many are not.
LOST = {
    "packets": ("out", "RC_WRITE_*", 200),
    "answers": ("in", "RC_ACK", 20),
}


class Traffic(Verify):
    """One direction; with loop the server has a QP that is connected to itself, too."""

    def __init__(self, bed, protocol, loop=False):
        options, qps = PROTOCOLS[protocol]
        client, server = bed.nodes[:2]
        super().__init__(client, server, "--qp-timeout", BULK_TIMEOUT, *options,
                         *(["--flush"] if loop else []), qps=qps)
        self.loop = loop
        self.all_in("default")
        shift.wait_session(bed)

    def all_in(self, state):
        """All QPs are in that state, also the one that is connected to itself."""
        for node, count in ((self.client_node, self.qps),
                            (self.server_node, self.qps + self.loop)):
            telling(self, lambda node=node, count=count: shift.protected(node, count, state))

    def home(self):
        """All QPs are off the backup.  Those that were handed back are not protected without it."""
        def there():
            rows = [row for node in (self.client_node, self.server_node)
                    for row in shift.connected(node)]
            return len(rows) == 2 * self.qps + self.loop and all(
                row["state"] in shift.alike(self.client_node.cluster, "returned")
                or row.get("reason") == "no-session" for row in rows)
        telling(self, lambda: wait_for("all QPs are home", there, 150, .2))


def survives_both(protocol, lost, loop, side, bed):
    """Packets are lost, a cable goes, comes back, and then the backup's goes.

    side: the node whose cables these are. The server's QP to itself leaves its NIC with them.
    """
    direction, opcode, skip = LOST[lost]
    node = bed.nodes[side]
    verify = Traffic(bed, protocol, loop)
    counters = shift.Counters(bed)
    bed.drop(bed.nodes[0], 0, direction=direction, opcode=opcode, skip=skip)
    verify.go()
    wait_for("a packet lost", lambda: dropped(bed) > 0, 60)
    node.link(0, False)
    verify.all_in("fallback")
    verify.more(2)
    counters.moved("switches", verify.qps)
    check(sum(counters.delta("replayed") + counters.delta("executed")) > 0,
          "nothing was outstanding")
    if lost == "answers":
        check(counters.delta("executed")[0] > 0,
              "no operation was found executed though its answer was lost")
    bed.plug_all()
    shift.wait_session(bed, 2)
    node.link(1, False)
    verify.home()
    verify.more(2)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


def moves(bed):
    """An operator takes the receiver's NIC out of use, and back, under traffic."""
    server = bed.nodes[1]
    verify = Traffic(bed, "simple", loop=True)
    shift.wait_session(bed, 2)
    counters = shift.Counters(bed)
    verify.go()
    for verb, state in (("drain", "fallback"), ("undrain", "returned")):
        verify.more(1)
        shift.must(server, "pair", verb, bed.nics.default)
        verify.all_in(state)
    verify.more(1)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


@test("protocols", "without a fault, and a WRITE that comes once more is seen", state=BARE)
def seen(bed):
    """The negative control: a line that was taken is written to again."""
    client, server = bed.nodes[:2]
    for protocol, (options, qps) in PROTOCOLS.items():
        more = ["--flush"] if protocol == "simple" else []
        verify = Verify(client, server, *options, *more, "--iters", 50, qps=qps)
        verify.go()
        verify.end()
        verify = Verify(client, server, *options, "--sabotage", "late-write", qps=qps)
        verify.go()
        ended = {verify.client.wait(60), verify.server.wait(60)}
        check(1 in ended and ended <= {1, 3}, f"{protocol}: they ended with {ended}")
        check(re.search("^VIOLATION: .* was written again", verify.server.text, re.M),
              f"{protocol}: not seen:\n{verify.server.tail()}")


@test("protocols", "a module that replays from a wrong point is caught", state=BARE)
def wrong_replay(bed):
    """A line that is missing, or data that were told of."""
    shift.setup(bed, shift.WRONG_MODULE)
    try:
        wrong_is_caught(bed, *(options for options, _ in PROTOCOLS.values()))
    finally:
        bed.stop_processes()
        bed.plug_all()
        shift.forget(bed)


def register():
    """In each run one of each protocol, and of each thing that is lost."""
    short = {("simple", "packets", 1), ("ll", "packets", 0), ("ll128", "answers", 0)}
    for protocol in PROTOCOLS:
        for lost in LOST:
            for side in (0, 1):
                loop = protocol == "simple"
                name = (f"{protocol}, {lost} lost, the {('client', 'server')[side]}'s cables"
                        f"{', a QP to itself' if loop and side else ''}")
                chosen = (protocol, lost, side) in short
                add("protocols", name,
                    partial(survives_both, protocol, lost, loop and bool(side), side),
                    STOCK if chosen and side else FULL)
                if not chosen:
                    variants.leave_out(f"protocols: {name}")
    add("protocols", "a QP to itself moves and comes back", moves, MAIN)
    variants.leave_out("protocols: a module that replays from a wrong point is caught")


register()
