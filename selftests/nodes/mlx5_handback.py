# SPDX-License-Identifier: GPL-2.0
"""mlx5 QPs that have come home are handed back to the application's own rings, or are not."""

from functools import partial

import shift
from registry import FULL, add
from testbed import CONTROL_RAIL, check, wait_for
from traffic import Verify
from nodes.failover import beating, dropped, on_backup, pull, start
from nodes.mlx5 import HANDBACK, MORE, SMALL, on_mlx5
from nodes.mlx5_soft import inject


def handbacks(options, qps, bed):
    """Home again, QPs are handed back: nothing goes through the kernel; and all of it once more."""
    nodes = bed.nodes[:2]
    verify = start(bed, "--bidir", *SMALL, *options, qps=qps)
    shift.wait_session(bed, 2)
    verify.go()
    for side in ("local", "remote"):
        counters = shift.Counters(bed)
        pull(bed, side)
        on_backup(bed, qps)
        verify.more(2)
        counters.moved("kicks")
        bed.plug_all()
        shift.wait_session(bed, 2)
        for node in nodes:
            shift.must(node, "pair", "undrain", bed.nics.default)
        wait_for("all QPs are handed back", lambda counters=counters: (
            verify.more(1), all(n >= qps for n in counters.delta("handbacks")))[1], 300)
        verify.more(1)
        for node in nodes:
            check({row["state"] for row in shift.qps(node)} == {"default"}, f"{shift.qps(node)}")
        through = shift.Counters(bed)
        verify.more(3)
        through.still("side_wc", "kicks")
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


def peer_ends(skip, bed):
    """The peer's program is killed while a QP is handed back, and one end's messages are lost.

    Nobody fails: receives go on waiting, and a send finds that nobody answers.
    """
    # who asks loses what the other says; the other one is to outlive it
    survivor, asker = sorted(bed.nodes[:2], key=lambda node:
                             shift.show(node, "node")["boot_id"])
    words = ["idle_edge", bed.nics.default]
    echo = asker.start(words, env=bed.nics.env)
    echo.wait_line("^listening$")
    ping = survivor.start([*words, asker.address(CONTROL_RAIL)], env=bed.nics.env)
    ping.wait_line("^connected$")
    for node in bed.nodes[:2]:
        shift.protected(node, 2)
        node.must(f"echo 0 >{HANDBACK}")
    counters = shift.Counters(bed)
    shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
    on_backup(bed, 2)

    def does(line, answer="ok"):
        before = len(ping.lines)
        ping.send(line)
        ping.wait_line(f"^{answer}$", start=before)

    does("ping 0 3")
    shift.home(bed, 2)
    does("look", "looks")
    with beating(bed, 0):
        bed.drop(asker, 0, direction="in", opcode="RC_SEND_*", skip=skip)
        for node in bed.nodes[:2]:      # they are looked at again in 20 s at most
            node.must(f"echo 1 >{HANDBACK}")
        wait_for("a message is lost while a QP is handed back", lambda: dropped(bed, 0) > 0 and (
            skip or "switching" in {row["state"] for row in shift.qps(survivor)}), 120, .2)
        asker.must(f"kill -KILL {shift.qps(asker)[0]['pid']}")
        echo.wait()
        bed.undrop()
        wait_for("one QP is the application's own, with no peer", lambda: sorted(
            row["state"] for row in shift.qps(survivor)) == ["returned", "unprotected"])
    does("look")                # nothing was flushed
    counters.still("failed", "illegal", "msg_bad")
    ping.send("ping 0 1")
    ping.expect(1)
    check("transport retry counter exceeded" in ping.text, ping.tail())


def not_handed_back(bed):
    """Who sleeps until an event would keep its peer waiting: it stays where it is."""
    stays_returned(start(bed, "--bidir", "--events", *SMALL), bed)


def stays_returned(verify, bed):
    """Traffic that leaves its NIC and comes home is not handed back."""
    shift.wait_session(bed, 2)
    verify.go()
    verify.more(1)
    counters = shift.Counters(bed)
    shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
    on_backup(bed, 1)
    verify.more(2)
    shift.home(bed, 1)
    verify.more(60)       # a try takes some seconds
    for node in bed.nodes[:2]:
        check({row["state"] for row in shift.qps(node)} == {"returned"}, f"{shift.qps(node)}")
    verify.finish()
    counters.moved("returns")
    counters.still("handbacks", "failed", "illegal", "msg_bad")


def overrun(bed):
    """A QP whose flushes have overrun its CQ, to which the NIC writes nothing any more: it goes on
    by the kernel's QPs, and is not handed back."""
    client = bed.nodes[0]
    verify = Verify(*bed.nodes[:2], *SMALL, "--small-cq", "--signal-every", 16)
    shift.wait_reason(client, "operation")
    counters = shift.Counters(bed)
    verify.go()
    verify.more(1)
    inject(client, "lose_ack", 3)
    on_backup(bed, 1)
    verify.more(2)
    shift.home(bed, 1)
    verify.more(60)       # a try takes some seconds
    check({row["state"] for row in shift.qps(client)} == {"returned"}, f"{shift.qps(client)}")
    verify.finish()
    counters.still("handbacks", "failed", "illegal", "msg_bad")


for _name, _function, _kernels in (
        ("handed back: WRITE", partial(handbacks, [], 1), MORE),
        ("handed back: all but atomics", partial(
            handbacks, ["--ops", "write,write_imm,send,send_imm,read", "--mix"], 2), FULL),
        ("handed back: ibv_wr_*, unsignaled, ibv_start_poll", partial(
            handbacks, ["--ops", "write,send", "--mix", "--post", "wr", "--poll", "start",
                         "--signal-every", 8, "--chain", 4], 2), FULL),
        ("handed back: inline, one CQ", partial(
            handbacks, ["--ops", "write,send", "--mix", "--inline", "--size", 100,
                         "--shared-cq"], 4), FULL),
        ("handed back: the peer ends", partial(peer_ends, 0), FULL),
        ("handed back: the peer ends, later", partial(peer_ends, 1), FULL),
        ("not handed back: asleep", not_handed_back, FULL),
        ("not handed back: its CQ was overrun", overrun, FULL)):
    add("mlx5", _name, partial(on_mlx5, _function), _kernels)
