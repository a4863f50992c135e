# SPDX-License-Identifier: GPL-2.0
"""A NIC that cannot be asked how far it got: what the policy makes of it."""

from contextlib import contextmanager
from functools import partial

import shift
from registry import add, test
from testbed import PREFIX, check, wait_for
from nodes.failover import atomics_move, dropped, pull, start
from nodes.after_failover import PACE

ONCE, AGAIN = "exactly-once", "at-least-once"


@contextmanager
def dead_nic(node, reset=0):
    """The node's driver answers no question about a QP of rxe0."""
    node.must(f"insmod {PREFIX}/dead_nic.ko dev=rxe0 reset={reset}", timeout=120)
    try:
        yield
        refused = int(node.must("cat /sys/module/dead_nic/parameters/refused"))
        check(refused > 0, "the driver was not asked")
    finally:
        node.must("rmmod dead_nic", timeout=120)


@contextmanager
def policies(bed, *words):
    """Policies of the nodes' pairs, and exactly-once again."""
    device = bed.nics.default
    try:
        for node, word in zip(bed.nodes, words):
            shift.must(node, "pair", "set", device, "--policy", word)
            pairs = {row["dev"]: row["policy"] for row in shift.show(node, "pair")}
            check(pairs[device] == word, f"the pairs are {pairs}")
            seen = node.must(f"cat /sys/class/infiniband/{device}/shift/policy").strip()
            check(seen == word, f"sysfs says {seen}, not {word}")
        yield
    finally:
        bed.stop_processes()
        for node in bed.nodes:
            shift.must(node, "pair", "set", device, "--policy", ONCE)


def cut_after_two(bed):
    """128 WRITEs in one post; the third and all after it get lost on their way.

    All that was executed was acknowledged: nothing can be executed twice.
    """
    client = bed.nodes[0]
    verify = start(bed, "--size", 65536, "--depth", 128, "--chain", 128,
                   "--iters", 128, "--progress", 1)
    bed.drop(client, 0, direction="out", opcode="RC_WRITE_*", skip=128)
    verify.go()
    verify.past(2)
    wait_for("packets lost", lambda: dropped(bed) > 0)
    return verify


def writes(client, server, survives, bed):
    """The responder's NIC cannot be asked; WRITEs are outstanding."""
    with policies(bed, client, server), dead_nic(bed.nodes[1]):
        counters = shift.Counters(bed)
        verify = cut_after_two(bed)
        bed.nodes[0].link(0, False)
        if survives:
            verify.end()
            counters.moved("switches")
            counters.still("failed")
            check(counters.delta("doubtful")[0] >= 126,
                  f"posted again in doubt: {counters.delta('doubtful')}")
        else:
            verify.fails()
            counters.still("switches", "doubtful")
        check(counters.delta("unknown") == [0, 1],
              f"not asked in vain once: {counters.delta('unknown')}")
        counters.still("illegal", "msg_bad")


for _client, _server in ((ONCE, ONCE), (AGAIN, ONCE), (ONCE, AGAIN), (AGAIN, AGAIN)):
    add("dead_nic", f"unknown: {_client} here, {_server} at the peer",
        partial(writes, _client, _server, _client == _server == AGAIN))


@test("dead_nic", "unknown, exactly-once: READs are asked again")
def reads(bed):
    """What is asked twice harms nobody: no policy is needed."""
    verify = start(bed, "--ops", "read", "--size", "1-9000", "--guard", *PACE)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    with dead_nic(bed.nodes[1]):
        pull(bed, "local")
        wait_for("failover on both nodes",
                 lambda: min(counters.delta("switches")) >= 1, 60)
    verify.more(2)
    verify.finish()
    check(counters.delta("unknown") == [0, 1],
          f"not asked in vain once: {counters.delta('unknown')}")
    counters.still("failed", "doubtful", "illegal")


@test("dead_nic", "a NIC that does not stop: an error, whatever the policy")
def not_stopped(bed):
    """Its completions would mix with ours."""
    with policies(bed, AGAIN, AGAIN), dead_nic(bed.nodes[1], reset=1):
        counters = shift.Counters(bed)
        verify = cut_after_two(bed)
        bed.nodes[0].link(0, False)
        verify.fails()
        counters.moved("failed")
        counters.still("switches", "doubtful", "unknown", "illegal")


def cut(bed, verify, direction, opcode):
    """Some of it goes well, the rest is lost, and then the path."""
    verify.go()
    verify.more(2)
    bed.drop(bed.nodes[0], 0, direction=direction, opcode=opcode)
    wait_for("packets lost", lambda: dropped(bed) > 0)
    bed.nodes[0].link(0, False)


@test("dead_nic", "unknown, at-least-once: a SEND is received twice, and that is told")
def sends(bed):
    """What the policy allows does happen: answers are lost, and the peer cannot say so."""
    with policies(bed, AGAIN, AGAIN), dead_nic(bed.nodes[1]):
        counters = shift.Counters(bed)
        said = bed.nodes[0].console.count("some may be executed twice")
        verify = start(bed, "--ops", "send", "--size", "1-9000", *PACE)
        cut(bed, verify, "in", "RC_ACK")
        verify.server.expect(1)
        check("VIOLATION" in verify.server.text, f"not twice:\n{verify.server.tail()}")
        check(counters.delta("doubtful")[0] > 0, f"in doubt: {counters.delta('doubtful')}")
        check(bed.nodes[0].console.count("some may be executed twice") > said, "not in the log")
        check(counters.delta("unknown") == [0, 1],
              f"not asked in vain once: {counters.delta('unknown')}")
        counters.moved("switches")
        counters.still("illegal", "msg_bad")


@test("dead_nic", "unknown, at-least-once: an atomic is an error all the same")
def atomics(bed):
    """It may have been executed: not even this policy does it twice."""
    with atomics_move(bed), policies(bed, AGAIN, AGAIN), dead_nic(bed.nodes[1]):
        counters = shift.Counters(bed)
        verify = start(bed, "--ops", "fadd", "--allow-error", *PACE)
        cut(bed, verify, "in", "RC_ATOMIC_ACK")
        verify.end()
        check("error qp 0 wr " in verify.client.text, f"no error:\n{verify.client.tail()}")
        check(counters.delta("unknown") == [0, 1],
              f"not asked in vain once: {counters.delta('unknown')}")
        check(counters.delta("failed")[0] == 1, f"failed: {counters.delta('failed')}")
        counters.still("switches", "doubtful", "illegal", "msg_bad")
