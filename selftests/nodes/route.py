# SPDX-License-Identifier: GPL-2.0
"""The way of packets, and their size: what holds on the default NIC holds on every path."""

import json
from contextlib import contextmanager
from functools import partial

import fault
import shift
from registry import STOCK, add, test
from testbed import check, each, wait_for
from traffic import BULK_TIMEOUT, Verify
from nodes.failback import everywhere, home
from nodes.failover import PACE, shape, start, survives
from nodes.trust import reconnect

TOS = 104               # DSCP 26
HOPS = 33
LABEL = 0x5a2b3
# as drivers make it of the label
SOURCE = 0xc000 | (LABEL & 0x3fff) ^ (LABEL >> 14)
OTHERS = {"traffic class": f"ip dscp != {TOS >> 2}", "hop limit": f"ip ttl != {HOPS}",
          "source port": f"udp sport != {SOURCE}"}


def count(node, rail, opcode="RC_WRITE_*", others=None):
    """From now on count WRITEs that come in there; the module's own messages are SENDs."""
    packets = fault.matches(opcode, None)
    rules = "".join(f"add rule netdev route in {packets} {rule} counter comment \"{name}\"\n"
                    for name, rule in {"all": "", **(others or OTHERS)}.items())
    node.must(["nft", "-f", "-"], stdin=(
        "add table netdev route\ndelete table netdev route\nadd table netdev route\n"
        f"add chain netdev route in {{ type filter hook ingress device rail{rail} priority 0; "
        f"policy accept; }}\n{rules}").encode())


def counted(node):
    """How many there were: of all, and of those that differ."""
    listed = json.loads(node.must("nft -j list table netdev route"))["nftables"]
    return {item["rule"]["comment"]: next(part["counter"]["packets"]
                                          for part in item["rule"]["expr"] if "counter" in part)
            for item in listed if "rule" in item}


def goes(bed, verify, rail):
    """All WRITEs come over a rail now, and as the application has chosen it."""
    each(bed.nodes[:2], lambda node: count(node, rail))
    verify.more(2)
    for node in bed.nodes[:2]:
        # the other end may rest at the moment, as the program paces itself
        wait_for(f"{node.name}: WRITEs come in on rail {rail}",
                 lambda node=node: counted(node)["all"], 60)
        seen = counted(node)
        check(not any(seen[name] for name in OTHERS),
              f"{node.name}, rail {rail}: these are others: {seen}")


@contextmanager
def hop_limit(bed):
    """New connections get this one."""
    def write(value):
        each(bed.nodes[:2], lambda node: node.write("/proc/sys/net/ipv4/ip_default_ttl",
                                                    f"{value}\n"))
    was = bed.nodes[0].read("/proc/sys/net/ipv4/ip_default_ttl").strip()
    write(HOPS)
    try:
        yield
    finally:
        write(was)
        each(bed.nodes[:2], lambda node: node.run("nft delete table netdev route"))


@test("route", "class, hop limit and source port are the application's on every path", STOCK)
def chosen(bed):
    """On its own QP, on the backup, at home again and once more on the backup."""
    with hop_limit(bed):
        verify = start(bed, *shape(4096, 2), "--bidir", "--tos", TOS, "--flow-label", LABEL, qps=2)
    verify.go()
    verify.more(1)
    goes(bed, verify, 0)
    for _ in range(2):
        shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
        everywhere(bed, verify, "fallback")
        goes(bed, verify, 1)
        home(bed, verify)
        goes(bed, verify, 0)
    verify.finish()


@test("route", "the backup cannot carry the path MTU", STOCK)
def backup_mtu(bed):
    """Known before the fault, before a QP is protected and later; and when it is over."""
    client, server = bed.nodes[:2]

    def mtu(size):
        client.must(f"ip link set rail1 mtu {size}")
    was = int(client.read("/sys/class/net/rail1/mtu"))
    try:
        mtu(1000)
        verify = Verify(client, server, "--qp-timeout", BULK_TIMEOUT, *shape(4096, 1))
        for _ in range(2):
            shift.wait_reason(client, "mtu")
            shift.wait_reason(server, "peer-unprotected")
            mtu(was)
            each(bed.nodes[:2], lambda node: shift.protected(node, 1))
            mtu(1000)
        shift.wait_reason(client, "mtu")
    finally:
        mtu(was)
    each(bed.nodes[:2], lambda node: shift.protected(node, 1))
    survives(bed, verify, "local")


@test("route", "heartbeats travel in the class that an operator gives them", STOCK)
def heartbeats(bed):
    """Links that are connected from then on, and both of their ends; then as it was."""
    for tos in (TOS, 0):
        each(bed.nodes[:2], lambda node, tos=tos: node.write(
            "/sys/module/rdma_shift/parameters/tos", f"{tos}\n"))
        reconnect(bed)
        # QPs of another class would have heartbeats of their own
        verify = start(bed, *shape(4096, 1), "--ops", "write", "--tos", tos)
        shift.wait_session(bed, 2)
        other = {"class": f"ip dscp != {tos >> 2}"}
        try:
            for rail in (0, 1):
                each(bed.nodes[:2], lambda node, rail=rail, other=other: count(
                    node, rail, "RC_SEND_*", other))
                for node in bed.nodes[:2]:
                    wait_for(f"{node.name}: heartbeats on rail {rail}",
                             lambda node=node: counted(node)["all"] > 2, 60)
                    check(not counted(node)["class"], f"{node.name}: {counted(node)}")
        finally:
            each(bed.nodes[:2], lambda node: node.run("nft delete table netdev route"))
        verify.go()
        verify.more(1)
        verify.finish()


def lose_class(bed, tos):
    """Rail 0 loses all packets of a class, in both directions, and nobody is told."""
    packets = fault.matches("all", None)
    for node in bed.nodes[:2]:
        node.must(["nft", "-f", "-"], stdin=(
            "add table netdev class\n"
            "add chain netdev class in { type filter hook ingress device rail0 priority 0; "
            "policy accept; }\n"
            f"add rule netdev class in {packets} ip dscp {tos >> 2} counter drop\n").encode())


def keep_class(bed):
    """No packet is lost any more."""
    for node in bed.nodes[:2]:
        node.run("nft delete table netdev class")


def heard(bed, rail, dscps):
    """Wait until heartbeats go in these classes, beside that of the links."""
    for node in bed.nodes[:2]:
        wait_for(f"{node.name}: heartbeats of rail {rail} in the classes {dscps}",
                 lambda node=node: [row.get("dscps", []) for row in shift.links(
                     node, bed.nics.default if not rail else bed.nics.backup)
                     if row["state"] == "up"] == [dscps], 90)


def of_class(node, qpns):
    """The states of some QPs."""
    return {row["state"] for row in shift.connected(node) if row["qpn"] in qpns}


def class_dies(dead, bed):
    """QPs of two classes have nothing to do, and one class dies: those of it leave, others stay."""
    client = bed.nodes[0]
    nodes = bed.nodes[:2]
    verifies, qpns = {}, {}
    for tos in (0, TOS):
        known = [{row["qpn"] for row in shift.connected(node)} for node in nodes]
        verifies[tos] = Verify(*nodes, "--qp-timeout", BULK_TIMEOUT, "--pace", PACE,
                               *shape(4096, 2), "--port", 18600 + tos, "--tos", tos, qps=2)
        for node in nodes:
            shift.protected(node, 2 * len(verifies))
        qpns[tos] = [{row["qpn"] for row in shift.connected(node)} - old
                     for node, old in zip(nodes, known)]
    shift.wait_session(bed, 2)
    for rail in (0, 1):
        heard(bed, rail, [TOS >> 2])
    alive = TOS - dead
    counters = shift.Counters(bed)
    lose_class(bed, dead)
    try:
        wait_for("QPs of the class that is dead leave",
                 lambda: all(of_class(node, own) == {"fallback"}
                             for node, own in zip(nodes, qpns[dead])), 90)
        # each of these works, on the path that it has now
        for verify in verifies.values():
            verify.go()
            verify.more(2)
        for node, own in zip(nodes, qpns[alive]):
            check(of_class(node, own) == {"default"}, f"{node.name}: {shift.qps(node)}")
        if dead:
            check(sum(counters.delta("lanes_silent")) >= 1, "no class was found silent")
            check(shift.links_up(client, 2), "a link went down for it")
            # where the class is dead they cannot go home
            shift.ctl(client, "pair", "undrain", bed.nics.default)
            verifies[dead].more(2)
            for node, own in zip(nodes, qpns[dead]):
                check(of_class(node, own) == {"fallback"}, f"{node.name}: {shift.qps(node)}")
        else:
            check(sum(counters.delta("spared")) >= 2, "no QP was spared")
            counters.still("lanes_silent")
        check(counters.delta("switches")[:2] == [2, 2],
              f"switches {counters.delta('switches')}")
    finally:
        keep_class(bed)
    heard(bed, 0, [TOS >> 2])
    # those that have not left are not among these

    def returned():
        shift.ctl(client, "pair", "undrain", bed.nics.default)
        return all(of_class(node, own) <= set(shift.alike(bed, "returned"))
                   for node, own in zip(nodes, qpns[dead]))
    wait_for("QPs of the class that was dead are home", returned, 90)
    for verify in verifies.values():
        verify.more(2)
        verify.finish()
    counters.still("failed", "illegal", "msg_bad")


add("route", "only the class of some QPs dies: idle ones leave, and others stay",
    partial(class_dies, TOS), STOCK)
add("route", "only the class of the links dies: idle QPs of it leave, and others stay",
    partial(class_dies, 0), STOCK)


@test("route", "five classes are in use: four have heartbeats of their own")
def five_classes(bed):
    """The QP of the fifth is judged by its link, until another class is used no more."""
    nodes = bed.nodes[:2]
    classes = [8 * number for number in range(1, 6)]
    verifies = []

    def begin(tos):
        verifies.append(Verify(*nodes, "--qp-timeout", BULK_TIMEOUT, "--pace", PACE,
                               *shape(4096, 1), "--port", 18600 + len(verifies), "--tos", tos))
        for node in nodes:
            shift.protected(node, sum(verify.client.status is None for verify in verifies))

    def heartbeats(node, least):
        """Whether some came in of each of the first four; none may be of the fifth."""
        seen = counted(node)
        return all(seen[f"dscp {tos >> 2}"] >= least for tos in classes[:4])

    for tos in classes:
        begin(tos)
    shift.wait_session(bed, 2)
    heard(bed, 0, [tos >> 2 for tos in classes[:4]])
    rules = {f"dscp {tos >> 2}": f"ip dscp {tos >> 2}" for tos in classes}
    try:
        each(nodes, lambda node: count(node, 0, "RC_SEND_*", rules))
        for node in nodes:
            wait_for(f"{node.name}: heartbeats in four classes",
                     lambda node=node: heartbeats(node, 3), 60)
            check(not counted(node)[f"dscp {classes[4] >> 2}"],
                  f"{node.name}: the fifth class has heartbeats, too: {counted(node)}")
    finally:
        each(nodes, lambda node: node.run("nft delete table netdev route"))
    verifies[0].go()
    verifies[0].more(1)
    verifies[0].finish()
    heard(bed, 0, [tos >> 2 for tos in classes[1:4]])
    begin(classes[4])
    heard(bed, 0, [tos >> 2 for tos in classes[1:]])
    for verify in verifies[1:]:
        verify.go()
        verify.more(1)
        verify.finish()
