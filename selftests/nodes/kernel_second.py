# SPDX-License-Identifier: GPL-2.0
"""Users in the kernel: second failures, and networks that are not the plain ones."""

from functools import partial

import shift
from registry import BARE, FULL, MAIN, STOCK, add, test
from stream import Rounds, stream
from testbed import check, each, wait_for
from ulp import Nfs, Nvme
from ulp_work import Disk, Tree
from nodes.failover import beating, dropped, pull
from nodes.kernel_failover import cable, moved, working
from nodes.namespaces import vlan_address, vlans
from nodes.programs import ipv6, v6_address
from nodes.second_failure import goes_down, moves_on

THREE = stream(qps=3, poll="softirq")


def stops(bed, rail, skip, begin):
    """A switch has begun, and its messages are lost on the path that it goes to; then that dies."""
    bed.drop(bed.nodes[1], rail, direction="in", opcode="RC_SEND_*", skip=skip)
    begin()
    wait_for("a message is lost", lambda: dropped(bed, rail) > 0, 60)
    check(moves_on(bed), "no QP is in a switch")
    goes_down(bed, rail)
    check(moves_on(bed), "the switch was over before")
    bed.plug_all()
    wait_for("the end of each switch", lambda: not moves_on(bed), 120)


def in_handshake(skip, kind, program, bed):
    """Both paths are dead for a while, after so many packets of the switch.

    The user's own retries outlast that, so that each QP goes on, on one path or the other.
    """
    with working(bed, kind, program) as (work, counters):
        shift.wait_session(bed, 2)
        with beating(bed, 0):
            stops(bed, 1, skip, lambda: pull(bed, "local"))
            work.more(2)
        check(sum(counters.delta("faults")) > 0, "no fault was counted")
        shift.home(bed, kind.QPS)
        work.more(1)


def in_failback(skip, kind, program, bed):
    """A cut on the way home: each QP stays, or comes back to where it was."""
    with working(bed, kind, program) as (work, counters):
        pull(bed, "local")
        moved(bed, counters, work)
        bed.plug_all()
        shift.wait_session(bed, 2)
        with beating(bed, 0):
            stops(bed, 0, skip, lambda: shift.must(
                bed.nodes[0], "pair", "undrain", bed.nics.default))
            work.more(2)
        check(sum(counters.delta("moves")) > 0, "no move was counted")
        shift.home(bed, kind.QPS)
        work.more(1)


for _skip, _kernels in ((0, MAIN), (2, MAIN), (5, FULL)):
    for _name, _function in (("handshake", in_handshake), ("failback", in_failback)):
        add("kernel_second", f"a cable goes in the {_name}, after {_skip} packets",
            partial(_function, _skip, THREE, Rounds), _kernels, BARE)
for _kind, _program in (Nvme, Disk), (Nfs, Tree):
    for _name, _function in (("handshake", in_handshake), ("failback", in_failback)):
        add("kernel_second", f"{_kind.NAME}: a cable goes in the {_name}, after 2 packets",
            partial(_function, 2, _kind, _program), STOCK, BARE)


class NvmeIpv6(Nvme):
    """The same by IPv6."""

    FAMILY = "ipv6"

    def address(self, rail):
        """Of the target."""
        return v6_address(self.target, rail)


@test("kernel_second", "nvme over IPv6, local cable", STOCK, BARE)
def over_ipv6(bed):
    """The connection is made by IPv6 addresses; the backup path has IPv4 as well."""
    with ipv6(bed, tell=lambda bed: None):
        cable("local", 2, NvmeIpv6, Disk, bed)


class NvmeVlan(Nvme):
    """The same in a VLAN that both rails have."""

    def address(self, rail):
        """Of the target."""
        return vlan_address(self.target, rail)

    def serve(self):
        """And nodes know the NICs by their addresses there, too."""
        super().serve()
        for node, other in (self.host, self.target), (self.target, self.host):
            shift.must(node, "peer", "set", other.name, *shift.nics_of(other), "nic",
                       vlan_address(other, 0), "backup", vlan_address(other, 1))


def sent(node):
    """Packets that have left by the VLAN of the backup."""
    return int(node.read("/sys/class/net/rail1.5/statistics/tx_packets"))


@test("kernel_second", "nvme in a VLAN that both rails have, local cable", STOCK, BARE)
def in_vlan(bed):
    """It moves to the backup's address in that VLAN, and does not leave it."""
    with vlans(bed, 0, 1):
        before = each(bed.nodes[:2], sent)
        cable("local", 2, NvmeVlan, Disk, bed)
        for node, then in zip(bed.nodes, before):
            check(sent(node) > then + 100, f"{node.name}: {sent(node) - then} packets have left "
                  "by the VLAN of the backup")


class OnThird(Nfs):
    """The first backup was removed, and the second one stands in."""

    def serve(self):
        """On both nodes, and each knows that of the other."""
        super().serve()
        nodes = self.host, self.server
        for node in nodes:
            shift.must(node, "pair", "add", "rxe0", "rxe2")
            node.must("rdma link delete rxe1")
        for node, other in nodes, nodes[::-1]:
            shift.must(node, "peer", "set", other.name, "nic", other.address(0), "backup",
                       other.address(2))


@test("kernel_second", "nfs: the backup is removed, and the next one stands in", STOCK, BARE)
def on_third(bed):
    """What is connected from then on moves there."""
    try:
        cable("local", 2, OnThird, Tree, bed)
    finally:
        for node in bed.nodes[:2]:
            if node.run("rdma link show rxe1/1").status:
                node.must("rdma link add rxe1 type rxe netdev rail1")
