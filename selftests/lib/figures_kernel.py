# SPDX-License-Identifier: GPL-2.0
"""Measurements for scripts/bench of users in the kernel."""

import json
import re
import time

import shift
from figures import NS_PER_INSTRUCTION
from testbed import PREFIX, check
from ulp import Iser, Nfs, Nvme, Rds, gone
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


def nvme_run(way, count, bed):
    """fio reads or writes 4 KiB at random, so many times: its result, and seconds of its node.

    What the node does with nothing to do, for timers and heartbeats, does not count.
    """
    nvme = Nvme(bed)
    nvme.serve()
    nvme.connect()
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
FAULTS = ("own cable", "other cable", "silence")


def away(bed, what):
    """A fault of the first rail, for a while."""
    node = bed.nodes[what == "other cable"]
    if what == "silence":
        bed.drop(node, 0, direction="in")
        bed.drop(node, 0, direction="out")
    else:
        node.link(0, False)
    time.sleep(OUT)
    bed.plug_all()


def stall(kind, what, bed, _env=None):
    """Seconds of the longest request, or pause, with a fault that lasts a while."""
    user = kind(bed)
    user.serve()
    user.connect()
    work = STALLS.get(kind, Fio)(user)
    work.more(work.WARM)
    away(bed, what)
    work.more(3, timeout=300)
    longest = work.finish()
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
    # the first one leaves something for the next ones
    user.connect()
    user.disconnect()
    protecting = shift.loaded(user.host)
    if protecting:
        gone(bed)
    if kind is Rds:
        user.serve()    # its connections go with its module only
    before = taken(user.host)
    user.connect()
    if protecting:
        shift.protected(user.host, kind.QPS)
    kib = (taken(user.host) - before) / kind.QPS
    user.end()
    return kib
