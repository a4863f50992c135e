# SPDX-License-Identifier: GPL-2.0
"""A cable is pulled under a user in the kernel: Documentation/internals/kernel-users.md."""

import json
from contextlib import contextmanager
from functools import partial

import shift
from registry import BARE, MAIN, add, test
from testbed import check, each, wait_for
from nodes.failover import SIDES, dropped, goes_silent, pull
from nodes.kernel_users import Nvme, gone

QPS = 2         # a queue for commands and one for data
# What nvme says of a connection that is lost, and the block layer of a request.
TROUBLE = "reconnect|timeout|I/O error|failed|reset"


class Writer:
    """Writes and reads a disk all the time, past the cache, and compares."""

    def __init__(self, node, jobs=4, blocks=64):
        self.node = node
        self.jobs = [node.start(f"""
            n=0
            while ! test -e /tmp/enough; do
                dd if=/dev/urandom of=/tmp/wrote{job} bs=4k count={blocks} 2>/dev/null || exit 2
                dd if=/tmp/wrote{job} of=/dev/nvme0n1 bs=4k seek={job * blocks} oflag=direct \\
                    conv=notrunc 2>/dev/null || exit 3
                dd if=/dev/nvme0n1 of=/tmp/read{job} bs=16k count={blocks // 4} iflag=direct \\
                    skip={job * blocks // 4} 2>/dev/null || exit 4
                cmp /tmp/wrote{job} /tmp/read{job} || exit 5
                n=$((n + 1))
                echo round $n
            done""") for job in range(jobs)]

    def rounds(self):
        """How often each job has written and read all of its part."""
        return [job.text.count("round ") for job in self.jobs]

    def more(self, count=1, timeout=120):
        """Wait until each job has gone through so many rounds more."""
        then = self.rounds()
        wait_for(f"{count} rounds of each writer", lambda: all(
            now - before >= count for now, before in zip(self.rounds(), then)) or self.ended(),
            timeout)
        check(not self.ended(), "\n".join(job.tail() for job in self.jobs))

    def ended(self):
        """Has a job ended?"""
        return any(job.status is not None for job in self.jobs)

    def finish(self):
        """End after the round that each is in."""
        self.node.must("touch /tmp/enough")
        for job in self.jobs:
            job.expect(0, timeout=120)
        self.node.must("rm /tmp/enough /tmp/wrote* /tmp/read*")


class Fio:
    """fio as packaged: random reads and writes of 4 KiB, many at a time, each verified."""

    OPTIONS = ("--name=verify --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --rw=randrw "
               "--bs=4k --iodepth=32 --numjobs=2 --offset_increment=16m --size=16m "
               "--verify=crc32c --verify_backlog=64 --verify_fatal=1 --serialize_overlap=1 "
               "--time_based --runtime=3600 --group_reporting --output-format=json "
               "--output=/tmp/fio.json")

    def __init__(self, node):
        self.node = node
        node.push("/usr/bin/fio")
        self.process = node.start(f"exec fio {self.OPTIONS}")

    def count(self):
        """Reads and writes that the disk has completed."""
        fields = self.node.read("/sys/block/nvme0n1/stat").split()
        return int(fields[0]) + int(fields[4])

    def more(self, count=1, timeout=120):
        """Wait for some hundreds of requests more."""
        then = self.count()
        wait_for(f"{count} times 200 requests", lambda: self.process.status is not None
                 or self.count() >= then + 200 * count, timeout)
        check(self.process.status is None, self.process.tail())

    def finish(self):
        """End it, and see that nothing was wrong; the longest stall, in seconds."""
        self.node.must("killall -INT fio")
        self.process.expect(128, timeout=120)
        # in front of it fio says that it was interrupted
        text = self.node.read("/tmp/fio.json")
        job = json.loads(text[text.index("{"):])["jobs"][0]
        check(job["error"] == 0, f"fio: {job['error']}")
        return max(job[way]["clat_ns"]["max"] for way in ("read", "write")) / 1e9


def trouble(node):
    """Lines of nvme and the block layer that nobody wants to see."""
    return node.run(f"dmesg | grep -Ei 'nvme|blk_|I/O' | grep -Ei '{TROUBLE}'").out


@contextmanager
def working(bed, program=Writer):
    """A host that writes and reads all the time, its QPs protected: it notices nothing."""
    shift.setup(bed, f"{shift.MODULE} kernel_users=nvme")
    nvme = Nvme(bed)
    nvme.serve()
    each(bed.nodes[:2], lambda node: node.must("dmesg -c >/dev/null"))
    nvme.connect()
    each(bed.nodes[:2], lambda node: shift.protected(node, QPS))
    shift.wait_session(bed)
    counters = shift.Counters(bed)
    writer = program(nvme.host)
    # more requests than a ledger has entries
    writer.more(6)
    yield writer, counters
    writer.more(2)
    writer.finish()
    counters.still("failed", "illegal", "msg_bad", "kernel_lost", "mirror_failed")
    for node in bed.nodes[:2]:
        check(not trouble(node), trouble(node))
    nvme.disconnect()
    gone(bed)
    nvme.end()
    shift.forget(bed)


def moved(bed, counters, writer, times=1):
    """All QPs are on the backup, and the writer goes on."""
    wait_for("failover on both nodes",
             lambda: min(counters.delta("switches")) >= times * QPS, 120)
    each(bed.nodes[:2], lambda node: shift.protected(node, QPS, "fallback"))
    writer.more(2)


def cable(side, rounds, program, bed):
    """The cable is pulled and plugged again, and the QPs go home, again and again."""
    with working(bed, program) as (writer, counters):
        for number in range(rounds):
            pull(bed, side)
            # to the backup, and home
            moved(bed, counters, writer, 2 * number + 1)
            bed.plug_all()
            shift.home(bed, QPS)
            writer.more(1)
        check(sum(counters.delta("faults")) >= rounds, "faults were not counted")


for _side in SIDES:
    add("kernel_failover", f"nvme: {_side} cable", partial(cable, _side, 1, Writer), MAIN, BARE)
    add("kernel_failover", f"nvme: fio, {_side} cable, ten times", partial(cable, _side, 10, Fio),
        MAIN, BARE)


@test("kernel_failover", "nvme: silent loss", MAIN, BARE)
def silent(bed):
    """The path loses all packets, and no port says so."""
    with working(bed) as (writer, counters):
        goes_silent(bed)
        moved(bed, counters, writer)
        check(dropped(bed) > 0, "no packet was dropped")
        bed.undrop()
        shift.home(bed, QPS)


@test("kernel_failover", "nvme: drained and taken back", MAIN, BARE)
def drained(bed):
    """An operator moves the QPs; that is no fault."""
    with working(bed) as (writer, counters):
        shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
        moved(bed, counters, writer)
        shift.must(bed.nodes[0], "pair", "undrain", bed.nics.default)
        shift.home(bed, QPS)
        writer.more(1)
        counters.still("faults")


@test("kernel_failover", "nvme: disconnected on the backup", MAIN, BARE)
def ends_away(bed):
    """Both ends go in order while the path of their QPs is dead, and may connect again after."""
    shift.setup(bed, f"{shift.MODULE} kernel_users=nvme")
    nvme = Nvme(bed)
    nvme.serve()
    for side in SIDES:
        nvme.connect()
        each(bed.nodes[:2], lambda node: shift.protected(node, QPS))
        shift.wait_session(bed)
        nvme.traffic()
        counters = shift.Counters(bed)
        pull(bed, side)
        wait_for("failover on both nodes", lambda: min(counters.delta("switches")) >= QPS, 120)
        nvme.traffic()
        each(bed.nodes[:2], lambda node: shift.protected(node, QPS, "fallback"))
        nvme.disconnect()
        gone(bed)
        counters.still("failed", "illegal", "msg_bad", "kernel_lost")
        bed.plug_all()
        shift.settled(bed)
    nvme.end()
    shift.forget(bed)


@test("kernel_failover", "nvme: the module in one node only", MAIN, BARE)
def alone(bed):
    """Without a peer that has it, QPs are unprotected, and all is as without it."""
    host = bed.nodes[0]
    shift.load(host, f"{shift.MODULE} kernel_users=nvme")
    shift.pair(host)
    nvme = Nvme(bed)
    nvme.serve()
    nvme.connect()
    nvme.traffic()
    rows = shift.qps(host)
    check(len(rows) == QPS and all(row["state"] == "unprotected" for row in rows), f"{rows}")
    nvme.disconnect()
    nvme.end()
    shift.unpair(host)
    shift.unload(host)
