# SPDX-License-Identifier: GPL-2.0
"""perftest as packaged, unchanged, with a cable pulled in the middle."""

import re
from functools import partial

import shift
from registry import BARE, SHIFT, STOCK, add, test
from testbed import Failure, check, wait_for
from traffic import QP_TIMEOUT, perftest
from nodes.failover import atomics_move, dropped


def bytes_sent(node, rail=0):
    """What a NIC has sent so far."""
    return int(node.read(f"/sys/class/net/rail{rail}/statistics/tx_bytes"))


def flowing(node, rail, much=1 << 20):
    """Wait until that many more bytes left on a rail."""
    before = bytes_sent(node, rail)
    wait_for(f"{node.name}: traffic on rail{rail}",
             lambda: bytes_sent(node, rail) - before > much, 60)


class Run:
    """A perftest between the two nodes, its QPs protected, traffic on rail 0."""

    def __init__(self, bed, program, *options, much=1 << 20, qps=1):
        self.bed = bed
        self.client, self.server = bed.nodes[:2]
        self.much = much
        self.qps = qps
        self.counters = shift.Counters(bed)
        self.serving, self.running = perftest(self.client, self.server, program,
                                              *options)
        self.data = self.server if "read" in program else self.client
        self.flows(0)
        self.all_in("default")

    def flows(self, rail):
        """Data goes over that rail."""
        try:
            flowing(self.data, rail, self.much)
        except Failure as failure:
            raise Failure(f"{failure}\n{self.running.tail()}") from None

    def all_in(self, state):
        """All QPs of both nodes are in that state."""
        for node in (self.client, self.server):
            shift.protected(node, self.qps, state)

    def pull(self):
        """The client's cable goes; data comes over the backup."""
        self.client.link(0, False)
        self.flows(1)

    def home(self):
        """The cable is in again and the QPs go back to their own device."""
        self.bed.plug_all()
        shift.wait_session(self.bed, 2)
        shift.home(self.bed, self.qps)
        self.flows(0)
        self.counters.moved("returns", self.qps)

    def finish(self):
        """It ends well and prints its figures."""
        self.running.expect(0, 180)
        self.serving.expect(0, 60)
        text = self.running.text
        check(re.search(r"^\s*\d+\s+\d+\s+\S+", text, re.M),
              f"no result line:\n{self.running.tail()}")
        check("Completion with error" not in text, self.running.tail())
        self.counters.moved("switches")
        self.counters.still("failed", "illegal", "msg_bad")


def survives(bed, program, *options, **details):
    """Run, pull the client's cable, insist on a good end."""
    run = Run(bed, program, *options, **details)
    run.pull()
    run.finish()


@test("perftest", "ib_write_bw survives the client's cable", STOCK)
def write_bw(bed):
    """By iterations, so that the run is as long as it takes."""
    few = 400 if bed.kernel == "debug" else 700
    survives(bed, "ib_write_bw", "-s", 65536, "-n", few)


@test("perftest", "ib_write_lat survives the client's cable")
def write_lat(bed):
    """Each side writes and waits for the other's byte in memory."""
    survives(bed, "ib_write_lat", "-s", 8, "-n", 5000, much=1 << 15)


@test("perftest", "ib_send_bw survives the client's cable")
def send_bw(bed):
    """Receives are posted all the time; each SEND takes one."""
    survives(bed, "ib_send_bw", "-s", 65536, "-n", 1000)


@test("perftest", "ib_send_bw -e -q 4 in both directions survives")
def send_bw_events(bed):
    """Asleep on a completion channel, four QPs, traffic both ways."""
    survives(bed, "ib_send_bw", "-s", 16384, "-n", 1000, "-e", "-q", 4, "-b", qps=4)


@test("perftest", "ib_send_bw --use-srq -q 4, there and back")
def send_bw_srq(bed):
    """Four QPs on one shared receive queue leave together and come home together."""
    run = Run(bed, "ib_send_bw", "-s", 16384, "-n", 1200, "-q", 4, "--use-srq", qps=4)
    run.pull()
    run.home()
    run.finish()


@test("perftest", "ib_write_bw -q 16, there and back")
def write_bw_many(bed):
    """Sixteen QPs, each with its own switch."""
    run = Run(bed, "ib_write_bw", "-s", 16384, "-n", 800, "-q", 16, "-t", 16, qps=16)
    run.pull()
    run.home()
    run.finish()


@test("perftest", "ib_send_lat survives the client's cable")
def send_lat(bed):
    """One SEND at a time, each answered."""
    survives(bed, "ib_send_lat", "-s", 8, "-n", 5000, much=1 << 15)


@test("perftest", "ib_read_bw survives the client's cable")
def read_bw(bed):
    """What was asked for and not answered is asked for again."""
    survives(bed, "ib_read_bw", "-s", 65536, "-n", 1000)


@test("perftest", "ib_read_lat -e, there and back")
def read_lat(bed):
    """One READ at a time, one poll for each event: an event too many ends it."""
    run = Run(bed, "ib_read_lat", "-s", 8, "-n", 12000, "-e", much=1 << 15)
    run.pull()
    run.home()
    run.finish()


def atomics(bed, program, opcode, *options):
    """A run of atomics that may be moved, cut where one kind of packet is lost.

    One atomic is under way at a time: the first packet lost is the last of its kind.
    """
    run = Run(bed, program, *options, much=1 << 15)
    bed.drop(run.server, 0, direction="in" if opcode == "RC_FETCH_ADD" else "out",
             opcode=opcode)
    wait_for("a packet lost", lambda: dropped(bed))
    run.client.link(0, False)
    return run


@test("perftest", "ib_atomic_bw, the request lost: there and back")
def atomic_bw(bed):
    """What was not executed is executed at the other end of the backup, once."""
    with atomics_move(bed):
        run = atomics(bed, "ib_atomic_bw", "RC_FETCH_ADD", "-n", 18000)
        run.flows(1)
        run.home()
        run.finish()


@test("perftest", "ib_atomic_bw, the answer lost: an error")
def atomic_bw_lost(bed):
    """Nobody knows what was there before it: it is not executed again."""
    with atomics_move(bed):
        run = atomics(bed, "ib_atomic_bw", "RC_ATOMIC_ACK", "-n", 15000)
        check(run.running.wait(180), "it ended well")
        check("Completion with error" in run.running.text, run.running.tail())
        check(any(run.counters.delta("failed")), "no QP has failed")
        run.counters.still("illegal", "msg_bad")
        run.serving.stop()


def atomics_stay(lost, pull, bed):
    """No other NIC may execute what is under way: its own one does, or tells, after the outage.

    A QP that has survived is protected again.
    """
    run = Run(bed, "ib_atomic_lat", "-n", 12000, much=1 << 15)
    bed.drop(run.server, 0, direction="in" if lost == "RC_FETCH_ADD" else "out", opcode=lost)
    wait_for("a packet lost", lambda: dropped(bed))
    bed.nodes[pull].link(0, False)
    shift.wait_reason(run.client, "operation")
    apart = shift.Counters(bed)
    bed.plug_all()
    wait_for("its QPs are protected again", lambda: min(apart.delta("paired")) >= 1, 120)
    run.running.expect(0, 180)
    run.serving.expect(0, 60)
    run.counters.still("switches", "failed", "illegal", "msg_bad")


add("perftest", "ib_atomic_lat, not moved, survives a short outage: the request lost",
    partial(atomics_stay, "RC_FETCH_ADD", 0))
add("perftest", "ib_atomic_lat, not moved, survives a short outage: the answer lost",
    partial(atomics_stay, "RC_ATOMIC_ACK", 1))


@test("perftest", "ib_atomic_lat, moved away before the cable is pulled, and back")
def atomic_lat(bed):
    """A move waits for answers, so every atomic survives it."""
    with atomics_move(bed):
        run = Run(bed, "ib_atomic_lat", "-n", 12000, much=1 << 15)
        shift.must(run.client, "pair", "drain", bed.nics.default)
        run.all_in("fallback")
        run.pull()
        run.home()
        run.finish()


@test("perftest", "ib_write_bw without the module ends in an error", STOCK,
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
    for _ in range(3):
        serving = server.start(words, env={})
        wait_for("ib_write_bw listens", lambda serving=serving: serving.status is not None
                 or not server.run("rdma resource show cm_id | grep -q LISTEN").status)
        running = client.start([*words, server.address(0)], env={})
        sent = bytes_sent(client)
        wait_for("traffic on rail0", lambda running=running, sent=sent:
                 bytes_sent(client) - sent > 1 << 20 or running.status is not None, 60)
        if running.status is None:
            break
        # with -R it may crash in librdmacm before it is connected
        serving.stop()
    check(running.status is None, f"it ended before any fault:\n{running.tail()}")
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
