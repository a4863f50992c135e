# SPDX-License-Identifier: GPL-2.0
"""Measurements for scripts/bench: each takes a lab and returns numbers."""

import json
import re
import statistics
import time
from functools import partial

import shift
from testbed import PATCHED, check, wait_for
from traffic import Verify, perftest

NS_PER_INSTRUCTION = 8      # lab up --icount
STOCK_DIR = "/opt/rdma-core-stock"
STOCK = {"LD_LIBRARY_PATH": f"{STOCK_DIR}/lib"}
TRACING = "/sys/kernel/tracing"
TRANSITION = "events/shift/shift_qp_transition"
PART, PARTS = 50, 10            # messages of 64 KiB
RESULT = re.compile(r"^\s*(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", re.M)


def figures(bed, program, env, *options):
    """The numbers of perftest's result line."""
    client, server = bed.nodes
    serving, running = perftest(client, server, program, *options, env=env)
    running.expect(0, 180)
    serving.expect(0, 60)
    found = RESULT.search(running.text)
    check(found, f"{program}: no result line:\n{running.tail()}")
    return [float(value) for value in found.groups()]


def throughput(bed, env):
    """Average MB/s of 64 KiB WRITEs."""
    return figures(bed, "ib_write_bw", env, "-s", 65536, "-n", 300)[3]


def latency(bed, env):
    """Typical microseconds of an 8-byte WRITE."""
    return figures(bed, "ib_write_lat", env, "-s", 8, "-n", 1500)[4]


def call_cost(kind, qps, count, bed, env):
    """Instructions of one kind of call, user space and kernel, with that many WRITEs a QP.

    A quarter of the calls took less: those that no interrupt came into. The nodes' clocks
    go at speeds of their own: no ACK is to be late by one.
    """
    verify = Verify(*bed.nodes[:2], "--size", 8, "--depth", 1, "--iters", count,
                    "--inline", "--cost", "--qp-timeout", 22, qps=qps, env=env)
    verify.go()
    verify.end()
    found = re.search(rf"^{kind}-cost .* 25 % (\d+)", verify.client.text, re.M)
    check(found, f"no {kind}-cost:\n{verify.client.tail()}")
    return float(found.group(1)) / NS_PER_INSTRUCTION


# With its doorbell: the only part of a WRITE's way that holds anything of ours.
post_cost = partial(call_cost, "post", 1, 1000)
rtr_cost = partial(call_cost, "rtr", 32, 8)
rts_cost = partial(call_cost, "rts", 32, 8)


def register_cost(mebibytes, count, bed, env):
    """Microseconds of ibv_reg_mr; with the module it makes a mirror, too."""
    text = bed.nodes[0].must(["reg_cost", "rxe0", str(mebibytes), str(count)], env=env, timeout=300)
    return int(re.search(r"^reg (\d+)", text, re.M).group(1)) / 1e3


class Series:
    """Values of one measurement with and without us."""

    def __init__(self, name, unit, function):
        self.name, self.unit, self.function = name, unit, function
        self.values = {"stock": [], "shift": []}

    def measure(self, bed, which):
        """Once more."""
        env = PATCHED if which == "shift" else STOCK
        value = self.function(bed, env)
        self.values[which].append(value)
        print(f"  {which:6} {self.name:24} {value:10.2f} {self.unit}",
              flush=True)

    def report(self):
        """Medians and their ratio."""
        stock, shifted = (statistics.median(self.values[which])
                          for which in ("stock", "shift"))
        pairs = sorted(b / a for a, b in zip(self.values["stock"],
                                             self.values["shift"]))
        print(f"{self.name:24} stock {stock:10.2f}  shift {shifted:10.2f} "
              f"{self.unit:5} ratio {shifted / stock:.3f} (pairs "
              f"{pairs[0]:.3f} to {pairs[-1]:.3f})")
        return stock, shifted


class Monitor:
    """The events of a node's QPs, from now on."""

    def __init__(self, node):
        self.process = node.start(["shiftctl", "-j", "monitor"])

        def listens():
            """The pair's policy stays what it is, and that is an event."""
            shift.must(node, "pair", "set", node.cluster.nics.default, "--policy", "exactly-once")
            return self.process.lines
        wait_for(f"{node.name}: the monitor listens", listens, 60, .2)
        self.begin()

    def begin(self):
        """What comes after this is looked at."""
        self.start = len(self.process.lines)
        self.began = time.monotonic()

    def events(self):
        """Events so far: (host's clock, event)."""
        found = []
        for when, line in self.process.lines[self.start:]:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if event.get("object") == "qp":
                found.append((when, event))
        return found

    def wait(self, name, count=1):
        """All events, once there are so many of a name."""
        return wait_for(f"{count} events '{name}'", lambda: (
            lambda seen: seen if sum(e["event"] == name for _, e in seen) >= count
            else None)(self.events()), 120)


def span(events, first, last):
    """Microseconds from the first event of some names to the last of another."""
    begin = min(e["time_ns"] for _, e in events if e["event"] in first)
    end = max(e["time_ns"] for _, e in events if e["event"] == last)
    return (end - begin) / 1e3


def one_switch(bed, monitor, verify, act):
    """Do what makes the QP move; microseconds to its first completion there."""
    verify.more(2)
    monitor.begin()
    act()
    events = monitor.wait("completion")
    verify.more(1)
    return span(events, ("fault", "move"), "completion"), events


def switches(bed):
    """A pulled cable and the way back: (switch, failback), microseconds."""
    client, server = bed.nodes
    monitor = Monitor(client)
    verify = Verify(client, server, "--size", 8, "--depth", 16, "--progress", 500)
    for node in bed.nodes:
        shift.protected(node, 1)
    verify.go()
    away, _ = one_switch(bed, monitor, verify, lambda: client.link(0, False))
    bed.plug_all()
    shift.wait_session(bed, 2)
    home, _ = one_switch(bed, monitor, verify, lambda: shift.must(
        client, "pair", "undrain", "rxe0"))
    verify.finish()
    bed.stop_processes()
    return away, home


def scale_deadlines(bed, scale):
    """What all deadlines of the module are multiplied by, from now on."""
    for node in bed.nodes:
        node.must(f"echo {scale} > /sys/module/rdma_shift/parameters/deadline_scale")


def detection(bed, how):
    """Milliseconds of the host's clock from a fault to the first event of it.

    event: the own cable; peer: the other node's cable; heartbeat: silent loss, with deadlines
    for emulated nodes; unscaled heartbeat: the same with those for hardware.
    """
    client, server = bed.nodes
    monitor = Monitor(client)
    verify = Verify(client, server, "--size", 8, "--depth", 16, "--progress", 500,
                    "--qp-timeout", 22)
    for node in bed.nodes:
        shift.protected(node, 1)
    shift.wait_session(bed, 2)
    verify.go()
    verify.more(2)
    monitor.begin()
    if how.startswith("unscaled"):
        scale_deadlines(bed, 1)
    if how.endswith("heartbeat"):
        bed.drop(client, 0, direction="in")
        bed.drop(client, 0, direction="out")
    else:
        (client if how == "event" else server).link(0, False)
    # Who finds out first asks; both agree.
    name = "fault" if how in ("event", "unscaled heartbeat") else "agreed"
    seen = [when for when, e in monitor.wait(name) if e["event"] in ("fault", "agreed")]
    scale_deadlines(bed, shift.DEADLINE_SCALE)
    verify.more(1)
    verify.finish()
    bed.stop_processes()
    bed.plug_all()
    shift.wait_session(bed)
    return (min(seen) - monitor.began) * 1e3


def available(node):
    """KB of memory that could be had on a node."""
    node.must("sync; echo 3 > /proc/sys/vm/drop_caches")
    return int(node.must("awk '/MemAvailable/ {print $2}' /proc/meminfo"))


def completed(node, qps):
    """All QPs of a node, once each has completed something on its new path."""
    rows = shift.qps(node)
    return rows if sum("completion_ns" in row for row in rows) >= qps else None


def storm(bed, qps, with_module=True):
    """Many QPs: (KB per QP, ms from the first fault to the last QP's completion)."""
    client, server = bed.nodes
    before = available(client)
    verify = Verify(client, server, "--size", 64, "--depth", 4, "--progress", 2000,
                    "--timeout", 180, qps=qps)
    if with_module:
        for node in bed.nodes:
            shift.protected(node, qps)
    used = (before - available(client)) / qps
    verify.go()
    verify.more(2)
    took = None
    if with_module:
        client.link(0, False)
        rows = wait_for("a completion of each QP", lambda: completed(client, qps), 170, 1)
        took = (max(row["completion_ns"] for row in rows) -
                min(row["fault_ns"] for row in rows)) / 1e6
    verify.more(1)
    verify.finish()
    bed.stop_processes()
    bed.plug_all()
    return used, took


def protection(bed):
    """Milliseconds from a QP's RTS to its protection, by the clock of the client's kernel."""
    client = bed.nodes[0]
    # QPs of links, and those that stand by, are modified by the kernel's own threads
    client.must(f"cd {TRACING} && echo 'r:modified rdma_rxe:rxe_modify_qp' >kprobe_events && "
                "echo 'comm == \"shift_verify\"' >events/kprobes/modified/filter && "
                f"echo 1 >events/kprobes/modified/enable && echo 1 >{TRANSITION}/enable && "
                "echo >trace")
    verify = Verify(*bed.nodes, "--iters", 10)
    shift.protected(client, 1)
    verify.go()
    verify.end()
    text = client.must(f"cd {TRACING} && cat trace && echo 0 >{TRANSITION}/enable && "
                       "echo 0 >events/kprobes/modified/enable && echo >kprobe_events")
    paired = re.search(r" (\d+\.\d+): shift_qp_transition: .*event=PAIRED", text)
    modified = re.findall(r" (\d+\.\d+): modified: ", text[:paired.start()])
    check(len(modified) == 3, f"to INIT, RTR and RTS before it was protected: {modified}")
    return (float(paired.group(1)) - float(modified[-1])) * 1e3


def around_failback(bed):
    """MB/s of 64 KiB WRITEs of a QP before its cable was pulled, and after it is home again."""
    verify = Verify(*bed.nodes, "--size", 65536, "--depth", 16, "--progress", PART,
                    device="rxe0")
    for node in bed.nodes:
        shift.protected(node, 1)
    verify.go()

    def speed():
        seen = len(verify.client.lines)
        verify.more(PARTS + 2)
        lines = [when for when, line in verify.client.lines[seen:]
                 if line.startswith("progress ")]
        return PART * PARTS * 65536 / 1e6 / (lines[1 + PARTS] - lines[1])
    before = speed()
    bed.nodes[0].link(0, False)
    for node in bed.nodes:
        shift.protected(node, 1, "fallback")
    bed.plug_all()
    shift.wait_session(bed, 2)
    shift.home(bed, 1)
    after = speed()
    verify.finish()
    bed.stop_processes()
    return before, after


def fallback(bed, device):
    """Average MB/s of 64 KiB WRITEs on rxe1: native, or of rxe0's QPs moved there before."""
    verify = Verify(*bed.nodes, "--size", 65536, "--depth", 16, "--progress", PART,
                    device=device)
    if device == "rxe0":
        for node in bed.nodes:
            shift.protected(node, 1, "fallback")
    verify.go()
    verify.more(PARTS + 2)
    verify.finish()
    lines = [when for when, line in verify.client.lines if line.startswith("progress ")]
    # the first part is for caches to warm
    return PART * PARTS * 65536 / 1e6 / (lines[1 + PARTS] - lines[1])


def in_turn(bed, series, runs):
    """Stock and shift in turn, so that both see the same machine."""
    for turn in range(runs):
        order = ("stock", "shift") if turn % 2 else ("shift", "stock")
        for which in order:
            if which == "shift":
                shift.setup(bed)
            for one in series:
                one.measure(bed, which)
            bed.stop_processes()
            if which == "shift":
                shift.forget(bed)
    return [one.report() for one in series]


