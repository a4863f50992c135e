# SPDX-License-Identifier: GPL-2.0
"""Programs as packaged, other than perftest: a cable pulled, and in again.

In all of them sends and receives share a CQ, and rxe of 6.12 fails a QP the moment its
carrier goes: its flushes of the two are told apart by their wr_ids.
"""

from functools import partial

import shift
from registry import STOCK, add, test
from testbed import check, wait_for
from traffic import PERFTEST_PORT, listening
from two.perftest import flowing


def cm_listens(node):
    """Whether a program listens by RDMA CM, beside the module itself."""
    return node.run("rdma resource show cm_id | grep LISTEN | grep -vq "
                    "'pid 0\\|kernel\\|rdma_shift'").status == 0


def survives(bed, server_words, client_words, listens, much=1 << 18, data=0, pull=0):
    """The program goes on over the backup and ends well, at home or not.

    data: which node sends it; pull: whose cable goes.
    """
    client, server = bed.nodes[:2]
    counters = shift.Counters(bed)
    serving = server.start(server_words, env=bed.nics.env)
    wait_for(f"{server_words[0]} listens", lambda: serving.status is not None
             or listens(server))
    running = client.start(client_words, env=bed.nics.env)
    sender = bed.nodes[data]
    flowing(sender, 0, much)
    for node in (client, server):
        shift.protected(node, 1)
    bed.nodes[pull].link(0, False)
    flowing(sender, 1, much)
    check(running.status is None, f"too short:\n{running.tail()}")
    # Connection managers say good-bye over the NIC they were told.
    bed.plug_all()
    running.expect(0, 240)
    serving.expect(0, 120)
    counters.moved("switches")
    counters.still("failed", "illegal", "msg_bad")
    return running


def pingpong(pull, options, bed):
    """rdma-core's example: SEND and receive in turn, data checked."""
    # Processes that poll leave little to the workqueues that newer rxe lives on.
    few = {"6.1": "1500"}.get(bed.kernel, "800")
    words = ["ibv_rc_pingpong", "-d", bed.nics.default, "-g", "1", "-s", "8192", "-n", few,
             "-c", *options]
    survives(bed, words, [*words, bed.nodes[1].address(2)],
             lambda node: listening(node, PERFTEST_PORT), pull=pull)


add("programs", "ibv_rc_pingpong", partial(pingpong, 0, ()), STOCK)
add("programs", "ibv_rc_pingpong, the server's cable", partial(pingpong, 1, ()), STOCK)
# Asleep in ibv_get_cq_event.
add("programs", "ibv_rc_pingpong -e", partial(pingpong, 0, ("-e",)), STOCK)


@test("programs", "rping")
def rping(bed):
    """RDMA CM; SEND, READ and WRITE in turn, data checked."""
    address = bed.nodes[1].address(0)
    survives(bed, ["rping", "-s", "-a", address, "-V", "-S", "4096", "-C", "3000"],
             ["rping", "-c", "-a", address, "-V", "-S", "4096", "-C", "3000"],
             cm_listens)


@test("programs", "ucmatose")
def ucmatose(bed):
    """RDMA CM; many messages posted at once, both ways."""
    address = bed.nodes[1].address(0)
    options = ["-C", "600", "-S", "65536"]
    survives(bed, ["ucmatose", *options], ["ucmatose", "-s", address, *options],
             cm_listens, much=1 << 20)
