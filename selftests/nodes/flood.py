# SPDX-License-Identifier: GPL-2.0
"""Root of a node against queue pairs that are connected to his own: he may, but not without end."""

import shift
from nodes.failover import shape, start
from nodes.intruder import Intruder, paired, three, watch_cookies
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
    """The attacker's connections to the victim, one on each rail; what he knows of the QPs."""

    def __init__(self, bed, verify, pairs):
        self.victim, _, self.attacker = bed.nodes
        self.verify = verify
        self.pairs = pairs
        self.speakers = [Intruder(bed, self.victim, self.attacker, rail,
                                  to=another_address(self.victim, rail)) for rail in range(2)]

    def stat(self, counter):
        """One of the victim's counters."""
        return shift.stats(self.victim)[counter]

    def line(self, kind, index, epoch=0):
        """A message for one of the QPs, as its true peer would write it."""
        own, peers, number, peers_number = self.pairs[index]
        more = (f" {number} {peers_number} {self.attacker.address(0)} {self.victim.address(0)} "
                f"{self.attacker.address(1)}" if kind == "PAIR" else "")
        return f"{kind} {peers:x} {own:x} {epoch}{more}"

    def quiet(self):
        """The victim has looked at all that was sent: also at this, which comes behind it."""
        for one in self.speakers:
            one.says("garbage", "msg_bad")

    def until(self, counter, line, rails):
        """A flood over some rails until a counter moves; others' traffic goes on meanwhile."""
        self.quiet()
        before = self.stat(counter)
        for rail in rails:
            self.speakers[rail].flood(line)
        try:
            wait_for(f"{counter}: {line}", lambda: self.stat(counter) > before, 60)
            self.verify.more(2)
        finally:
            for rail in rails:
                self.speakers[rail].stop()

    def commands(self, done, *lines):
        """Lines for the first connection, each of which it does before the next."""
        process = self.speakers[0].process
        for line in lines:
            seen = len(process.lines)
            process.send(line)
            process.wait_line(f"^{done}$", start=seen)

    def another_path(self):
        """A PAIR proves the path that it has come over: from another address, and to another one."""
        for one in self.speakers:
            one.says(self.line("PAIR", 0), "strangers")

    def guesses(self):
        """Keys that do not exist: as many answers as a peer may have, and then no more."""
        line = self.line("RESOLVE", 0)
        self.until("flooded", line, [0])
        answers = len(self.speakers[0].heard())
        check(answers >= GUESSES, f"{answers} answers to guesses, a peer may have {GUESSES}")

    def paused(self):
        """Each of these is answered, as far as there is room: they are handled in turns."""
        self.until("paused", self.line("RKEY_GONE", 0), [0, 1])

    def one_qp(self, kind, index, epoch=0):
        """Messages for one queue pair, which has a share."""
        self.until("flooded", self.line(kind, index, epoch), [1])

    def all_qps(self):
        """For each of the others fewer than its peer may send, for all more than the node may."""
        self.quiet()
        before = self.stat("flooded")
        others = range(1, len(self.pairs))
        self.commands("added", *(f"add {self.line('NACK', index, 1)}" for index in others))
        step, sent = 200, 0
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
        # without them a key is looked up in the delivery, and not by the QP's work item
        attacker.must("echo N >/sys/module/rdma_shift/parameters/windows")
        verify = start(own, *shape(4096, 1))
        other = Verify(attacker, victim, "--qp-timeout", BULK_TIMEOUT, qps=QPS)
        shift.protected(attacker, QPS)
        shift.protected(victim, QPS + 1)
        pairs = paired(attacker)
        check(len(pairs) == QPS, f"cookies of {len(pairs)} queue pairs, not {QPS}")
        verify.go()
        verify.more(1)
        counters = shift.Counters(own)
        flood = Flood(own, verify, pairs)
        flood.another_path()
        flood.guesses()
        flood.one_qp("NACK", 0, 1)
        flood.all_qps()
        counters.still("faults", "switches", "failed", "paired")
        # what he does to his own is his loss
        flood.one_qp("REQ", 1, 1000)
        flood.paused()
        verify.more(2)
        verify.finish()
        counters.still("illegal")
        other.client.stop()
        other.server.stop()
