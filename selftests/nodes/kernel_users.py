# SPDX-License-Identifier: GPL-2.0
"""Users in the kernel: Documentation/internals/kernel-users.md."""

from functools import partial

import kmsg
import shift
from figures_kernel import taken
from registry import BARE, DEBUG, MAIN, STOCK, add, test
from testbed import PREFIX, check, each, wait_for
from ulp import Iser, Nfs, Nvme, NvmeSrq, Rds, gone
from ulp_work import Datagrams, Disk, Tree

REQUESTS = 100  # of a round, at least
ROUNDS_OF_WAYS = 50
WARM = 3        # rounds, until caches have what they keep
# KiB of memory of the kernel's own: what rounds may not leave behind, each and all together. Caches
# and deferred frees take that; the smallest record of a QP has 20.
LEFT, NOISE = 4, 256


def said(node):
    """How many lines the module has said."""
    return int(node.run("dmesg | grep -c rdma_shift:").out)


def objects(node):
    """How many there are of each kind on each device, whoever has made them: mirrors, too."""
    lines = [line.split() for line in node.must("rdma resource show").splitlines()]
    return {(words[1], kind): int(count)
            for words in lines for kind, count in zip(words[2::2], words[3::2])}


def users(node):
    """Whose QPs the module knows, by the names of their modules, with the reasons."""
    return {(row["comm"], row.get("reason")) for row in shift.qps(node)}


def once(user):
    """Write and read at the same time, past the cache, and compare."""
    work = {Nfs: Tree, Rds: Datagrams}.get(type(user), Disk)(user)
    work.more(1)
    work.finish()


@test("kernel_users", "each way of polling, chains, registrations, RESET, drain", state=BARE)
def all_ways(bed):
    """A user that does what others seldom do: it notices nothing; lost is what it overfills. It is
    shown completions that no device has, whatever way it polls."""
    node = bed.nodes[0]
    run = f"insmod {PREFIX}/rds_rdma.ko dev=rxe0 rounds={ROUNDS_OF_WAYS}"
    for asked in False, True:
        shift.setup(bed, f"{shift.MODULE} kernel_users={'rds' if asked else 'none'}")
        result = node.run(f"{run} pushes={int(asked)}", timeout=300)
        # it never stays
        check("temporarily unavailable" in result.err,
              f"{asked}: {result.text}\n{node.run('dmesg | grep rds_rdma:').out}")
        stats = shift.stats(node)
        found = [stats[name] for name in ("kernel_qps", "kernel_lost", "illegal", "failed")]
        # two QPs for each of four ways, one of which posts more than its queue takes; and one more
        check(found == ([9, 4, 0, 0] if asked else [0, 0, 0, 0]), f"{asked}: {stats}")
        # at least a send, a receive and a registration in each round
        check((stats["kernel_posts"] >= 4 * 3 * ROUNDS_OF_WAYS) == asked, f"{asked}: {stats}")
        check(not shift.qps(node), "a QP is left")
        shift.forget(bed)


def again(kind, rounds, bed):
    """All that is posted is recorded and found completed; nothing is left, and nothing is said."""
    shift.setup(bed)
    user = kind(bed)
    user.serve()
    counters = shift.Counters(bed)
    lines = before = made = None
    for number in range(WARM + rounds):
        if number == WARM:
            lines, before = each(bed.nodes, said), each(bed.nodes, taken)
            made = each(bed.nodes, objects)
        user.connect()
        each(bed.nodes[:2], lambda node: shift.protected(node, kind.QPS))
        once(user)
        if not number:
            for node, owner in zip(bed.nodes, kind.OWNERS):
                check(users(node) == {(owner, None)}, f"{node.name}: {users(node)}")
                # nor are the module's own, as those of links
                check(not shift.unlisted(node, "rxe0"), f"{shift.show(node, 'qp')}")
            shift.refused(user.host, "pair", "del", "rxe0")
        user.disconnect()
        gone(bed)
    counters.moved("kernel_qps", kind.QPS * (WARM + rounds))
    counters.moved("kernel_posts", (WARM + rounds) * REQUESTS)
    counters.still("kernel_lost", "switches", "mirror_failed", "failed", "illegal")
    check(each(bed.nodes, said) == lines, "the module has said something")
    wait_for("no object left of a round", lambda: all(
        count <= then[what] for now, then in zip(each(bed.nodes, objects), made)
        for what, count in now.items()))
    # there what was freed is kept for a while, and kmemleak has a word
    wait_for(f"no more than {LEFT} KiB left of a round", lambda: bed.kernel == DEBUG or all(
        now - then < LEFT * rounds + NOISE
        for now, then in zip(each(bed.nodes, taken), before)))
    for node, leaks in zip(bed.nodes, each(bed.nodes, kmsg.kmemleak)):
        check(not leaks, f"{node.name}: {leaks}")
    # CQs of the core's pools are still there
    shift.forget(bed)
    user.connect()
    once(user)
    user.end()


for _kind in Nvme, Nfs, Iser, Rds:
    # lockdep has a word about how RDS connects: see kernel_failover. With the module or without, its
    # receive buffers stay when it is unloaded, 4 MiB for a connection: two hundred fill a node
    for _rounds, _kernels in ((12, STOCK), (100, STOCK)) if _kind is Rds else (
            (12, MAIN), (200, STOCK)):
        add("kernel_users", f"{_kind.NAME}: connect, write, read, disconnect, {_rounds} times",
            partial(again, _kind, _rounds), _kernels, BARE)


@test("kernel_users", "an MR is registered twice", kernels=("6.12",), state=BARE)
def registers_twice(bed):
    """rxe flushes all and tells no error, as if a path failed: the QP moves, but not for ever."""
    node = bed.nodes[0]
    shift.setup(bed)
    counters = shift.Counters(bed)
    result = node.run(f"insmod {PREFIX}/rds_rdma.ko dev=rxe0 mistake=2", timeout=300)
    # it never stays
    check("temporarily unavailable" in result.err,
          f"{result.text}\n{node.run('dmesg | grep rds_rdma:').out}")
    # it is connected to itself
    check(counters.delta("faults")[0] > 1, "it has not moved")
    check(counters.delta("failed")[0] == 1, "it has not failed")
    counters.still("illegal", "kernel_lost")
    shift.forget(bed)


add("kernel_users", f"{NvmeSrq.NAME}: connect, write, read, disconnect, 12 times",
    partial(again, NvmeSrq, 12), state=BARE)


@test("kernel_users", "nvme: not asked for, or older than the module", STOCK, BARE)
def nvme_untouched(bed):
    """Its QPs are not tracked, and the module comes and goes while they work.

    Those that it has seen are shown, and an older one is not.
    """
    nvme = Nvme(bed)
    nvme.serve()
    for allowed in "none", "nfs,rds", "nvme":
        if allowed == "nvme":
            nvme.connect()
        shift.setup(bed, f"{shift.MODULE} kernel_users={allowed}")
        shown = {shift.show(node, "node")["kernel_users"] for node in bed.nodes}
        check(shown == {allowed}, f"{shown} are shown as protected, and not {allowed}")
        if allowed != "nvme":
            nvme.connect()
        once(nvme)
        for node, owner in zip(bed.nodes, nvme.OWNERS):
            want = [owner] * nvme.QPS if allowed != "nvme" else []
            check(shift.unlisted(node, "rxe0") == want, f"{allowed}: {shift.show(node, 'qp')}")
        if allowed != "nvme":
            # it holds no pair; those that a new pair has not seen are not shown
            for node in bed.nodes:
                shift.must(node, "pair", "del", "rxe0")
                check(not shift.show(node, "qp"), f"{allowed}: {shift.show(node, 'qp')}")
                shift.must(node, "pair", "add", "rxe0", "rxe1")
            once(nvme)
            nvme.disconnect()
            nvme.connect()
            for node, owner in zip(bed.nodes, nvme.OWNERS):
                wait_for(f"{allowed}: QPs of the new connection are shown", lambda: shift.unlisted(
                    node, "rxe0") == [owner] * nvme.QPS)
        counters = each(bed.nodes, shift.stats)
        check(not any(stats["kernel_qps"] or stats["kernel_posts"] for stats in counters),
              f"{allowed}: {counters}")
        shift.forget(bed)
        once(nvme)
        nvme.disconnect()
    nvme.end()
    result = bed.nodes[0].run(f"insmod {shift.MODULE} kernel_users=nvme,smc")
    check(result.status and not shift.loaded(bed.nodes[0]), "a name that is not known is taken")
    check("SMC-R" in bed.nodes[0].run("dmesg").out, "nobody says why SMC-R is not protected")


@test("kernel_users", "nvme: connected beside one that is older than the module", STOCK, BARE)
def nvme_beside(bed):
    """They have a PD in common, so the new ones are unprotected until the old ones have gone."""
    nvme = Nvme(bed)
    nvme.serve()
    nvme.connect()
    shift.setup(bed)
    shown = {shift.show(node, "node")["kernel_users"] for node in bed.nodes}
    check(shown == {"nvme,nfs,rds,iser"}, f"{shown} are protected by default")
    nvme.connect("/dev/nvme1n1")
    nvme.verify("/dev/nvme1n1")
    for node, owner in zip(bed.nodes, nvme.OWNERS):
        check(users(node) == {(owner, "old-object")}, f"{node.name}: {users(node)}")
    once(nvme)
    nvme.disconnect()
    gone(bed)
    nvme.connect()
    for node, owner in zip(bed.nodes, nvme.OWNERS):
        shift.protected(node, nvme.QPS)
        check(users(node) == {(owner, None)}, f"{node.name}: {users(node)}")
    once(nvme)
    nvme.end()
    gone(bed)
    shift.forget(bed)


@test("kernel_users", "nfs with 512 requests at a time", state=BARE)
def nfs_many(bed):
    """Its record takes more than 4 MiB, and it is protected."""
    shift.setup(bed)
    nfs = Nfs(bed)
    nfs.serve()
    nfs.host.must("echo 512 >/proc/sys/sunrpc/rdma_slot_table_entries")
    nfs.connect()
    shift.protected(nfs.host, nfs.QPS)
    once(nfs)
    check(users(nfs.host) == {("rpcrdma", None)}, f"{users(nfs.host)}")
    nfs.end()
    shift.forget(bed)
