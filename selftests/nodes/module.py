# SPDX-License-Identifier: GPL-2.0
"""The module itself: load, unload, /dev/shift, memory, control verbs."""

import re
from collections import defaultdict

import shift
from registry import BARE, FULL, LOADED, MAIN, SHIFT, STOCK, test
from testbed import PATCHED, PREFIX, check, wait_for
from traffic import PERFTEST_PORT, Verify, listening, perftest

TRACES = ("test -e /dev/shift", "test -d /sys/module/rdma_shift",
          "test -d /sys/class/misc/shift", "grep -q rdma_shift /proc/modules",
          "grep -q 'rdma_shift\\]' /proc/kallsyms",
          "ls /sys/kernel/tracing/events | grep -q shift",
          "ls -d /sys/class/infiniband/rxe0/shift* 2>/dev/null | grep -q .",
          "ls /sys/kernel/debug | grep -q shift")


def no_trace(node):
    """Nothing of the module is visible any more."""
    for command in TRACES:
        check(node.run(command).status != 0, f"left behind: {command}")
    result = shift.ctl(node, "pair", "show")
    check(result.status == 1 and "not loaded" in result.err, result.text)


def works(bed):
    """Stock perftest runs, both ends with the distribution's libraries."""
    client, server = bed.nodes[:2]
    serving, running = perftest(client, server, "ib_write_bw", "-s", 4096,
                                "-n", 200, env={})
    running.expect(0)
    serving.expect(0)


@test("module", "insmod and rmmod, again and again, with and without a pair", STOCK,
      BARE)
def cycles(bed):
    """Nothing is left behind; verbs work as before."""
    node = bed.nodes[0]
    for with_pair in (False, True, True, False, True):
        shift.load(node)
        if with_pair:
            shift.pair(node)
        shift.must(node, "-j", "stat", "show")
        for row in shift.show(node, "pair"):
            shift.must(node, "pair", "del", row["dev"])
        shift.unload(node)
    no_trace(node)
    works(bed)


@test("module", "rmmod while traffic of older objects goes on", MAIN, BARE)
def under_traffic(bed):
    """Objects from before the module are left alone, from load to unload."""
    client, server = bed.nodes[:2]
    slow = bed.kernel == "debug"    # traffic leaves little for what loads the module
    verify = Verify(client, server, "--size", 4096, "--depth", 8, "--pace", 20 if slow else 3,
                    "--progress", 64, env={})
    verify.go()
    for _ in range(1 if slow else 3):
        shift.setup(bed)
        verify.more(1)
        shift.forget(bed)
    verify.more(1)
    verify.finish()
    for node in bed.nodes:
        no_trace(node)


@test("module", "rmmod after protected traffic leaves no trace", MAIN)
def after_protection(bed):
    """Mirrors, backup QPs and the session go; the operations are the driver's."""
    client, server = bed.nodes[:2]
    counters = shift.Counters(bed)
    verify = Verify(client, server, "--progress", 200, qps=2)
    for node in bed.nodes:
        shift.protected(node, 2)
    verify.go()
    verify.more(2)
    verify.finish()
    counters.moved("mirror_mr")
    counters.moved("paired", 2)
    shift.forget(bed)
    for node in bed.nodes:
        no_trace(node)
    works(bed)
    shift.setup(bed)


@test("module", "a removed device: rdma link delete and add", state=LOADED)
def device_removed(bed):
    """Pairs of a device that is gone cannot be used; the device comes back."""
    node = bed.nodes[0]
    shift.must(node, "pair", "add", "rxe0", "rxe1")
    node.must("rdma link delete rxe1")
    node.must("rdma link add rxe1 type rxe netdev rail1")
    node.must("rdma link delete rxe0")
    node.must("rdma link add rxe0 type rxe netdev rail0")
    for row in shift.show(node, "pair"):
        shift.ctl(node, "pair", "del", row["dev"])
    shift.must(node, "pair", "add", "rxe0", "rxe1")
    shift.must(node, "pair", "del", "rxe0")


@test("abi", "everything a hostile process may do to /dev/shift", MAIN)
def hostile(bed):
    """Bad descriptors, handles, rings, words, ids, children, races, noise."""
    node = bed.nodes[0]
    rounds = 300 if bed.kernel == "debug" else 1500
    node.must("chmod 666 /dev/shift")
    for user in ("root", "lab"):
        result = node.run(["abi_abuse", "--paired", "rxe0", str(rounds)],
                          timeout=300, user=user)
        bad = "\n".join(line for line in result.text.splitlines()
                        if not line.startswith("good"))
        check(result.status == 0, f"as {user}: status {result.status}:\n{bad}")
    wait_for("no QP left", lambda: not shift.qps(node))


@test("abi", "a registration outlives its objects, and the backup device", MAIN)
def outlives(bed):
    """Nothing is left on a device that goes, whoever holds what was registered."""
    node = bed.nodes[0]
    process = node.start(["abi_abuse", "--outlive", "rxe0"])
    try:
        process.wait_line("^closed$")
        node.must("rdma link delete rxe1")
        process.send("")
        process.expect(0)
    finally:
        bed.stop_processes()
        shift.bring_back(node)


@test("abi", "without a pair", state=LOADED)
def hostile_unpaired(bed):
    """The same where nothing may be registered at all."""
    node = bed.nodes[0]
    result = node.run(["abi_abuse", "--unpaired", "rxe0", "300"], timeout=200)
    bad = "\n".join(line for line in result.text.splitlines()
                    if not line.startswith("good"))
    check(result.status == 0, f"status {result.status}:\n{bad}")


@test("abi", "hostile process killed in the middle")
def hostile_killed(bed):
    """SIGKILL at any moment; the kernel cleans up."""
    node = bed.nodes[0]
    for lines in (5, 40, 90, 120):
        process = node.start(["abi_abuse", "--paired", "rxe0", "20000"])
        wait_for("it is busy", lambda process=process, lines=lines:
                 len(process.lines) >= lines or process.status is not None)
        # one of its children may end by itself at this moment, of which killall complains
        node.run("killall -9 abi_abuse")
        process.expect(137, 60)
    wait_for("no QP left", lambda: not shift.qps(node))


def edge(node, env):
    """What memlock_edge finds as an ordinary user."""
    return node.must(["memlock_edge", "rxe0", "64", "8"], user="lab", env=env)


@test("memory", "an application at its memlock limit", MAIN)
def memlock(bed):
    """As many registrations fit with mirrors as without."""
    node = bed.nodes[0]
    counters = shift.Counters(bed)
    mirrored = edge(node, PATCHED)
    check(counters.delta("mirror_mr")[0] > 0, "nothing was mirrored")
    shift.forget(bed)
    plain = edge(node, PATCHED)
    shift.setup(bed)
    check(mirrored == plain, f"with the module:\n{mirrored}without:\n{plain}")
    check(re.search(r"registered [1-9]", plain), plain)


def short_of_memory(node):
    """What alloc_edge finds: call -> (allocations, calls that failed)."""
    node.must("cd /sys/kernel/debug && for each in fail*/verbose; do "
              "echo 0 > $each; done; echo N > failslab/ignore-gfp-wait")
    found = defaultdict(list)
    # What the slab caches hold, and whether a route is cached, makes a difference of some from run
    # to run, in either direction: the run in the middle counts.
    for _ in range(5):
        text = node.must(["alloc_edge", "rxe0"], env=PATCHED, timeout=600)
        for name, count, failed in (line.split() for line in text.splitlines()):
            found[name].append((int(failed), int(count)))
    return {name: sorted(runs)[2][::-1] for name, runs in found.items()}


@test("memory", "each allocation of a control verb fails once", ("debug",), BARE, SHIFT)
def allocations(bed):
    """No call fails for want of what only its mirror needs."""
    node = bed.nodes[0]
    plain = short_of_memory(node)
    shift.setup(bed)
    counters = shift.Counters(bed)
    mirrored = short_of_memory(node)
    check(counters.delta("mirror_failed")[0] > 0, "no mirror failed")
    verify = Verify(*bed.nodes[:2], "--iters", 20)
    for each in bed.nodes:
        shift.protected(each, 1)
    verify.go()
    verify.end()
    for name, (count, failed) in plain.items():
        ours = mirrored[name][0] - count
        text = f"{name}: with the module {mirrored[name]}, without {plain[name]}"
        check(mirrored[name][1] <= failed + max(ours, 0) // 4 + 1, text)
        check(ours > 4 or name in ("init", "rtr", "rts"), text)


@test("units", "state machine, packets, rings, ledger in the kernel", FULL, BARE)
def units(bed):
    """The same tests as in user space; the module never stays."""
    node = bed.nodes[0]
    result = node.run(["insmod", f"{PREFIX}/shift_unit.ko"], timeout=300)
    text = node.must("dmesg | grep shift_unit: | tail -n 1")
    check("passed," in text and "temporarily unavailable" in result.err,
          f"{result.text}\n{text}")


@test("provider", "against a make-believe kernel", STOCK, BARE)
def provider(bed):
    """What the patched provider asks and obeys, each thing provoked. It is a program's test: the
    debug kernel would find nothing in it."""
    bed.nodes[0].must(["test_rxe_provider", "rxe0"], env=PATCHED, timeout=120)


@test("verbs", "control verbs give the same result with the module", STOCK)
def same_results(bed):
    """ibv_devinfo and the ping-pongs of the distribution, module or not."""
    node = bed.nodes[0]
    with_module = node.must("ibv_devinfo -v", env=PATCHED)
    peer = bed.nodes[1]
    for program in ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong",
                    "ibv_srq_pingpong"):
        for env in (PATCHED, {}):
            words = [program, "-d", "rxe0", "-g", "1", "-n", "100"]
            # its own 16 QPs keep stock rxe in retries for 1 to 9 s, with no module loaded
            if program == "ibv_srq_pingpong":
                words += ["-q", "4"]
            server = peer.start(words, env=env)
            wait_for(f"{program} listens", lambda: listening(peer, PERFTEST_PORT))
            client = node.start([*words, peer.address(2)], env=env)
            client.expect(0, 60)
            server.expect(0, 60)
    shift.forget(bed)
    without = node.must("ibv_devinfo -v", env=PATCHED)
    shift.setup(bed)
    check(with_module == without, "ibv_devinfo differs")


@test("verbs", "hundreds of short applications", MAIN)
def many_applications(bed):
    """Objects come and go; none is left in the module."""
    client, server = bed.nodes[:2]
    counters = shift.Counters(bed)
    for _ in range(3 if bed.kernel == "debug" else 10):
        verify = Verify(client, server, "--iters", 20, qps=8)
        verify.go()
        verify.end()
    counters.still("failed", "illegal", "mirror_failed", "faults")
    for node in bed.nodes:
        wait_for(f"{node.name}: no QP left",
                 lambda node=node: not shift.qps(node))
