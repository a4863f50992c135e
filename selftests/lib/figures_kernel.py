# SPDX-License-Identifier: GPL-2.0
"""Measurements for scripts/bench of users in the kernel."""

import json
import re
import time
from collections import Counter

import shift
from figures import NS_PER_INSTRUCTION, scale_deadlines
from testbed import PREFIX, check, each, wait_for
from ulp import Iser, Nfs, Nvme, NvmeTwo, Rds, gone
from ulp_work import Datagrams, Fio

OUT = 5         # seconds for which a cable is out
IDLE = 10       # seconds in which a node has nothing to do
REQUESTS = 20000


CALLS = "post_recv", "post_send", "poll_cq", "map_mr_sg", "post_reg_mr", "poll_reg_mr"


def kernel_cost(call, bed, _env):
    """Instructions of a call of a user in the kernel."""
    node = bed.nodes[0]
    node.must("dmesg -c >/dev/null")
    # it never stays
    node.run(f"insmod {PREFIX}/rds_rdma.ko dev=rxe0 cost=1000", timeout=300)
    text = node.run("dmesg").out
    found = re.search(rf"rds_rdma: cost of {call} (\d+)", text)
    check(found, f"no cost of {call}:\n{text[-800:]}")
    return float(found.group(1)) / NS_PER_INSTRUCTION


def connect(user, bed):
    """With the module its QPs are protected, and the links are there that a failover needs."""
    user.connect()
    if shift.loaded(user.host):
        each(bed.nodes[:2], lambda node: shift.protected(node, user.QPS))
        shift.wait_session(bed)


def nvme_run(way, count, bed):
    """fio reads or writes 4 KiB at random, so many times: its result, and seconds of its node.

    What the node does with nothing to do, for timers and heartbeats, does not count.
    """
    nvme = Nvme(bed)
    nvme.serve()
    connect(nvme, bed)
    nvme.host.push("/usr/bin/fio")
    # with an event on, the kernel notes each change of a processor's task
    nvme.host.run(f"echo 0 >{shift.STEPS}/events/shift/enable")
    times = [times_of(nvme.host)]
    nvme.host.must(f"sleep {IDLE}", timeout=300)
    times.append(times_of(nvme.host))
    text = nvme.host.must(
        f"fio --name=cost --filename={nvme.DISK} --direct=1 --ioengine=libaio --rw={way} --bs=4k "
        f"--iodepth=32 --size=32m --number_ios={count} --output-format=json", timeout=600)
    times.append(times_of(nvme.host))
    nvme.end()
    (idle, idle_busy), (work, work_busy) = (
        [b - a for a, b in zip(*between)] for between in (times[:2], times[1:]))
    took = work_busy - work * idle_busy / idle
    return json.loads(text[text.index("{"):])["jobs"][0], took


def times_of(node):
    """Seconds since the node was booted, and those for which its processors have worked.

    What they have not done is known to the microsecond, and not only by ticks.
    """
    lines = node.must("cat /proc/uptime /proc/stat").splitlines()
    up = float(lines[0].split()[0])
    fields = lines[1].split()
    processors = sum(re.match(r"cpu\d", line) is not None for line in lines)
    return up, processors * up - (int(fields[4]) + int(fields[5])) / 100


def nvme_rate(way, bed, _env):
    """Requests a second."""
    return nvme_run(way, 3000, bed)[0]["read" if way == "randread" else "write"]["iops"]


def nvme_cost(way, bed, _env):
    """Instructions that the host's node executes for a request."""
    return nvme_run(way, REQUESTS, bed)[1] * 1e9 / NS_PER_INSTRUCTION / REQUESTS


STALLS = {Nvme: Fio, Nfs: Fio, Rds: Datagrams}
FAULTS = ("no fault", "own cable", "other cable", "silence")


def away(bed, what):
    """A fault of the first rail, for a while."""
    node = bed.nodes[what == "other cable"]
    if what == "silence":
        bed.drop(node, 0, direction="in")
        bed.drop(node, 0, direction="out")
    elif what != "no fault":
        node.link(0, False)
    time.sleep(OUT)
    bed.plug_all()


def stall(kind, what, bed, _env=None):
    """Seconds of the longest request, or pause, with a fault that lasts a while."""
    user = kind(bed)
    user.serve()
    connect(user, bed)
    work = STALLS.get(kind, Fio)(user)
    counters = shift.Counters(bed) if shift.loaded(user.host) else None
    # Silence is found by a deadline, which is that of hardware here, as is that of others. Timers
    # that were set before have run out when the work is warm.
    if counters and what == "silence":
        scale_deadlines(bed, 1)
    work.more(work.WARM)
    time.sleep(OUT)
    away(bed, what)
    work.more(3, timeout=300)
    longest = work.finish()
    if counters:
        scale_deadlines(bed, shift.DEADLINE_SCALE)
        if what != "no fault":
            counters.moved("switches", kind.QPS)
        counters.still("failed", "kernel_lost")
    user.end()
    return longest


USERS = Nvme, Nfs, Rds, Iser


def taken(node):
    """Memory of the kernel that cannot be freed, in KiB: of slabs, and mapped by vmalloc()."""
    lines = [line.split() for line in node.read("/proc/meminfo").splitlines()]
    return sum(int(line[1]) for line in lines if line[0] in ("SUnreclaim:", "VmallocUsed:"))


def memory(kind, bed, _env):
    """KiB that a connection takes at the host, for each of its QPs."""
    user = kind(bed)
    user.serve()
    protecting = shift.loaded(user.host)
    # the first one leaves something for the next ones; those of RDS go with its module only
    if kind is not Rds:
        user.connect()
        user.disconnect()
        if protecting:
            gone(bed)
    before = taken(user.host)
    connect(user, bed)
    kib = (taken(user.host) - before) / kind.QPS
    user.end()
    return kib


def pieces(node):
    """What the module has in pieces of more than a page, by KiB: a record or a ledger, side rings.

    Who has asked for a piece is its function that has called shift_kernel_zalloc().
    """
    found = {True: Counter(), False: Counter()}
    for line in node.read("/proc/vmallocinfo").splitlines():
        seen = re.search(r" (\w+)\S* \[rdma_shift\] pages=(\d+)", line)
        if seen:
            found["_cq_" not in seen.group(1)][4 * int(seen.group(2))] += 1
    return found[True], found[False]


def rings(kind, bed):
    """The pieces of a connection: of the host, and of the other node."""
    user = kind(bed)
    user.serve()
    connect(user, bed)
    found = each(bed.nodes[:2], pieces)
    user.end()
    gone(bed)
    wait_for("no record, ledger or side ring left", lambda: not any(
        each(bed.nodes[:2], lambda node: sum(pieces(node), Counter()))))
    return found


def all_rings(bed):
    """Name, records and ledgers, side rings. A data queue of nvme is what a second one adds."""
    of_kinds = {kind: rings(kind, bed) for kind in (*USERS, NvmeTwo)}
    two = of_kinds.pop(NvmeTwo)
    for kind, found in of_kinds.items():
        yield f"{kind.NAME}: host", *found[0]
        yield f"{kind.NAME}: other node", *found[1]
    for name, more, less in zip(("host", "other node"), two, of_kinds[Nvme]):
        yield f"nvme, a data queue: {name}", *(a - b for a, b in zip(more, less))
