# SPDX-License-Identifier: GPL-2.0
"""Users in the kernel: Documentation/internals/kernel-users.md."""

import shift
from registry import BARE, STOCK, test
from testbed import PREFIX, check, each, wait_for
from ulp import Nvme, gone
from ulp_work import Disk

# Requests at least of a round: four jobs write 64 blocks, and read them.
REQUESTS = 4 * 64
ROUNDS = 12
ROUNDS_OF_WAYS = 50
WARM = 3        # rounds, until caches have what they keep
# Of unswappable memory, in KiB: what a round may not leave behind. The record of a QP for data has
# twice as much. Caches and deferred frees take a part of it.
LEFT = 32


def unreclaimable(node):
    """Memory of the kernel that cannot be freed, in KiB."""
    for line in node.read("/proc/meminfo").splitlines():
        if line.startswith("SUnreclaim:"):
            return int(line.split()[1])
    raise AssertionError("no SUnreclaim in /proc/meminfo")


def said(node):
    """How many lines the module has said."""
    return int(node.run("dmesg | grep -c rdma_shift:").out)


def users(node):
    """Whose QPs the module knows, by the names of their modules, with the reasons."""
    return {(row["comm"], row.get("reason")) for row in shift.qps(node)}


def once(user):
    """Write and read at the same time, past the cache, and compare."""
    disk = Disk(user)
    disk.more(1)
    disk.finish()


@test("kernel_users", "each way of polling, chains, registrations, RESET, drain", state=BARE)
def all_ways(bed):
    """A user that does what others seldom do: it notices nothing; lost is what it overfills. It is
    shown completions that no device has, whatever way it polls."""
    node = bed.nodes[0]
    run = f"insmod {PREFIX}/rds_rdma.ko dev=rxe0 rounds={ROUNDS_OF_WAYS}"
    for asked in ("", "kernel_users=rds"):
        shift.setup(bed, f"{shift.MODULE} {asked}")
        result = node.run(f"{run} pushes={int(bool(asked))}", timeout=300)
        # it never stays
        check("temporarily unavailable" in result.err,
              f"{asked}: {result.text}\n{node.run('dmesg | grep rds_rdma:').out}")
        stats = shift.stats(node)
        found = [stats[name] for name in ("kernel_qps", "kernel_lost", "illegal", "failed")]
        # two QPs for each of four ways, one of which posts more than its queue takes; and one more
        check(found == ([9, 4, 0, 0] if asked else [0, 0, 0, 0]), f"{asked}: {stats}")
        # at least a send, a receive and a registration in each round
        check((stats["kernel_posts"] >= 4 * 3 * ROUNDS_OF_WAYS) == bool(asked), f"{asked}: {stats}")
        check(not shift.qps(node), "a QP is left")
        shift.forget(bed)


@test("kernel_users", "nvme: connect, write, read, disconnect, again and again", state=BARE)
def nvme_again(bed):
    """All that is posted is recorded and found completed; nothing is left, and nothing is said."""
    shift.setup(bed, f"{shift.MODULE} kernel_users=nvme")
    nvme = Nvme(bed)
    nvme.serve()
    counters = shift.Counters(bed)
    lines = before = None
    for number in range(WARM + ROUNDS):
        if number == WARM:
            lines, before = each(bed.nodes, said), each(bed.nodes, unreclaimable)
        nvme.connect()
        once(nvme)
        if not number:
            each(bed.nodes, lambda node: shift.protected(node, 2))
            check(users(nvme.host) == {("nvme_rdma", None)}, f"{users(nvme.host)}")
            check(users(nvme.target) == {("nvmet_rdma", None)}, f"{users(nvme.target)}")
            shift.refused(nvme.host, "pair", "del", "rxe0")
        nvme.disconnect()
        gone(bed)
    # a queue for commands and one for data, each time
    counters.moved("kernel_qps", 2 * (WARM + ROUNDS))
    counters.moved("kernel_posts", (WARM + ROUNDS) * REQUESTS)
    counters.still("kernel_lost", "switches", "mirror_failed", "failed", "illegal")
    check(each(bed.nodes, said) == lines, "the module has said something")
    wait_for(f"no more than {LEFT} KiB left of a round", lambda: all(
        now - then < LEFT * ROUNDS
        for now, then in zip(each(bed.nodes, unreclaimable), before)))
    # CQs of the core's pools are still there
    shift.forget(bed)
    nvme.connect()
    once(nvme)
    nvme.end()


@test("kernel_users", "nvme: not asked for, or older than the module", STOCK, BARE)
def nvme_untouched(bed):
    """Its QPs are not tracked, and the module comes and goes while they work."""
    nvme = Nvme(bed)
    nvme.serve()
    for users_of in ("", "kernel_users=nfs,rds", "kernel_users=nvme"):
        if users_of.endswith("nvme"):
            nvme.connect()
        shift.setup(bed, f"{shift.MODULE} {users_of}")
        if not users_of.endswith("nvme"):
            nvme.connect()
        once(nvme)
        counters = each(bed.nodes, shift.stats)
        check(not any(stats["kernel_qps"] or stats["kernel_posts"] for stats in counters),
              f"{users_of}: {counters}")
        shift.forget(bed)
        once(nvme)
        nvme.disconnect()
    nvme.end()
    result = bed.nodes[0].run(f"insmod {shift.MODULE} kernel_users=nvme,smc")
    check(result.status and not shift.loaded(bed.nodes[0]), "a name that is not known is taken")
