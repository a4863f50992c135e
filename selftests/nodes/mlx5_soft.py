# SPDX-License-Identifier: GPL-2.0
"""libmlx5, stock and patched, on the software mlx5 device.

The module under test is not loaded here. A test loads mlx5_soft.ko on all nodes
and takes it away again, since a second device per NIC is nobody else's business.
"""

import re
from contextlib import contextmanager
from functools import partial

import shift
from registry import BARE, FULL, MAIN, add, test
from testbed import CONTROL_RAIL, PATCHED, TOP, check, wait_for
from traffic import PERFTEST_PORT, QP_TIMEOUT, Verify, listening, perftest

MODULE = "/root/mlx5_soft.ko"
STOCK = "/opt/stock"
# No other provider is looked for: a file in /etc would stay for other tests.
ONLY_MLX5 = {"IBV_DRIVERS": "mlx5"}
ENVS = {"stock": {"LD_LIBRARY_PATH": f"{STOCK}/lib", **ONLY_MLX5},
        "patched": {**PATCHED, **ONLY_MLX5}}
DEBUGFS = "/sys/kernel/debug/mlx5_soft/mls0"
GID = 1             # the first IPv4 one
# Memory windows are not there.
OPS = ["--ops", "write,write_imm,send,send_imm,read,fadd,cas", "--mix",
       "--guard", "--size", "0-5000", "--qp-timeout", 21]


def module(node, name):
    """One of the modules of selftests/mlx5_soft, for a node's kernel."""
    return shift.stripped(TOP / "build" / f"mlx5_soft-{node.cluster.kernel}" / f"{name}.ko")


def install(node):
    """Put the module and the stock library on a node, once."""
    if MODULE in node.pushed:
        return
    stock = shift.Built(TOP).stock
    node.push(f"{stock}/lib:{STOCK}/lib", f"{module(node, 'mlx5_soft')}:{MODULE}")
    node.pushed.add(MODULE)


@contextmanager
def devices(bed):
    """mls0 on rxe0 of all nodes, while it lasts."""
    for node in bed.nodes:
        install(node)
        node.must(f"insmod {MODULE} on=rxe0")
    try:
        yield bed.nodes[:2]
    finally:
        bed.stop_processes()
        for node in bed.nodes:
            node.run("rmmod mlx5_soft")
    for node in bed.nodes:
        check(node.run("test -e /sys/module/mlx5_soft").status,
              f"{node.name}: mlx5_soft is still loaded")


def stats(node):
    """The device's counters."""
    words = node.read(f"{DEBUGFS}/stats").split()
    return dict(zip(words[::2], map(int, words[1::2])))


def inject(node, fault, value):
    """Ask the device for a fault."""
    node.write(f"{DEBUGFS}/{fault}", f"{value}\n")


def few(bed, count):
    """The debug kernel is slow: less of the same."""
    return max(count // 10, 20) if bed.kernel == "debug" else count


def life(bed):
    """It appears, tells what it is, and goes under an application's hands."""
    with devices(bed) as (node, _):
        for env in ENVS.values():
            text = node.must(["ibv_devinfo", "-v", "-d", "mls0"], env=env)
            check(re.search(r"vendor_part_id:\s+4119", text), text)
            check(re.search(r"GID\[\s*1\]:.*10\.10\.0\.1", text), text)
        words = ["ibv_rc_pingpong", "-d", "mls0", "-g", str(GID)]
        waiting = node.start(words, env=ENVS["stock"])
        wait_for("pingpong has its QP", lambda: node.run(
            f"grep -q state {DEBUGFS}/qps").status == 0)
        node.must("rmmod mlx5_soft")
        check(waiting.status is None, "the application ended")
        waiting.stop()
        node.must(f"insmod {MODULE} on=rxe0")
        # and with the device that it stands on
        waiting = node.start(words, env=ENVS["stock"])
        wait_for("pingpong has its QP", lambda: node.run(
            f"grep -q state {DEBUGFS}/qps").status == 0)
        node.must("rdma link delete rxe0")
        try:
            check(node.run(f"test -e {DEBUGFS}").status, "mls0 is still there")
        finally:
            node.must("rdma link add rxe0 type rxe netdev rail0")
        waiting.stop()


def programs(which, bed):
    """perftest and the pingpongs, each to a good end."""
    env = ENVS[which]
    count = few(bed, 300)
    runs = [("ib_write_bw", "-s", 4096), ("ib_read_bw", "-s", 4096),
            ("ib_send_bw", "-s", 4096, "-e"), ("ib_atomic_bw",),
            ("ib_write_lat", "-s", 8), ("ib_send_lat", "-s", 64)]
    if bed.kernel == "debug" or which == "patched":
        runs = runs[2:4]
    with devices(bed) as (client, server):
        before = stats(client)
        for program, *options in runs:
            short = 100 if program.endswith("lat") else count
            serving, running = perftest(client, server, program, *options, "-n",
                                        min(short, count), env=env, device="mls0")
            running.expect(0, 120)
            serving.expect(0, 60)
        for words in (["ibv_rc_pingpong", "-e"], ["ibv_srq_pingpong", "-q", "2"]):
            words += ["-d", "mls0", "-g", str(GID), "-n", "30"]
            serving = server.start(words, env=env)
            wait_for(f"{words[0]} listens", lambda: listening(server, PERFTEST_PORT))
            running = client.start([*words, server.address(CONTROL_RAIL)], env=env)
            running.expect(0)
            serving.expect(0)
        after = stats(client)
        moved = {name: after[name] - before[name] for name in after}
        check(moved["sends"] > 2 * count and moved["events"]
              and moved["blueflame"] and not moved["errors"], f"counters: {moved}")


def verify(client, server, which, *options, qps=2):
    """shift_verify on the device, told to go."""
    run = Verify(client, server, *options, qps=qps, env=ENVS[which], device="mls0")
    run.go()
    return run


def operations(which, options, bed):
    """Every byte, order and completion of all operations."""
    with devices(bed) as (client, server):
        before = stats(client)
        verify(client, server, which, *OPS, *options, "--iters",
               few(bed, 300)).end()
        check(stats(client)["sends"] - before["sends"] >= 2 * few(bed, 300),
              "the operations took another way")
        check(stats(client)["errors"] == before["errors"], "an error CQE")


def faulty(fault, value, says, flushed, bed):
    """One fault: the right error, the rest flushed, and nothing else wrong."""
    with devices(bed) as (client, server):
        run = verify(client, server, "stock", *OPS, "--allow-error",
                     "--progress", 20, qps=1)
        run.past(40)
        inject(client, fault, value)
        run.end()
        check(re.search(f"^error qp 0 wr 0x[0-9a-f]+: {says}$",
                        run.client.text, re.M),
              f"not '{says}':\n{run.client.tail()}")
        now = stats(client)
        check(now["faults"] == 1 and now["flushes"] >= flushed
              and now["errors"] == (says != "Work Request Flushed Error"),
              f"counters: {now}")


def silent(bed):
    """It stops working, without a word; told to, it goes on where it was."""
    with devices(bed) as (client, server):
        run = verify(client, server, "patched", *OPS, "--progress", 5, qps=1)
        run.past(20)
        inject(client, "silent", 1)
        place = client.must(f"cat {DEBUGFS}/qps")
        before = stats(client)
        for _ in range(10):
            check(client.must(f"cat {DEBUGFS}/qps") == place, "it goes on")
        check(stats(client)["cqes"] == before["cqes"], "it completes")
        inject(client, "silent", 0)
        run.more(4)
        run.finish()


@test("mlx5_soft", "error completions carry the vendor's syndrome", FULL, BARE)
def syndromes(bed):
    """As perftest prints them."""
    with devices(bed) as (client, server):
        for fault, value, status, vendor in (("lose_ack", 1, 12, "0x81"),
                                             ("fail_next", 2, 2, "0x68")):
            serving, running = perftest(client, server, "ib_write_bw", "-s", 64,
                                        "-n", 100000, "-u", QP_TIMEOUT,
                                        env=ENVS["stock"], device="mls0")
            wait_for("traffic", lambda: stats(client)["sends"] > 200)
            inject(client, fault, value)
            check(running.wait(60) != 0, "perftest ended well")
            serving.stop()
            check(re.search(f"Failed status {status}: .* {vendor}$", running.text,
                            re.M), f"not {status}, {vendor}:\n{running.tail()}")


@test("mlx5_soft", "garbage in rings and doorbell records", MAIN, BARE)
def garbage(bed):
    """Whatever an application writes there, the kernel stays whole."""
    with devices(bed) as (node, _):
        before = stats(node)
        out = node.must(["mlx5_abuse", "mls0", str(few(bed, 60))],
                        env=ENVS["stock"], timeout=120)
        check("survived" in out, out)
        after = stats(node)
        check(after["errors"] > before["errors"]
              and after["flushes"] > before["flushes"], f"no error: {after}")


# What the device does not have, by its number in Documentation/internals/mlx5.md.
NOT_HERE = {9: "no memory windows", 13: "no data into completions", 14: "refuses them",
            16: "not asked for", 17: "not tried", 18: "not tried"}


@test("mlx5_soft", "what the module assumes of a device", FULL, BARE)
def assumed(bed):
    """The program for NICs finds all of it here, and notices if something is not so.

    A QP that was reset at work is not used again: at times rxe is not up to it, and warns."""
    with devices(bed) as (node, _):
        node.push(f"{module(node, 'pd_probe')}:/root/pd_probe.ko")
        node.must("insmod /root/pd_probe.ko")
        out = node.must(["mlx5_assume", "-x", "16", "mls0"], env=ENVS["stock"], timeout=600)
        node.must("rmmod pd_probe")
        found = re.findall(r"^ok (\d+) - [^#\n]*(?:# SKIP (.*))?$", out, re.M)
        check([int(number) for number, _ in found] == list(range(1, 20)), out)
        skipped = {int(number): why for number, why in found if why}
        check(skipped.keys() == NOT_HERE.keys() and all(
            NOT_HERE[number] in why for number, why in skipped.items()), out)
        # amid the requests of number 11, behind those that go before
        inject(node, "lose_ack", 1000)
        result = node.run(["mlx5_assume", "-n", "11", "mls0"], env=ENVS["stock"],
                          timeout=300)
        check(result.status == 1 and "\nnot ok 11 - " in result.out, result.text)


def register():
    """Those that come in several forms."""
    add("mlx5_soft", "appears and goes", life, ("6.1", "6.12"), BARE)
    add("mlx5_soft", "perftest and pingpong, stock libmlx5",
        partial(programs, "stock"), FULL, BARE)
    add("mlx5_soft", "perftest and pingpong, patched libmlx5",
        partial(programs, "patched"), FULL, BARE)
    add("mlx5_soft", "operations: both directions",
        partial(operations, "patched", ["--bidir", "--signal-every", 8,
                                        "--chain", 8]), MAIN, BARE)
    add("mlx5_soft", "operations: ibv_wr_*, inline, ibv_start_poll",
        partial(operations, "stock", ["--post", "wr", "--inline", "--poll",
                                      "start", "--signal-every", 3]), FULL, BARE)
    add("mlx5_soft", "operations: SRQ, one CQ, events, lists",
        partial(operations, "stock", ["--srq", "--shared-cq", "--events",
                                      "--sge", 4]), FULL, BARE)
    add("mlx5_soft", "a lost ACK",
        partial(faulty, "lose_ack", 3, "transport retry counter exceeded", 1),
        FULL, BARE)
    add("mlx5_soft", "a WQE that fails",
        partial(faulty, "fail_next", 0x13, "remote access error", 1), FULL, BARE)
    add("mlx5_soft", "the device dies",
        partial(faulty, "fatal", 1, "Work Request Flushed Error", 1), FULL, BARE)
    add("mlx5_soft", "the device goes silent", silent, FULL, BARE)


register()
