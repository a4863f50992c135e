# SPDX-License-Identifier: GPL-2.0
"""Programs as packaged, each over either node's cable, which comes back or never does."""

from functools import partial
from time import sleep

import shift
from registry import STOCK, add
from testbed import check, wait_for
from traffic import listening
from nodes.perftest import Run
from nodes.programs import QPERF_PORT, neighbour_lost, rpings, survives

OUTAGE = 20     # s that both paths are dead


def around(bed):
    """TCP takes the other rail from now on, as by a routing daemon; RDMA does not follow."""
    for node in bed.nodes[:2]:
        peer = bed.nodes[1 - bed.nodes.index(node)]
        node.must(f"ip route replace {peer.address(0)}/32 via {peer.address(1)} dev rail1")


def by_tcp_again(bed):
    """TCP takes the rail of its address."""
    for node in bed.nodes[:2]:
        peer = bed.nodes[1 - bed.nodes.index(node)]
        node.run(f"ip route del {peer.address(0)}/32 via {peer.address(1)} dev rail1")


def qperf(what, pull, back, bed):
    """Its two ends talk by TCP, which has to find its way while the cable is out."""
    address = bed.nodes[1].address(0)
    try:
        survives(bed, ["qperf"],
                 ["qperf", address, "-cm1", "-m", "4096", "-t", "30", "-to", "180", what],
                 lambda node: listening(node, QPERF_PORT), pull=pull, back=back,
                 meanwhile=None if back else partial(around, bed),
                 data=1 if what == "rc_rdma_read_bw" else 0, serving_ends=False)
    finally:
        by_tcp_again(bed)
        bed.plug_all()


def asked_for(bed):
    """The client asks for the MAC address of its peer, and nobody answers.

    With its own cable the entry goes. With the peer's it stays, and has the address even when nobody
    answers any more, until the kernel wants its room: so it is deleted.
    """
    client, server = bed.nodes[:2]
    client.run(f"ip neigh del {server.address(0)} dev rail0")
    neighbour_lost(bed)


def rping(pull, back, bed):
    """RDMA CM is not told of the address of a peer that was lost on the dead path."""
    try:
        rpings(bed, bed.nodes[1].address(0), 1000, pull=pull, back=back,
               meanwhile=partial(asked_for, bed))
    finally:
        bed.plug_all()


def both(first, back, bed):
    """64 QPs; while two of them are on their way the same node's other cable goes too."""
    node = bed.nodes[first]
    run = Run(bed, "ib_write_bw", "-s", 16384, "-n", 100, "-q", 64, "-t", 4, qps=64)
    node.link(0, False)
    wait_for("two QPs leave their NIC", lambda: sum(
        row["state"] != "default" for row in shift.qps(node)) >= 2, interval=.05)
    node.link(1, False)
    # the others have consented, and wait as long as the application would have repeated
    check(max(run.counters.delta("faults")) >= 2, "no QP has noticed the fault")
    sleep(OUTAGE)
    node.link(1, True)
    if back:
        node.link(0, True)
    run.finish()
    check(sum(run.counters.delta("outages")) >= 1, "no deadline was begun anew in the outage")
    bed.plug_all()


CELLS = {f"qperf {what}": partial(qperf, what)
         for what in ("rc_bw", "rc_bi_bw", "rc_rdma_write_bw", "rc_rdma_read_bw")}
CELLS["rping, and ARP on the dead path"] = rping
CELLS["ib_write_bw -q 64, both cables for a while"] = both

for _name, _cell in CELLS.items():
    for _pull, _side in enumerate(("client", "server")):
        for _back in (True, False):
            add("program_matrix", f"{_name}: the {_side}'s cable, "
                f"{'and back' if _back else 'stays out'}", partial(_cell, _pull, _back), STOCK)
