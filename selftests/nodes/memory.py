# SPDX-License-Identifier: GPL-2.0
"""Memory that is not mirrored by its address: GPU memory (dma-buf), and what ibv_rereg_mr changes;
and who is charged for what the kernel keeps.

But for the last, on the software mlx5 device, whose module brings an exporter of dma-bufs.
"""

import re
from functools import partial

import shift
from ends import Ends
from registry import MAIN, STOCK, add
from testbed import check, each, wait_for
from traffic import Verify
from nodes.failover import on_backup, pull
from nodes.mlx5 import devices

KIB = 16                    # of data at each end
MANY = 16                   # QPs of one application
CGROUPS = "/sys/fs/cgroup"
NEW = ("6.12", "debug")     # stock 6.1 has no udmabuf


def begun(bed):
    """Both ends of one protected QP."""
    ends = Ends(bed, "dmabuf_edge")
    each(bed.nodes[:2], lambda node: shift.protected(node, 1))
    return ends


def reason(node):
    """Why its QP is not protected, or None."""
    row, = shift.qps(node)
    return row.get("reason") if row["state"] != "default" else None


def pinned(end):
    """KiB that are charged to an end as pinned memory."""
    seen = len(end.lines)
    end.send("pinned")
    return int(Ends.said(end, seen))


def returned(node):
    """Ask for the way home; whether its QP is there, and says why it cannot leave again."""
    row, = shift.qps(node)
    if row["state"] == "fallback":
        shift.ctl(node, "pair", "undrain", node.cluster.nics.default)
    return row["state"] == "unprotected" and row.get("reason") == "dmabuf"


def moved(bed, ends, side):
    """The cable, and data on the backup."""
    # a QP may be paired anew when memory comes or goes
    each(bed.nodes[:2], lambda node: shift.protected(node, 1))
    pull(bed, side)
    ends.both("round")
    on_backup(bed, 1)
    ends.both("round")


def buffers(order, side, bed):
    """All data is in dma-bufs, which have mirrors; they move on both paths, where they can."""
    with devices(bed):
        ends = begun(bed)
        counters = shift.Counters(bed)
        plain = pinned(ends.client)
        ends.both(order)
        counters.moved("mirror_mr")
        check(pinned(ends.client) == plain - KIB, f"{pinned(ends.client)} KiB are charged, "
              f"{plain} with {KIB} of plain memory")
        movable = order != "udmabuf"
        ends.both("round")
        for _ in range(2 * movable):
            ends.both("move")
            ends.both("round")
        moved(bed, ends, side)
        for _ in range(2 * movable):
            ends.both("move")
            ends.both("round")
        ends.both(order)
        ends.both("round")
        counters.moved("switches")
        counters.still("failed", "mirror_failed", "illegal", "msg_bad")
        ends.close()


def refused(bed):
    """A buffer that one device only may have: a reason of its own, for as long as it is there."""
    with devices(bed):
        ends = begun(bed)
        counters = shift.Counters(bed)
        client, server = bed.nodes[:2]
        ends.do(ends.client, "extra 1")
        shift.wait_reason(client, "dmabuf")
        wait_for("the server's QP is not protected", lambda: reason(server), 60, .2)
        check(counters.delta("mirror_failed")[0] == 1, counters.delta("mirror_failed"))
        ends.both("round")
        ends.do(ends.client, "drop")
        each(bed.nodes[:2], lambda node: shift.protected(node, 1))
        moved(bed, ends, "local")
        # on the backup it is no reason to stay there
        ends.do(ends.client, "extra 1")
        bed.plug_all()
        shift.wait_session(bed, 2)
        wait_for("home, and not protected", partial(returned, client), 150, .5)
        ends.both("round")
        ends.do(ends.client, "drop")
        each(bed.nodes[:2], lambda node: shift.protected(node, 1, "returned"))
        ends.close()


def refused_before(bed):
    """Such a buffer is there before the QP is connected: the QP is paired when it goes."""
    with devices(bed):
        ends = Ends(bed, "dmabuf_edge", EXTRA_FIRST="1")
        for node in bed.nodes[:2]:
            shift.wait_reason(node, "dmabuf")
        ends.both("round")
        ends.both("drop")
        each(bed.nodes[:2], lambda node: shift.protected(node, 1))
        moved(bed, ends, "local")
        ends.close()


def changed(side, bed):
    """Other memory and other rights by ibv_rereg_mr, on both paths."""
    with devices(bed):
        ends = begun(bed)
        counters = shift.Counters(bed)
        orders = ["change", "round"]
        if bed.kernel != "6.1":
            orders += ["weak", "rights", "round"]   # rxe of 6.1 cannot do that
        for order in orders:
            ends.both(order)
        moved(bed, ends, side)
        for order in orders:
            ends.both(order)
        counters.still("failed", "mirror_failed", "illegal", "msg_bad")
        ends.close()


def kernel_memory(bed, env):
    """KiB that the kernel has for an application with many QPs, as its memory cgroup says."""
    for node in bed.nodes[:2]:
        node.must(f"mkdir -p {CGROUPS}; grep -q ' {CGROUPS} ' /proc/mounts || "
                  f"mount -t cgroup2 none {CGROUPS}")
        node.must(f"cd {CGROUPS} && echo +memory >cgroup.subtree_control && mkdir -p application")
    verify = Verify(*bed.nodes[:2], "--depth", 64, "--size", 64, "--progress", 20, "--pace", 3,
                    qps=MANY, env=env, before=[
                        "sh", "-c", f"echo $$ >{CGROUPS}/application/cgroup.procs && "
                        "exec \"$@\"", "sh"])
    if env:
        each(bed.nodes[:2], lambda node: shift.protected(node, MANY))
    found = [int(re.search(r"^kernel (\d+)", node.read(f"{CGROUPS}/application/memory.stat"),
                           re.M)[1]) >> 10 for node in bed.nodes[:2]]
    verify.go()
    verify.more(1)
    verify.finish()
    wait_for("it has no processes", lambda: not any(
        node.read(f"{CGROUPS}/application/cgroup.procs") for node in bed.nodes[:2]))
    each(bed.nodes[:2], lambda node: node.must(f"rmdir {CGROUPS}/application"))
    return found


def accounted(bed):
    """Copies of rings, ledgers and side rings count for the application's memory cgroup."""
    # the ledger of one has 128 entries, and as many copies of requests of 256 bytes or more
    least = MANY * 32
    for bare, protected in zip(kernel_memory(bed, {}), kernel_memory(bed, bed.nics.env)):
        check(protected - bare >= least, f"{protected} KiB for {MANY} protected QPs, {bare} for "
              f"as many others: {protected - bare} more, not {least}")


add("memory", "what the module has for a process is charged to its cgroup", accounted, STOCK)
add("memory", "GPU memory is mirrored, the client's cable", partial(buffers, "reg 0", "local"), MAIN)
add("memory", "GPU memory is mirrored, the server's cable", partial(buffers, "reg 0", "remote"))
add("memory", "udmabuf", partial(buffers, "udmabuf", "local"), NEW)
add("memory", "GPU memory that cannot be mirrored", refused, MAIN)
add("memory", "GPU memory that cannot be mirrored, before the connection", refused_before)
add("memory", "registrations that change, the client's cable", partial(changed, "local"), MAIN)
add("memory", "registrations that change, the server's cable", partial(changed, "remote"))
