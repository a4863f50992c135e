# SPDX-License-Identifier: GPL-2.0
"""What a user in the kernel posts is executed, and completes, exactly once, however it polls."""

from functools import partial

import shift
from registry import BARE, FULL, MAIN, add
from stream import Rounds, stream
from testbed import check, each, wait_for
from nodes.failover import dropped, pull
from nodes.kernel_failover import cable, moved, working

WAYS = "softirq", "workqueue", "unbound", "direct"
BEFORE = 20     # packets that are not lost


def lose_requests(bed, opcode="RC_SEND_*"):
    """From one of the sender's packets on none of its kind arrives."""
    bed.drop(bed.nodes[0], 0, direction="out", opcode=opcode, skip=BEFORE)
    wait_for("a packet lost", lambda: dropped(bed) > 0, 60)


def lose_answers(bed, work):
    """Neither end hears any more that its requests were executed, and the other one sees them.

    Links lose theirs as well, and may have the QPs moved before that is seen here.
    """
    counters = shift.Counters(bed)
    for direction in "in", "out":
        bed.drop(bed.nodes[0], 0, direction=direction, opcode="RC_ACK")

    def executed():
        sender, receiver = work.counts()
        return (sender["answered"] > max(sender["ended"], receiver["ended"]) or
                min(counters.delta("switches")) >= work.user.QPS)
    wait_for("requests that were executed, without an answer", executed, 60)


def comes_home(bed, work):
    """The cable is plugged again."""
    bed.plug_all()
    shift.home(bed, work.user.QPS)
    work.more(1)


def story(kind, bed):
    """Requests are lost, then the path; back home, answers are lost, then the path."""
    with working(bed, kind, Rounds) as (work, counters):
        lose_requests(bed)
        pull(bed, "local")
        moved(bed, counters, work)
        check(counters.delta("replayed")[0] > 0, "the sender posted nothing again")
        comes_home(bed, work)
        before = shift.Counters(bed)
        lose_answers(bed, work)
        pull(bed, "remote")
        moved(bed, before, work)
        executed = before.delta("executed")
        # the QPs may be moved before an end has missed an answer
        check(sum(executed) > 0, f"executed: {executed}")
        comes_home(bed, work)
        check(sum(counters.delta("faults")) >= 2, "faults were not counted")


def atomics(bed):
    """A FETCH_ADD is lost; each finds how many there were before it, on all paths."""
    with working(bed, stream(atomics=True), Rounds) as (work, counters):
        lose_requests(bed, "RC_FETCH_ADD")
        pull(bed, "local")
        moved(bed, counters, work)
        check(counters.delta("replayed")[0] > 0, "the sender posted nothing again")
        comes_home(bed, work)


KEYS = "/sys/kernel/tracing/instances/keys"


def keys_asked(node):
    """How many keys it has asked for, since it traces that."""
    return int(node.run(f"grep -c 'type=RESOLVE ' {KEYS}/trace").out)


def asked_once(bed):
    """A remote key is asked for once per MR, however often that is registered."""
    with working(bed, stream(), Rounds) as (work, counters):
        for node in bed.nodes[:2]:
            node.must(f"mkdir {KEYS} && echo 1 >{KEYS}/events/shift/shift_msg_tx/enable")
        pull(bed, "local")
        moved(bed, counters, work)
        # a slow node may take the backup for silent, and another path has other keys
        for _ in range(5):
            work.more(3)
            switches, asked = counters.delta("switches"), each(bed.nodes[:2], keys_asked)
            check(sum(asked) > 0, "no key was asked for")
            before = work.counts()[0]["registered"]
            work.more(10)
            registered = work.counts()[0]["registered"] - before
            now = each(bed.nodes[:2], keys_asked)
            if counters.delta("switches") == switches:
                break
        check(registered > sum(asked), "too little was registered meanwhile")
        check(now == asked, f"asked {asked} times, and then {now}")
        for node in bed.nodes[:2]:
            node.must(f"echo 0 >{KEYS}/events/shift/enable && rmdir {KEYS}")
        comes_home(bed, work)


def wrong_replay(bed):
    """The negative control: one packet too few is sent again, and that is seen."""
    user = stream(poll="workqueue")(bed)
    shift.setup(bed, shift.WRONG_MODULE)
    try:
        user.connect()
        each(user.nodes, lambda node: shift.protected(node, user.QPS))
        shift.wait_session(bed)
        counters = shift.Counters(bed)
        work = Rounds(user)
        work.more(work.WARM)
        lose_requests(bed, "RC_WRITE_*")
        pull(bed, "local")
        wait_for("a violation", user.violations, 120)
        counters.moved("switches")
        again = counters.deltas("replayed", "resumed")
        check(sum(map(sum, again.values())) > 0, f"nothing was posted again: {again}")
    finally:
        user.disconnect()
        bed.plug_all()
        shift.forget(bed)


for _way in WAYS:
    add("kernel_exactly_once", _way, partial(story, stream(poll=_way)), MAIN, BARE)
    add("kernel_exactly_once", f"{_way}, 3 QPs on one CQ",
        partial(story, stream(qps=3, poll=_way, one_cq=True)), MAIN, BARE)
add("kernel_exactly_once", "a key for all memory", partial(story, stream(global_key=True)), MAIN,
    BARE)
# an MR is registered with a key that it had when its QP was on the other device before
add("kernel_exactly_once", "keys that come again",
    partial(cable, "local", 6, stream(keys=2), Rounds), MAIN, BARE)
add("kernel_exactly_once", "a FETCH_ADD is lost", atomics, MAIN, BARE)
add("kernel_exactly_once", "keys are asked for once", asked_once, MAIN, BARE)
add("kernel_exactly_once", "a module that replays from a wrong point is caught", wrong_replay,
    FULL, BARE)
