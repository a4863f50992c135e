# SPDX-License-Identifier: GPL-2.0
"""Addresses of other network namespaces and VLANs: unprotected, and in nobody's way."""

from contextlib import contextmanager

import shift
from registry import STOCK, test
from testbed import PATCHED, check, each, wait_for
from traffic import QP_TIMEOUT, Verify
from nodes.failover import pull, start, survives

SPACE = "tenant"
PORT = "/sys/class/infiniband/rxe0/ports/1"


@contextmanager
def tenants(bed):
    """On each node a namespace with an interface on rail 0, which has the rail's own address.

    It takes no part in ARP, so that packets for the address come to the rail, where rxe receives.
    It has the rail's interface number too, as rxe looks for the number in the initial namespace
    when it sends. (An interface with that number cannot be made from there.) So QPs with its GID
    work, and only the namespace tells that GID from the rail's.
    """
    nodes = bed.nodes[:2]
    macs = [node.read("/sys/class/net/rail0/address").strip() for node in nodes]

    def begin(node):
        peer = nodes[0] if node is nodes[1] else nodes[1]
        node.must(f"ip netns add {SPACE} && "
                  f"ip link add link rail0 name step index 77 netns {SPACE} type macvlan && "
                  f"ip -n {SPACE} link add link step name twin "
                  "index $(cat /sys/class/net/rail0/ifindex) type macvlan mode bridge && "
                  f"ip -n {SPACE} link del step && "
                  f"ip -n {SPACE} link set twin arp off && ip -n {SPACE} link set twin up && "
                  f"ip -n {SPACE} addr add {node.address(0)}/24 dev twin && "
                  f"ip -n {SPACE} neigh replace {peer.address(0)} lladdr {macs[nodes.index(peer)]} "
                  "nud permanent dev twin")

    def end(node):
        # the interface goes with its namespace, a little later
        node.must(f"ip netns del {SPACE}")
        wait_for("its GIDs are gone", lambda: not indices(node))

    each(nodes, begin)
    try:
        yield
    finally:
        each(nodes, end)


def indices(node, name="twin", address=None):
    """Where rxe0's table has RoCE v2 GIDs of an interface with an address (the rail's)."""
    tail = bytes(map(int, (address or node.address(0)).split("."))).hex()
    found = node.must(f"cd {PORT}/gid_attrs && grep -l '^{name}$' ndevs/* 2>/dev/null; true")
    numbers = [path.rpartition("/")[2] for path in found.split()]
    return [int(number) for number in numbers
            if node.read(f"{PORT}/gids/{number}").strip().replace(":", "").endswith("ffff" + tail)
            and "v2" in node.read(f"{PORT}/gid_attrs/types/{number}")]


def common(found):
    """The index that both nodes' GIDs have."""
    check(found[0] == found[1] and len(found[0]) == 1, f"GIDs: {found}")
    return found[0][0]


def tenants_gid(bed):
    """The index of those GIDs, which is the same on both nodes."""
    for node in bed.nodes[:2]:
        wait_for(f"{node.name}: a GID of the namespace", lambda node=node: indices(node))
    return common([indices(node) for node in bed.nodes[:2]])


def runs_alone(bed, index, reason):
    """A QP with that GID runs, says why it is unprotected, and fails as without the module."""
    verify = Verify(*bed.nodes[:2], "--qp-timeout", QP_TIMEOUT, "--pace", 3, "--progress", 100,
                    "--gid-index", index, env=PATCHED)
    each(bed.nodes[:2], lambda node: shift.wait_reason(node, reason))
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    pull(bed, "local")
    verify.fails()
    counters.still("switches", "failed", "illegal")
    bed.nodes[0].link(0, True)
    shift.wait_session(bed)


@test("namespaces", "a GID of another namespace: no protection, and no harm to others", STOCK)
def other(bed):
    """And while that namespace is there, QPs of the host are protected."""
    with tenants(bed):
        runs_alone(bed, tenants_gid(bed), "namespace")
        survives(bed, start(bed, "--progress", 100), "local")


def vlan_address(node, rail):
    """Of the interface that has VLAN 5 of a rail."""
    return f"10.2{rail}.0.{1 + node.number}"


@contextmanager
def vlans(bed, *rails):
    """On each node an interface in VLAN 5 of these rails, whose GIDs rxe has."""
    nodes = bed.nodes[:2]
    try:
        for rail in rails:
            each(nodes, lambda node, rail=rail: node.must(
                f"ip link add link rail{rail} name rail{rail}.5 type vlan id 5 && "
                f"ip link set rail{rail}.5 up && "
                f"ip addr add {vlan_address(node, rail)}/24 dev rail{rail}.5"))
        yield common([wait_for(f"{node.name}: a GID of the VLAN",
                               lambda node=node: indices(node, f"rail{rails[0]}.5",
                                                         vlan_address(node, rails[0])))
                      for node in nodes])
    finally:
        for rail in rails:
            each(nodes, lambda node, rail=rail: node.must(
                f"ip link del rail{rail}.5 2>/dev/null; true"))


@test("namespaces", "an address in a VLAN in which the backup has none", STOCK)
def vlan(bed):
    """The backup's address outside of that VLAN is no way to the peer."""
    with vlans(bed, 0) as index:
        runs_alone(bed, index, "address")


def sent(node):
    """Packets that have left by VLAN 5 of the backup."""
    return int(node.read("/sys/class/net/rail1.5/statistics/tx_packets"))


@test("namespaces", "an address in a VLAN that both rails have", STOCK)
def vlan_on_both(bed):
    """A cable goes: the QP moves to the backup's address in that VLAN, and does not leave it."""
    nodes = bed.nodes[:2]
    with vlans(bed, 0, 1) as index:
        try:
            for node, other in zip(nodes, nodes[::-1]):
                shift.must(node, "peer", "set", other.name, *shift.nics_of(other), "nic",
                           vlan_address(other, 0), "backup", vlan_address(other, 1))
            verify = start(bed, "--progress", 100, "--gid-index", index)
            shift.wait_session(bed, 2)
            before = [sent(node) for node in nodes]
            survives(bed, verify, "local")
            for node, packets in zip(nodes, before):
                check(sent(node) > packets + 100, f"{node.name}: {sent(node) - packets} packets "
                      "have left by the VLAN of the backup")
            bed.plug_all()
        finally:
            bed.stop_processes()
            shift.introduce(bed)
