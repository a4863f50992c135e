# SPDX-License-Identifier: GPL-2.0
"""Three nodes of the directory, and one of them attacks the queue pairs of the two others."""

import re
from contextlib import contextmanager

import shift
from kmsg import Brackets
from nodes.failover import on_backup, pull, shape, start
from registry import BARE, test
from testbed import TOP, Cluster, Failure, LabError, check, each, wait_for

BELIEVED, REFUSED = 0, 3
TRACING = "/sys/kernel/tracing"
# where messages go out: the two cookies are behind the type
PROBE = ("p:cookies rdma_shift:shift_link_send "
         "type=+0(%si):u8 dst=+8(%si):x64 src=+16(%si):x64")
PAIR = 2
WITH_COOKIES = ("REQ", "ACK", "NACK", "PROGRESS", "RESOLVE", "RESOLVED", "RKEY_GONE", "READY",
                "GONE")


@contextmanager
def three(bed):
    """A lab of its own: two victims, and the attacker, who has the lowest addresses.

    Of two nodes the one with the lower address connects, so that it is the attacker who does.
    """
    own = Cluster(bed.kernel, nodes=3)
    own.options = bed.options
    try:
        own.up()
        shift.install(own, shift.Built(TOP))
        own.nodes = own.nodes[1:] + own.nodes[:1]
        brackets = Brackets(own, "three nodes")
        brackets.begin()
        shift.setup(own)
        yield own
        own.stop_processes()
        bad = brackets.end()
        check(not bad, "\n".join(bad))
    except (Failure, LabError):
        bed.found = shift.witness(own)
        raise
    finally:
        own.down()


def watch_cookies(node):
    """As root of a node may do: record what its kernel sends."""
    node.must(f"echo '{PROBE}' >{TRACING}/kprobe_events && "
              f"echo 1 >{TRACING}/events/kprobes/cookies/enable")


def cookies(node):
    """(its own QP's, the peer's), as the node's last PAIR had them."""
    text = node.must(f"echo 0 >{TRACING}/events/kprobes/cookies/enable; cat {TRACING}/trace; "
                     f"echo >{TRACING}/kprobe_events")
    found = re.findall(rf"type={PAIR} dst=0x([0-9a-f]+) src=0x([0-9a-f]+)", text)
    check(found and int(found[-1][0], 16), f"{node.name}: no PAIR has both cookies:\n{text[-800:]}")
    dst, src = found[-1]
    return int(src, 16), int(dst, 16)


class Intruder:
    """A program on the attacker's node with a link to a victim's kernel."""

    def __init__(self, bed, victim, other, rail):
        attacker = bed.nodes[2]
        # it claims to be the same boot of a kernel as the victim's peer
        boot_id = shift.show(other, "node")["boot_id"]
        self.victim = victim
        # without the provider: its own kernel would want a link for its QP, in place of this one
        self.process = attacker.start(
            ["intruder", attacker.address(rail), victim.address(rail), boot_id,
             str(1000 - victim.number)], env=bed.nics.stock)
        self.process.wait_line("^believed$")

    def says(self, line, counter):
        """Send a message, which must be refused and counted."""
        before = shift.stats(self.victim)
        seen = len(self.process.lines)
        self.process.send(line)
        self.process.wait_line("^sent$", start=seen)
        try:
            wait_for("it is counted",
                     lambda: shift.stats(self.victim)[counter] > before[counter], 20)
        except Failure as failure:
            raise Failure(f"{self.victim.name}: {counter}: {line}: {failure}") from None
        after = shift.stats(self.victim)
        check(after[counter] == before[counter] + 1, f"{counter} has moved more than once: {line}")

    def heard(self):
        """Messages that the victim has sent to it."""
        return re.findall("^got .*$", self.process.text, re.M)


def connects(victims):
    """How often the links between the victims have been connected."""
    return [[(row["link"], row["connects"]) for row in shift.show(node, "link")
             if row.get("node") in [victim.name for victim in victims]] for node in victims]


def attack(bed, rows):
    """Everything that has a say in a QP, with its true cookies, and with guesses."""
    victims = bed.nodes[:2]
    pairs = each(victims, cookies)
    check(pairs[0] == pairs[1][::-1], f"cookies {pairs}")
    intruders = []
    for victim, other, (own, peers) in zip(victims, victims[::-1], pairs):
        for rail in range(2):
            intruders.append(Intruder(bed, victim, other, rail))
            for kind in WITH_COOKIES:
                intruders[-1].says(f"{kind} {own:x} {peers:x} 1000", "strangers")
            intruders[-1].says(
                f"PAIR {own:x} {peers:x} 1000 {rows[other.name]['qpn']} {rows[victim.name]['qpn']} "
                f"{other.address(0)} {victim.address(0)} {bed.nodes[2].address(1)}", "strangers")
            for kind in WITH_COOKIES:
                intruders[-1].says(f"{kind} {own ^ 1 << 40:x} {peers:x} 1000", "msg_stale")
            intruders[-1].says("garbage", "msg_bad")
    return intruders


def take_over(bed):
    """It connects as if it had the address of another node, and the directory does not help it."""
    attacker = bed.nodes[2]
    for victim, other in (bed.nodes[:2], bed.nodes[1::-1]):
        boot_id = shift.show(other, "node")["boot_id"]
        before = shift.stats(victim)["strangers"]
        result = attacker.run(["impostor", attacker.address(0), victim.address(0), boot_id, "1001",
                               other.address(0)], env=bed.nics.stock, timeout=120)
        check(result.status == REFUSED, f"it took over a link: {result.text}")
        check(shift.stats(victim)["strangers"] == before + 1, "the refusal was not counted")
        shift.refused(victim, "peer", "set", attacker.name, *shift.nics_of(other),
                      says="belongs to another node")


@test("trust", "a node of the directory that attacks the QPs of two others", state=BARE)
def third_node(bed):
    """Whatever it says is refused and counted; traffic goes on, and is moved when it has to be."""
    with three(bed) as own:
        victims = own.nodes[:2]
        each(victims, watch_cookies)
        verify = start(own, *shape(4096, 1))
        for node in victims:
            wait_for(f"{node.name}: links", lambda node=node: shift.links_up(node, 2), 90)
        rows = {node.name: shift.connected(node)[0] for node in victims}
        verify.go()
        verify.more(2)
        counters = shift.Counters(own)
        before = connects(victims)
        intruders = attack(own, rows)
        take_over(own)
        verify.more(2)
        counters.still("faults", "switches", "abandoned", "failed", "illegal", "paired")
        check(connects(victims) == before, "a link between the victims was replaced")
        pull(own, "local")
        on_backup(own, 1)
        verify.more(2)
        verify.finish()
        counters.still("failed", "illegal")
        check(not sum((one.heard() for one in intruders), []), "the victims have answered it")
