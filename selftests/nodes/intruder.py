# SPDX-License-Identifier: GPL-2.0
"""Three nodes of the directory, and one of them attacks the queue pairs of the two others."""

import hmac
import ipaddress
import re
from contextlib import contextmanager
from functools import partial

import shift
from kmsg import Brackets
from nodes.failover import on_backup, pull, shape, start
from nodes.trust import KEYS, give_keys
from registry import BARE, add
from testbed import TOP, Cluster, Failure, LabError, check, each, wait_for

BELIEVED, REFUSED = 0, 3
TRACING = "/sys/kernel/tracing"
# where messages go out: the two cookies are behind the type; and in PAIR the numbers of the QPs
PROBE = ("p:cookies rdma_shift:shift_link_send "
         "type=+0(%si):u8 dst=+8(%si):x64 src=+16(%si):x64 own=+36(%si):u32 peers=+40(%si):u32")
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


def paired(node):
    """What the node's PAIRs have told of its QPs: (its cookie, the peer's, its number, the peer's)."""
    text = node.must(f"echo 0 >{TRACING}/events/kprobes/cookies/enable; cat {TRACING}/trace; "
                     f"echo >{TRACING}/kprobe_events")
    rows = re.findall(rf"type={PAIR} dst=0x([0-9a-f]+) src=0x([0-9a-f]+) own=(\d+) peers=(\d+)",
                      text)
    found = {src: (int(src, 16), int(dst, 16), int(own), int(peers))
             for dst, src, own, peers in rows if int(dst, 16)}
    check(found, f"{node.name}: no PAIR has both cookies:\n{text[-800:]}")
    return list(found.values())


def cookies(node):
    """(its own QP's, the peer's), of the QP for which the node has sent a PAIR last."""
    return paired(node)[-1][:2]


def boot_id(node):
    """Of its kernel, as HELLOs have it."""
    return bytes.fromhex(shift.show(node, "node")["boot_id"].replace("-", ""))


def gid(address):
    """Of an IPv4 address."""
    return ipaddress.ip_address(f"::ffff:{address}").packed


class Intruder:
    """A program on the attacker's node with a connection to a victim's kernel."""

    def __init__(self, bed, victim, other, rail, key=None, to=None):
        attacker = bed.nodes[2]
        to = to or victim.address(rail)
        self.victim = victim
        self.attacker = attacker
        self.seen = 0
        # it claims to be the same boot of a kernel as the victim's peer
        self.boots = boot_id(other), boot_id(victim)
        self.gids = gid(attacker.address(rail)), gid(to)
        # without the provider: its own kernel would want a link for its QP, in place of this one
        self.process = attacker.start(
            ["intruder", attacker.address(rail), to, self.boots[0].hex(),
             str(1000 - victim.number)], env=bed.nics.stock)
        self.process.wait_line("^believed$")
        if key:
            self.process.send(self.proof(key))
            wait_for(f"{victim.name}: a link that is proven",
                     lambda: [row.get("proven") for row in self.links()].count(True) > rail, 60)

    def proof(self, key):
        """What it says if it knows this key: Documentation/internals/links.md, "Proofs"."""
        nonce = bytes.fromhex(self.process.wait_line("^nonce ([0-9a-f]+)$").group(1))
        claim = [b"rdma_shift link\0", b"\1", nonce, *self.boots, *self.gids]
        return "proof " + hmac.new(key.encode(), b"".join(claim), "sha256").hexdigest()

    def links(self):
        """The victim's links with its node that are up."""
        return [row for row in shift.show(self.victim, "link")
                if row["state"] == "up" and row.get("node") == self.attacker.name]

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

    def flood(self, line):
        """Send a message as fast as it can, until stop()."""
        self.seen = len(self.process.lines)
        self.process.send(f"flood {line}")

    def stop(self):
        """How many it has sent."""
        self.process.send("stop")
        return int(self.process.wait_line("^flooded ([0-9]+)$", start=self.seen).group(1))

    def heard(self):
        """Messages that the victim has sent to it."""
        return re.findall("^got .*$", self.process.text, re.M)


def connects(victims):
    """How often the links between the victims have been connected."""
    return [[(row["link"], row["connects"]) for row in shift.show(node, "link")
             if row.get("node") in [victim.name for victim in victims]] for node in victims]


def each_victim(bed):
    """(victim, its peer, the cookies of its QP and of the peer's)."""
    victims = bed.nodes[:2]
    pairs = each(victims, cookies)
    check(pairs[0] == pairs[1][::-1], f"cookies {pairs}")
    return zip(victims, victims[::-1], pairs)


def attack(key, bed, rows, verify):
    """Everything that has a say in a QP, with its true cookies, with guesses, and at full speed."""
    intruders = []
    for victim, other, (own, peers) in each_victim(bed):
        for rail in range(2):
            intruders.append(Intruder(bed, victim, other, rail, key))
            for kind in WITH_COOKIES:
                intruders[-1].says(f"{kind} {own:x} {peers:x} 1000", "strangers")
            intruders[-1].says(
                f"PAIR {own:x} {peers:x} 1000 {rows[other.name]['qpn']} {rows[victim.name]['qpn']} "
                f"{other.address(0)} {victim.address(0)} {bed.nodes[2].address(1)}", "strangers")
            for kind in WITH_COOKIES:
                intruders[-1].says(f"{kind} {own ^ 1 << 40:x} {peers:x} 1000", "msg_stale")
            intruders[-1].says("garbage", "msg_bad")
        flood(intruders[-2:], f"RESOLVE {own:x} {peers:x} 1000", verify)
    return intruders


def attack_without_key(bed, _rows, _verify):
    """It is connected and has no link, whatever it says first; that ends its connection."""
    intruders = []
    for victim, other, (own, peers) in each_victim(bed):
        for line in (f"REQ {own:x} {peers:x} 1000", "garbage", None, "ask"):
            one = Intruder(bed, victim, other, 0)
            if line == "ask":
                one.process.send(line)
                one.process.wait_line("^proved$")
            one.says(line or one.proof(KEYS["new"]), "strangers")
            check(one.process.text.count("proved") == (line == "ask"), "it was answered again")
            check(not one.links(), f"{victim.name} believes who knows no key: {line}")
            one.process.stop()
            intruders.append(one)
    return intruders


def flood(intruders, line, verify):
    """Over several links of a victim at once: nobody else has to wait for that."""
    victim = intruders[0].victim
    before = shift.stats(victim)
    for one in intruders:
        one.flood(line)
    verify.more(4)
    count = sum(one.stop() for one in intruders)
    wait_for("all of it is refused",
             lambda: shift.stats(victim)["strangers"] >= before["strangers"] + count, 60)
    check(shift.stats(victim)["strangers"] == before["strangers"] + count, "one came twice")


def take_over(bed):
    """It connects as if it had the address of another node, and the directory does not help it."""
    attacker = bed.nodes[2]
    for victim, other in (bed.nodes[:2], bed.nodes[1::-1]):
        before = shift.stats(victim)["strangers"]
        result = attacker.run(["impostor", attacker.address(0), victim.address(0),
                               boot_id(other).hex(), "1001",
                               other.address(0)], env=bed.nics.stock, timeout=120)
        check(result.status == REFUSED, f"it took over a link: {result.text}")
        check(shift.stats(victim)["strangers"] == before + 1, "the refusal was not counted")
        shift.refused(victim, "peer", "set", attacker.name, *shift.nics_of(other),
                      says="belongs to another node")


def third_node(assault, keys, bed):
    """Whatever it says is refused and counted; traffic goes on, and is moved when it has to be."""
    with three(bed) as own:
        victims = own.nodes[:2]
        if keys:
            give_keys(victims, *keys)
        each(victims, watch_cookies)
        verify = start(own, *shape(4096, 1))
        for node in victims:
            wait_for(f"{node.name}: links", lambda node=node: shift.links_up(node, 2), 90)
        rows = {node.name: shift.connected(node)[0] for node in victims}
        verify.go()
        verify.more(2)
        counters = shift.Counters(own)
        before = connects(victims)
        intruders = assault(own, rows, verify)
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


NODE = "a node of the directory that attacks the QPs of two others"
add("trust", NODE, partial(third_node, partial(attack, None), []), state=BARE)
add("trust", f"{NODE}, and knows the key",
    partial(third_node, partial(attack, KEYS["old"]), ["old"]), state=BARE)
add("trust", f"{NODE}, and does not know the key",
    partial(third_node, attack_without_key, ["old"]), state=BARE)
