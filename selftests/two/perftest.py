# SPDX-License-Identifier: GPL-2.0
"""perftest as packaged, unchanged, with a cable pulled in the middle."""

import re

import shift
from registry import BARE, MAIN, SHIFT, STOCK, test
from testbed import check, wait_for
from traffic import QP_TIMEOUT, perftest


def bytes_sent(node, rail=0):
    """What a NIC has sent so far."""
    return int(node.run(f"cat /sys/class/net/rail{rail}/statistics/tx_bytes"
                        ).out)


def flowing(node, rail, much=1 << 20):
    """Wait until that many more bytes left on a rail."""
    before = bytes_sent(node, rail)
    wait_for(f"{node.name}: traffic on rail{rail}",
             lambda: bytes_sent(node, rail) - before > much, 60)


def survives(bed, program, *options, much=1 << 20, qps=1):
    """Run, pull the client's cable, insist on a good end."""
    client, server = bed.nodes[:2]
    counters = shift.Counters(bed)
    serving, running = perftest(client, server, program, *options)
    data = server if "read" in program else client
    flowing(data, 0, much)
    for node in (client, server):
        shift.protected(node, qps)
    client.link(0, False)
    flowing(data, 1, much)
    running.expect(0, 180)
    serving.expect(0, 60)
    check(re.search(r"^\s*\d+\s+\d+\s+\S+", running.text, re.M),
          f"no result line:\n{running.tail()}")
    check("Completion with error" not in running.text, running.tail())
    counters.moved("switches")
    counters.still("failed", "illegal", "msg_bad")


@test("perftest", "ib_write_bw survives the client's cable", MAIN)
def write_bw(bed):
    """By iterations, so that the run is as long as it takes."""
    few = 400 if bed.kernel == "debug" else 2500
    survives(bed, "ib_write_bw", "-s", 65536, "-n", few)


@test("perftest", "ib_write_lat survives the client's cable")
def write_lat(bed):
    """Each side writes and waits for the other's byte in memory."""
    survives(bed, "ib_write_lat", "-s", 8, "-n", 5000, much=1 << 15)


@test("perftest", "ib_send_bw survives the client's cable", STOCK)
def send_bw(bed):
    """Receives are posted all the time; each SEND takes one."""
    survives(bed, "ib_send_bw", "-s", 65536, "-n", 1800)


@test("perftest", "ib_send_bw -e -q 4 in both directions survives")
def send_bw_events(bed):
    """Asleep on a completion channel, four QPs, traffic both ways."""
    survives(bed, "ib_send_bw", "-s", 16384, "-n", 2000, "-e", "-q", 4, "-b", qps=4)


@test("perftest", "ib_send_lat survives the client's cable")
def send_lat(bed):
    """One SEND at a time, each answered."""
    survives(bed, "ib_send_lat", "-s", 8, "-n", 5000, much=1 << 15)


@test("perftest", "ib_read_bw survives the client's cable", STOCK)
def read_bw(bed):
    """What was asked for and not answered is asked for again."""
    survives(bed, "ib_read_bw", "-s", 65536, "-n", 1800)


@test("perftest", "ib_write_bw without the module ends in an error", MAIN,
      BARE)
def write_bw_stock(bed):
    """The negative control of the first one.

    rxe takes perftest's fixed retry count of 7 for "for ever"; only with -R can
    it be told another.
    """
    client, server = bed.nodes[:2]
    few = 400 if bed.kernel == "debug" else 2500
    words = ["ib_write_bw", "-d", "rxe0", "-F", "-u", str(QP_TIMEOUT), "-s",
             "65536", "-n", str(few), "-R", "--retry_count=3"]
    serving = server.start(words, env={})
    wait_for("ib_write_bw listens", lambda: serving.status is not None
             or not server.run("rdma resource show cm_id | grep -q LISTEN")
             .status)
    running = client.start([*words, server.address(0)], env={})
    flowing(client, 0)
    client.link(0, False)
    status = running.wait(180)
    check(status != 0, "perftest ended well without the module")
    check("Completion with error" in running.text
          or "Failed status" in running.text,
          f"no completion error:\n{running.tail()}")


@test("perftest", "ib_write_bw with module and no fault", state=SHIFT)
def write_bw_quiet(bed):
    """Nothing is switched when nothing happens."""
    client, server = bed.nodes[:2]
    counters = shift.Counters(bed)
    serving, running = perftest(client, server, "ib_write_bw", "-s", 65536,
                                "-n", 500)
    running.expect(0)
    serving.expect(0)
    counters.still("switches", "faults", "failed", "swallowed")
    counters.moved("paired")
