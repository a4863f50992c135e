# SPDX-License-Identifier: GPL-2.0
"""Root of a node against queue pairs that are connected to his own: he may, but not without end."""

import shift
from nodes.failover import shape, start
from nodes.intruder import Intruder, all_cookies, three, watch_cookies
from registry import BARE, test
from testbed import check, wait_for
from traffic import BULK_TIMEOUT, Verify

QPS = 16
GUESSES = 64                # kmod/core/kick.h: so many at once
# kmod/link/link_priv.h: what the node may send at once for them, each of which uses two links
NODE_MOST = 256 * (16 + 2 * QPS)


def another_address(victim, rail):
    """One more address of the victim's NIC: no kernel wants a link to it that would be in the way.

    It is higher than the attacker's, so that it is he who connects.
    """
    address = f"10.{10 + rail}.0.{200 + victim.number}"
    victim.must(f"ip addr add {address}/24 dev rail{rail}")
    return address


class Flood:
    """The attacker's connections to the victim, and what he knows of the QPs between them."""

    def __init__(self, bed, verify, pairs):
        self.victim, _, attacker = bed.nodes
        self.verify = verify
        # of his own QP, and of the victim's
        self.pairs = [(own, peers) for peers, own in pairs.items()]
        self.speakers = [Intruder(bed, self.victim, attacker, rail,
                                  to=another_address(self.victim, rail)) for rail in range(2)]

    def stat(self, counter):
        """One of the victim's counters."""
        return shift.stats(self.victim)[counter]

    def quiet(self):
        """The victim has looked at all that was sent."""
        last = [None]

        def same():
            now = {link["link"]: link["rx"] for link in shift.show(self.victim, "link")
                   if link.get("node") == self.speakers[0].attacker.name}
            was, last[0] = last[0], now
            return was == now
        wait_for(f"{self.victim.name} has looked at all of it", same, 60, 1)

    def until(self, counter, *lines):
        """A flood over each link until a counter moves; others' traffic goes on meanwhile."""
        self.quiet()
        before = self.stat(counter)
        flooding = list(zip(self.speakers, lines))
        for one, line in flooding:
            one.flood(line)
        try:
            wait_for(f"{counter}: {lines}", lambda: self.stat(counter) > before, 60)
            self.verify.more(2)
        finally:
            for one, _ in flooding:
                one.stop()

    def commands(self, done, *lines):
        """Lines for the first connection, each of which it does before the next."""
        for line in lines:
            seen = len(self.speakers[0].process.lines)
            self.speakers[0].process.send(line)
            self.speakers[0].process.wait_line(f"^{done}$", start=seen)

    def guesses(self):
        """Keys that do not exist: as many answers as a peer may have, and then hardly any."""
        own, peers = self.pairs[0]
        line = f"RESOLVE {own:x} {peers:x} 0"
        self.until("flooded", line)
        answers = len(self.speakers[0].heard())
        check(GUESSES <= answers, f"{answers} answers to guesses, a peer may have {GUESSES}")
        self.until("paused", line, line)
        self.quiet()

    def one_qp(self, line):
        """Messages for one queue pair, which has a share."""
        self.until("flooded", line)

    def all_qps(self):
        """For each of the others fewer than its peer may send, for all more than the node may."""
        self.quiet()
        before = self.stat("flooded")
        others = self.pairs[1:]
        self.commands("added", *(f"add READY {own:x} {peers:x} 0" for own, peers in others))
        step, sent = 50, 0
        while self.stat("flooded") == before:
            check(sent * len(others) < 4 * NODE_MOST,
                  f"{sent} messages for each of {len(others)} queue pairs were heard")
            self.commands("sent", f"rounds {step}")
            sent += step
        self.verify.more(2)


@test("trust", "root of a node floods queue pairs that are connected to his own", state=BARE)
def own_peer(bed):
    """What is too much is dropped and counted; the victim's traffic with a third node goes on."""
    with three(bed) as own:
        victim, _, attacker = own.nodes
        watch_cookies(attacker)
        verify = start(own, *shape(4096, 1))
        other = Verify(attacker, victim, "--qp-timeout", BULK_TIMEOUT, qps=QPS)
        shift.protected(attacker, QPS)
        shift.protected(victim, QPS + 1)
        pairs = all_cookies(attacker)
        check(len(pairs) == QPS, f"cookies of {len(pairs)} queue pairs, not {QPS}")
        verify.go()
        verify.more(1)
        counters = shift.Counters(own)
        flood = Flood(own, verify, pairs)
        flood.guesses()
        his, peers = flood.pairs[0]
        flood.one_qp(f"READY {his:x} {peers:x} 0")
        flood.all_qps()
        counters.still("faults", "switches", "failed")
        # what he does to his own is his loss
        his, peers = flood.pairs[1]
        flood.one_qp(f"REQ {his:x} {peers:x} 1000")
        verify.more(2)
        verify.finish()
        counters.still("illegal", "msg_bad", "strangers")
        other.client.stop()
        other.server.stop()
