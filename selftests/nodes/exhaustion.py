# SPDX-License-Identifier: GPL-2.0
"""A process that makes as much as it can: what the kernel has for it counts for its limits.

Objects of an rdma cgroup are counted by the suite "charges".
"""

import re
from contextlib import contextmanager

import shift
from registry import test
from testbed import PATCHED, Failure, check, each, wait_for
from traffic import Verify

CGROUPS = "/sys/fs/cgroup"
GROUP = f"{CGROUPS}/bounded"
INSIDE = ["sh", "-c", f"echo $$ >{GROUP}/cgroup.procs && exec \"$@\"", "sh"]
MANY = 1000                 # objects_edge makes so many QPs, as many MRs, a PD and a CQ
DEPTH = 64
# KiB for one QP and one MR that no cgroup pays for, beyond what is so without the module: the
# driver's mirror of the MR, and tables.
UNPAID = 12
PROXIES = 128               # queue pairs for which work items make proxy QPs
PROXY = 1                   # KiB for each of these, at least
SPARE = 32                  # KiB that are left for them


@contextmanager
def group(node):
    """A memory cgroup, whose processes are gone in the end."""
    node.must(f"mkdir -p {CGROUPS}; grep -q ' {CGROUPS} ' /proc/mounts || "
              f"mount -t cgroup2 none {CGROUPS}")
    node.must(f"cd {CGROUPS} && echo +memory >cgroup.subtree_control && mkdir -p {GROUP}")
    try:
        yield
    finally:
        node.cluster.stop_processes()
        wait_for("it has no processes", lambda: not node.read(f"{GROUP}/cgroup.procs").strip())
        node.must(f"rmdir {GROUP}")


def figure(node, path, name):
    """A figure of a file of them."""
    return int(re.search(rf"^{name}:? +(\d+)", node.read(path), re.M)[1])


def free(node):
    """KiB of the node that nobody has."""
    return figure(node, "/proc/meminfo", "MemFree")


def paid(node):
    """KiB that count for the cgroup."""
    return int(node.read(f"{GROUP}/memory.current")) >> 10


def kernel(node):
    """KiB of these that the kernel has for its processes."""
    return figure(node, f"{GROUP}/memory.stat", "kernel") >> 10


def fill(node, env):
    """objects_edge, when it has made all."""
    edge = node.start([*INSIDE, "objects_edge", "rxe0", str(DEPTH)], env=env)
    made = int(edge.wait_line(r"^made (\d+)$", 240)[1])
    check(made == 2 * MANY + 2, f"{made} objects")
    return edge


def end(edge):
    """It destroys all that it has made."""
    edge.send("")
    edge.wait_line("^closed$", 240)
    edge.expect(0)


def cost(node, env):
    """KiB for all of it that the cgroup pays for: of the kernel, at most; and that nobody does."""
    with group(node):
        before = free(node)
        edge = fill(node, env)
        found = kernel(node), int(node.read(f"{GROUP}/memory.peak")) >> 10, \
            before - free(node) - paid(node)
        end(edge)
    wait_for("nothing is left", lambda: not shift.tracked(node))
    return found


def bounded(node, most):
    """With a limit, in KiB: whether it could make all; if not it has ended, and nothing is left."""
    with group(node):
        node.must(f"echo {most << 10} >{GROUP}/memory.max && echo 0 >{GROUP}/memory.swap.max || :")
        try:
            end(fill(node, PATCHED))
            return True
        except Failure:
            check(figure(node, f"{GROUP}/memory.events", "max"), "its limit was not reached")
            node.cluster.stop_processes()
            return False
        finally:
            wait_for("nothing is left", lambda: not shift.tracked(node))


@test("exhaustion", "a thousand registrations within a memory cgroup")
def registrations(bed):
    """What the module has for them is paid for, and a limit of the cgroup holds."""
    node = bed.nodes[0]
    cost(node, PATCHED)         # what stays in caches is there now
    (plain, _, nobody), (with_module, peak, ours) = cost(node, {}), cost(node, PATCHED)
    # a ledger has as many entries as the ring, and as many copies of requests of 256 bytes or more
    least = MANY * DEPTH // 4
    check(with_module - plain >= least, f"{with_module} KiB of the kernel are paid for, {plain} "
          f"without registrations: {with_module - plain} more, not {least}")
    check(ours - nobody <= MANY * UNPAID, f"{ours} KiB are paid for by nobody, {nobody} "
          f"without registrations")
    check(bounded(node, peak + peak // 20), "not all was made with room for it")
    check(not bounded(node, peak - (with_module - plain) // 2), "a limit of memory did not hold")


def waiting(bed, qps):
    """Connected QPs of processes in cgroups, for which nothing was made as no peer is known yet."""
    for node, other in (bed.nodes[:2], bed.nodes[1::-1]):
        shift.must(node, "peer", "del", other.name)
    verify = Verify(*bed.nodes[:2], "--size", 64, "--depth", 4, "--progress", 20, "--pace", 3,
                    qps=qps, env=PATCHED, before=INSIDE)
    each(bed.nodes[:2], lambda node: shift.wait_reason(node, "no-peer", qps))
    return verify


def unprotected(node, reason):
    """How many QPs are unprotected for that reason."""
    return [row.get("reason") for row in shift.qps(node)].count(reason)


def go_on(bed, verify, qps):
    """All of them are protected in the end, and their traffic goes well."""
    each(bed.nodes[:2], lambda node: shift.protected(node, qps))
    verify.go()
    verify.more(1)
    verify.finish()


@test("exhaustion", "what work items make counts for the process that has the queue pairs")
def work_items(bed):
    """Proxy QPs are made long after the verbs: paid for by their cgroup, and not beyond its limit."""
    node = bed.nodes[0]
    counters = shift.Counters(bed)
    with group(node), group(bed.nodes[1]):
        verify = waiting(bed, PROXIES)
        before = kernel(node)
        shift.introduce(bed)
        wait_for("proxy QPs are paid for", lambda: kernel(node) - before >= PROXIES * PROXY, 60, 1)
        go_on(bed, verify, PROXIES)

        verify = waiting(bed, PROXIES)
        # pages of files can be dropped; the kernel sums these figures up every two seconds
        most = figure(node, f"{GROUP}/memory.stat", "anon") + \
            figure(node, f"{GROUP}/memory.stat", "kernel") + (SPARE << 10)
        node.must(f"echo {most} >{GROUP}/memory.max")
        killed = figure(node, f"{GROUP}/memory.events", "oom_kill")
        shift.introduce(bed)
        wait_for("proxy QPs are refused",
                 lambda: unprotected(node, "mirror-qp") > PROXIES // 2, 60, .5)
        check(int(node.read(f"{GROUP}/memory.current")) <= most, "the limit did not hold")
        check(figure(node, f"{GROUP}/memory.events", "oom_kill") == killed, "it was killed")
        node.must(f"echo max >{GROUP}/memory.max")
        go_on(bed, verify, PROXIES)
    counters.still("failed", "illegal", "msg_bad")


@test("exhaustion", "an ordinary user locks what his limit says, and not a page more")
def locked(bed):
    """A process may lock as many pages for its memory as its limit says, page by page."""
    node = bed.nodes[0]
    counters = shift.Counters(bed)
    for pages, count in (1, 40), (7, 9):
        text = node.must(["memlock_edge", "rxe0", str(pages), str(count)], user="lab", env=PATCHED)
        check(text.split("\n")[:-1] == [f"registered {count}"] + 3 * [f"refilled {count}"],
              f"{count} times {pages} pages: {text}")
    check(counters.delta("mirror_mr")[0], "nothing was mirrored")
