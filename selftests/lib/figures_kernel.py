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


def kernel_cost(call, bed, _env):
    """Instructions of a call of a user in the kernel: post_recv, post_send or poll_cq."""
    node = bed.nodes[0]
    node.must("dmesg -c >/dev/null")
    # it never stays
    node.run(f"insmod {PREFIX}/rds_rdma.ko dev=rxe0 cost=1000", timeout=300)
    text = node.run("dmesg").out
    found = re.search(rf"rds_rdma: cost .*{call} (\d+)", text)
    check(found, f"no cost of {call}:\n{text[-800:]}")
    return float(found.group(1)) / NS_PER_INSTRUCTION


def nvme_run(way, count, bed):
    """fio reads or writes 4 KiB at random, so many times: its result, and seconds of its node."""
    nvme = Nvme(bed)
    nvme.serve()
    nvme.connect()
    nvme.host.push("/usr/bin/fio")
    before = busy(nvme.host)
    text = nvme.host.must(
        f"fio --name=cost --filename={nvme.DISK} --direct=1 --ioengine=libaio --rw={way} --bs=4k "
        f"--iodepth=32 --size=32m --number_ios={count} --output-format=json", timeout=600)
    took = busy(nvme.host) - before
    nvme.end()
    return json.loads(text[text.index("{"):])["jobs"][0], took


def busy(node):
    """Seconds for which the node's processors have worked."""
    fields = [int(field) for field in node.read("/proc/stat").split("\n", 1)[0].split()[1:]]
    return (sum(fields) - fields[3] - fields[4]) / 100


def nvme_rate(way, bed, _env):
    """Requests a second."""
    return nvme_run(way, 3000, bed)[0]["read" if way == "randread" else "write"]["iops"]


def nvme_cost(way, bed, _env):
    """Instructions that the host's node executes for a request."""
    return nvme_run(way, 3000, bed)[1] * 1e9 / NS_PER_INSTRUCTION / 3000


STALLS = {Nvme: Fio, Nfs: Fio, Rds: Datagrams}


def stall(kind, side, bed, _env):
    """Seconds of the longest request, or pause, while a cable is out for a while."""
    user = kind(bed)
    user.serve()
    user.connect()
    work = STALLS[kind](user)
    work.more(work.WARM)
    node = bed.nodes[side]
    node.link(0, False)
    time.sleep(OUT)
    node.link(0, True)
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
    before = taken(user.host)
    user.connect()
    if protecting:
        shift.protected(user.host, kind.QPS)
    kib = (taken(user.host) - before) / kind.QPS
    user.end()
    return kib
