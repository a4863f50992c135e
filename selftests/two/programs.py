# SPDX-License-Identifier: GPL-2.0
"""Programs as packaged, other than perftest: a cable pulled, and in again.

On 6.1 only: rxe of 6.12 fails a QP the moment its carrier goes, and flushes of sends and
receives that share a CQ, as in these programs, cannot be told apart then.
"""

import shift
from registry import test
from testbed import PATCHED, check, wait_for
from traffic import PERFTEST_PORT, listening
from two.perftest import flowing


def cm_listens(node):
    """Whether a program listens by RDMA CM, beside the module itself."""
    return node.run("rdma resource show cm_id | grep LISTEN | grep -vq "
                    "'pid 0\\|kernel\\|rdma_shift'").status == 0


def survives(bed, server_words, client_words, listens, much=1 << 18, data=0):
    """The program goes on over the backup and ends well, at home or not."""
    client, server = bed.nodes[:2]
    counters = shift.Counters(bed)
    serving = server.start(server_words, env=PATCHED)
    wait_for(f"{server_words[0]} listens", lambda: serving.status is not None
             or listens(server))
    running = client.start(client_words, env=PATCHED)
    sender = bed.nodes[data]
    flowing(sender, 0, much)
    for node in (client, server):
        shift.protected(node, 1)
    client.link(0, False)
    flowing(sender, 1, much)
    check(running.status is None, f"too short:\n{running.tail()}")
    # Connection managers say good-bye over the NIC they were told.
    bed.plug_all()
    running.expect(0, 240)
    serving.expect(0, 120)
    counters.moved("switches")
    counters.still("failed", "illegal", "msg_bad")
    return running


def pingpong(bed, *options):
    """rdma-core's example: SEND and receive in turn, data checked."""
    words = ["ibv_rc_pingpong", "-d", "rxe0", "-g", "1", "-s", "8192", "-n", "6000",
             "-c", *options]
    survives(bed, words, [*words, bed.nodes[1].address(2)],
             lambda node: listening(node, PERFTEST_PORT))


@test("programs", "ibv_rc_pingpong")
def rc_pingpong(bed):
    """Polling."""
    pingpong(bed)


@test("programs", "ibv_rc_pingpong -e")
def rc_pingpong_events(bed):
    """Asleep in ibv_get_cq_event."""
    pingpong(bed, "-e")


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
