# SPDX-License-Identifier: GPL-2.0
"""Posts that wait while their QP is fenced, in an application that gets signals."""

import re
from contextlib import contextmanager

import shift
from registry import STOCK, test
from testbed import check, wait_for
from nodes.failover import beating, dropped, on_backup, pull, shape, start, survives

RECORDS = "/sys/kernel/tracing/instances/held_posts"
SHIFT_IOC_WAIT = 0x4008f504         # uapi/rdma/shift-abi.h
EVENTS = {"syscalls/sys_enter_ioctl": f"cmd == {SHIFT_IOC_WAIT:#x}",
          "syscalls/sys_exit_ioctl": 'comm == "shift_verify"',
          "signal/signal_generate": "sig == 14"}
STEP = re.compile(r"^ *\S+-(\d+) .*: (?:sys_ioctl\(|sys_ioctl -> (0x[0-9a-f]+)|"
                  r"signal_generate: .* pid=(\d+) )", re.M)


@contextmanager
def recorded(node):
    """While it lasts: the system calls by which posts wait, and signals."""
    node.must(f"mkdir {RECORDS} && cd {RECORDS}/events && " + " && ".join(
        f"echo '{only}' >{event}/filter && echo 1 >{event}/enable"
        for event, only in EVENTS.items()))
    try:
        yield
    finally:
        node.must(f"rmdir {RECORDS}")


def waits(node):
    """Posts that wait or have waited: (signals to the thread meanwhile, what the call returned)."""
    inside, over = {}, []
    for thread, returned, signaled in STEP.findall(node.must(f"cat {RECORDS}/trace")):
        if signaled:
            if signaled in inside:
                inside[signaled] += 1
        elif not returned:
            inside[thread] = 0
        elif thread in inside:
            over.append((inside.pop(thread), int(returned, 16)))
    return [(count, None) for count in inside.values()] + over


@test("failover", "an application that gets signals while posts are held", STOCK)
def signals(bed):
    """A post that waits for the fence does not go on because of a signal.

    The ends cannot tell each other how far they got when the first post comes, so that it waits.
    """
    verify = start(bed, *shape(4096, 1), "--bidir", "--alarm", 1000)
    shift.wait_session(bed, 2)
    client, server = bed.nodes[:2]
    counters = shift.Counters(bed)
    with beating(bed, 0), recorded(client):
        bed.drop(server, 1, direction="in", opcode="RC_SEND_*", skip=1)
        pull(bed, "local")
        wait_for("a message is lost", lambda: dropped(bed, 1) > 0, 60)
        verify.go()
        wait_for("a post waits, and gets signals",
                 lambda: any(count > 2 for count, _ in waits(client)), 60)
        counters.still("switches")
        bed.undrop()
        on_backup(bed, 1)
        found = waits(client)
        check(any(count > 2 for count, _ in found) and all(not returned for _, returned in found),
              f"posts that have waited (signals, result): {found}")
    verify.more(3)
    verify.finish()
    counters.moved("switches")
    counters.still("failed", "illegal", "msg_bad")


@test("failover", "an application that gets signals all the time", STOCK)
def signals_all_the_time(bed):
    """Whatever a signal meets in a failover of several QPs at work."""
    verify = start(bed, *shape(4096, 8), "--bidir", "--alarm", 1000, qps=8)
    survives(bed, verify, "local", 8)
