# SPDX-License-Identifier: GPL-2.0
"""Queue pairs of the patched libmlx5 move: mls0 is backed by mls1.

Beside tests of its own, those of other files on these devices: the same functions, as
they take the devices from Cluster.nics.
"""

import os
import re
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import partial

import shift
import variants
from ends import Ends
from registry import BARE, FULL, MAIN, SHIFT, STOCK, TESTS, add
from testbed import CONTROL_RAIL, RXE, Failure, Nics, check, each, wait_for
from traffic import Verify

from nodes import (after_failover, application_qp, dead_nic, exactly_once, failback, mlx5_soft,
                   operations, perftest, policy, programs, protocols, random_schedule,
                   second_failure, shapes, trust)
from nodes.failover import WAYS, on_backup, pull, start, survives, wrong_is_caught
from nodes.mlx5_soft import ENVS, MODULE, inject, install, stats


def borrowing():
    """The kernel with the full matrix; with SHIFT_LONG=6.12,debug those, too."""
    names = os.environ.get("SHIFT_LONG", "").split(",")
    return FULL + tuple(name for name in MAIN if name in names and name not in FULL)


MORE = borrowing()


HANDBACK = "/sys/module/rdma_shift/parameters/handback"


def begin(node):
    """mls0 on rxe0 and mls1 on rxe1, each backed by the other."""
    install(node)
    node.must("if test -e /sys/module/mlx5_soft; then rmmod mlx5_soft; fi; "
              f"insmod {MODULE} on=rxe0,rxe1 && "
              f"echo {int(node.cluster.nics.gives_back)} >{HANDBACK} && "
              "shiftctl pair add mls0 mls1")


def leave(node):
    """None of them, once nothing uses them."""
    wait_for(f"{node.name}: no tracked object", lambda: not shift.tracked(node))
    node.must("rmmod mlx5_soft; ! test -e /sys/module/mlx5_soft")


MLX5, KEEPING = (Nics("mls0", "mls1", ENVS["patched"], ENVS["stock"], begin, flushes=True,
                     cannot=["send_inv", "mw"], lacks=["--srq", "fadd", "cas"],
                     gives_back=given) for given in (True, False))


@contextmanager
def devices(bed, nics=MLX5):
    """The test's devices on all nodes, while it lasts."""
    bed.nics = nics
    try:
        each(bed.nodes, begin)
        yield
    except Failure:
        bed.found = shift.witness(bed)      # all of it is about to go
        raise
    finally:
        bed.nics = RXE
        bed.stop_processes()
        bed.plug_all()
        each(bed.nodes, leave)


def on_mlx5(function, bed):
    """A test that knows nothing of it."""
    with devices(bed):
        function(bed)


def on_mlx5_kept(function, bed):
    """The same; what is home stays on the kernel's QPs: the module parameter handback is off."""
    with devices(bed, KEEPING):
        function(bed)


def failover(side, options, bed, qps=1):
    """Traffic, a cable, traffic on the backup, a clean end."""
    verify = start(bed, *options, qps=qps)
    survives(bed, verify, side, qps)


DEPTH = 4096
SMALL = ["--size", 4096, "--depth", 32, "--progress", 64]


def locks(node, limit=None):
    """memlock_edge with large rings, as an ordinary user: (their pages, its QPs, its output).

    With a limit, in pages, it makes nothing but the rings.
    """
    kib = "" if limit is None else f"ulimit -l {4 * limit} && "
    count = 8 if limit is None else 0
    edge = node.start(f"{kib}exec memlock_edge mls0 64 {count} {DEPTH}",
                      env=ENVS["patched"], user="lab")
    rings = int(edge.wait_line(r"^rings (\d+)$").group(1))
    rows = shift.qps(node)
    edge.send("go")
    edge.expect(0)
    return rings, rows, re.findall("^(?:registered|refilled).*", edge.text, re.M)


def locked_memory(bed):
    """Rings are charged to their owner, who may lock as much beside them as ever."""
    with mlx5_soft.devices(bed) as (node, _):
        stock, _, plain = locks(node)
        check(re.match("registered [1-9]", plain[0]), plain)
    with devices(bed):
        node = bed.nodes[0]
        charged, rows, kept = locks(node)
        check(rows[0]["reason"] == "not-rts", f"not registered: {rows}")
        # the same pages once more, without those of two doorbell records, and the
        # numbers of sends: 4 bytes for each 64 of the send ring, from anywhere in a page
        heads = charged - (2 * stock - 2)
        check(0 < heads <= stock // 16 + 2, f"{charged} pages are charged, {stock} without "
                                            "the module")
        check(kept == plain, f"{kept} with the module, {plain} without")
        # room for its own rings: we get none for the QP's
        tight, rows, _ = locks(node, stock + 8)
        check(stock < tight < charged, f"{tight} pages, not between {stock} and {charged}")
        check([row["reason"] for row in rows] == ["no-provider"], f"{rows}")


def idle(side, count, bed):
    """A QP whose completions others' have replaced moves with these, and works."""
    words = ["idle_edge", bed.nics.default]
    client, server = bed.nodes[:2]
    echo = server.start(words, env=bed.nics.env)
    echo.wait_line("^listening$")
    ping = client.start([*words, server.address(CONTROL_RAIL)], env=bed.nics.env)
    ping.wait_line("^connected$")
    for node in (client, server):
        shift.protected(node, 2)

    def works(qp, count):
        before = len(ping.lines)
        ping.send(f"ping {qp} {count}")
        ping.wait_line("^ok$", start=before)

    counters = shift.Counters(bed)
    works(0, count)
    works(1, 200)               # six times the CQ, at both ends
    for node in (client, server):
        shift.protected(node, 2)
    pull(bed, side)
    on_backup(bed, 2)
    for qp in (0, 1, 0):
        works(qp, 100)
    ping.send("end")
    ping.expect(0)
    echo.expect(0)
    counters.moved("switches", 2)
    counters.still("failed", "illegal", "msg_bad")


def claimed(bed):
    """Addresses that must be refused, and words that say anything: at home, away, given back."""
    words = ["mlx5_claim", bed.nics.default]
    client, server = bed.nodes[:2]
    for side in ("local", "remote"):
        ends = [server.start(words, env=ENVS["stock"])]
        ends[0].wait_line("^listening$")
        ends.append(client.start([*words, server.address(CONTROL_RAIL)], env=ENVS["stock"]))
        for end in ends:
            end.wait_line("^connected$")
        shift.wait_session(bed, 2)
        for count in range(6):
            if count == 2:
                pull(bed, side)
            if count == 4:
                bed.plug_all()
                shift.wait_session(bed, 2)
                shift.must(client, "pair", "undrain", bed.nics.default)
            for node in (client, server):
                shift.qps(node)         # each time it is looked at; any state is right
        for end in ends:
            end.send("end")
            end.expect(0)
            check("BAD" not in end.text, end.text)
    idle("local", 200, bed)


def leaves(bed, fault, after):
    """No cable is out, but the QP leaves the device for a fault of its, and nothing is done twice.

    What @fault returned @after is told when there is traffic on the backup.
    """
    client = bed.nodes[0]
    verify = start(bed, "--ops", "write,write_imm,send,read", "--mix", "--guard", *SMALL)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(1)
    found = fault(client)
    on_backup(bed, 1)
    verify.more(3)
    after(client, found)
    verify.more(1)
    verify.finish()
    counters.moved("switches")
    counters.still("failed", "illegal", "msg_bad")


def lost_answer(bed):
    """The device loses an ACK."""
    leaves(bed, lambda client: inject(client, "lose_ack", 3), lambda client, _: check(
        stats(client)["faults"] == 1, "there was no fault"))


def believed(bed):
    """A program says that its QP has run out of retries, and the NIC does not say whether that is
    so: it is not waited for.  Its answer would be that the QP works, and then the QP fails."""
    client = bed.nodes[0]
    verify = start(bed, "--ops", "send", *SMALL, "--allow-error", "--sabotage", "claim")
    counters = shift.Counters(bed)
    inject(client, "query_ms", 10000)
    try:
        verify.go()
        verify.client.wait_line("^claim kept")
        wait_for("another path is asked for", lambda: counters.delta("faults")[0] == 1, 60)
    finally:
        inject(client, "query_ms", 0)
    counters.still("disbelieved", "illegal")
    wait_for("both have moved", lambda: counters.delta("switches") == [1, 1], 120)
    verify.more(1)
    counters.still("disbelieved", "failed", "illegal", "msg_bad")
    bed.stop_processes()


def own_silence(bed):
    """It does nothing any more: an operator has its QPs leave."""
    def falls_silent(client):
        inject(client, "silent", 1)
        before = stats(client)["sends"]
        shift.must(client, "pair", "drain", bed.nics.default)
        return before

    def was_silent(client, before):
        check(stats(client)["sends"] == before, "it was not silent")
        inject(client, "silent", 0)
    leaves(bed, falls_silent, was_silent)


def dies(bed):
    """Nothing is left that could be asked: the error that it would have been, and at once."""
    verify = start(bed, *SMALL)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(1)
    inject(bed.nodes[0], "fatal", 1)
    verify.fails()      # the peer's, if an ACK was due to it
    own = set(re.findall(r"^error qp \d+ wr \S+ (.*)$", verify.client.text, re.M))
    check(own == {"Work Request Flushed Error"}, verify.client.tail())
    counters.still("switches", "illegal", "msg_bad")


def own_error(bed):
    """One that another path does not mend is shown, as without the module."""
    verify = start(bed, "--ops", "write", "--allow-error", *SMALL)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(1)
    inject(bed.nodes[0], "fail_next", 0x13)
    verify.client.wait_line("^error qp 0 wr 0x[0-9a-f]+: remote access error$")
    verify.end()
    counters.still("switches", "illegal", "msg_bad")


def not_covered(reason, options, bed):
    """Unprotected, and as without the module."""
    client = bed.nodes[0]
    verify = Verify(*bed.nodes[:2], *SMALL, "--iters", 300, *options)
    shift.wait_reason(client, reason)
    counters = shift.Counters(bed)
    verify.go()
    verify.end()
    counters.still("faults", "swallowed", "illegal")


def srq_refused(bed):
    """The module parameter srq is off."""
    for node in bed.nodes[:2]:
        shift.srq(node, False)
    try:
        not_covered("srq", ["--ops", "send", "--srq"], bed)
    finally:
        for node in bed.nodes[:2]:
            shift.srq(node, True)


def wide(bed):
    """Completions of 128 bytes, and a cable."""
    env = {**bed.nics.env, "MLX5_CQE_SIZE": "128"}
    verify = start(bed, "--ops", "write,write_imm,send,read", "--mix", "--bidir", *SMALL, qps=2,
                   env=env)
    survives(bed, verify, "local", 2)


DEEP = 16000


def flushes_slowly(bed):
    """A fence waits for as long as the device flushes receives, and not for a fixed time.

    At three times the 200 ms for which it once waited: 38 us for each of them, scaled.
    """
    server = bed.nodes[1]
    ends = Ends(bed, "recv_edge", RECV_DEPTH=str(DEEP))
    for node in bed.nodes[:2]:
        shift.protected(node, 1)
    ends.do(ends.server, f"receive {DEEP}")
    ends.do(ends.client, "send", "0 success")
    ends.do(ends.server, "next", "0 success")
    before = stats(server)["flushes"]
    inject(server, "flush_us", 38 * shift.DEADLINE_SCALE)
    try:
        pull(bed, "local")
        on_backup(bed, 1)
    finally:
        inject(server, "flush_us", 0)
    seen = stats(server)["flushes"] - before
    check(seen >= DEEP - 1, f"the device had flushed {seen} of {DEEP - 1} receives")
    ends.do(ends.client, "send", "0 success")
    ends.do(ends.server, "next", "1 success")
    ends.close()


def wrong_replay(bed):
    """The negative control: what replays from a wrong point is caught here, too."""
    shift.setup(bed, shift.WRONG_MODULE)
    try:
        with devices(bed):
            wrong_is_caught(bed, *WAYS.values())
    finally:
        shift.forget(bed)


def register():
    """Those that come in several forms."""
    for name, side, options, qps, kernels in (
            ("WRITE, local cable", "local", [], 1, MAIN),
            ("WRITE, remote cable", "remote", [], 1, MORE),
            ("4 QPs, both directions", "local", ["--bidir"], 4, STOCK),
            ("1 of 8 signaled", "local", ["--signal-every", 8, "--chain", 4], 1, MORE),
            ("SEND", "local", ["--ops", "send"], 1, MORE),
            ("SEND, remote cable", "remote", ["--ops", "send,send_imm"], 1, MORE),
            ("READ", "local", ["--ops", "read"], 1, MORE),
            ("all but atomics", "local",
             ["--ops", "write,write_imm,send,send_imm,read", "--mix"], 2, MORE),
            ("inline", "local", ["--inline", "--size", 100], 1, MORE),
            ("ibv_wr_*", "local", ["--post", "wr", "--chain", 4], 1, MORE),
            ("ibv_start_poll", "local", ["--ops", "write,send", "--poll", "start"], 1, MORE),
            ("events", "local", ["--events"], 2, MORE)):
        add("mlx5", name, partial(on_mlx5, partial(failover, side, SMALL + options, qps=qps)),
            kernels)
    # 5: all that was ever posted is still in the send ring
    for side, count, kernels in (("remote", 200, STOCK), ("local", 5, MORE)):
        add("mlx5", f"an idle QP in a CQ that others have filled, {side} cable",
            partial(on_mlx5, partial(idle, side, count)), kernels)
    add("mlx5", "words that say anything", partial(on_mlx5, claimed))
    add("mlx5", "locked memory", locked_memory)
    for name, function, kernels in (
            ("an ACK that the device loses", lost_answer, STOCK),
            ("an error that a QP does not have begins no failover", trust.false_error, STOCK),
            ("an error is believed that the NIC is not asked about in time", believed, STOCK),
            ("receives that are flushed one by one", flushes_slowly, STOCK),
            ("the device dies", dies, FULL),
            ("the device goes silent", own_silence, FULL),
            ("an error of the application's own", own_error, FULL),
            ("completions of 128 bytes", wide, FULL),
            ("unprotected: on an SRQ, by the module parameter", srq_refused, FULL),
            ("unprotected: a CQ without room for a flush", partial(
                not_covered, "operation", ["--small-cq", "--signal-every", 16]), FULL)):
        add("mlx5", name, partial(on_mlx5, function), kernels)
    add("mlx5", "shapes: each is moved, the client's cable",
        partial(on_mlx5, partial(shapes.shapes, "local")))
    add("mlx5", "a module that replays from a wrong point is caught", wrong_replay, state=BARE)


# They have to be registered before they can be borrowed.
BORROWED = (after_failover, application_qp, dead_nic, exactly_once, failback, operations, perftest,
            policy, programs, protocols, random_schedule, second_failure)
# Of other suites all tests can be run here. Those in SHORT are part of each run, but for those that
# lib/variants.py names, too.
SUITES = ("control", "exactly_once", "failover", "application_qp", "after_failover", "failback",
          "operations", "perftest", "policy", "programs", "protocols", "dead_nic",
          "random_schedule", "second_failure")
SHORT = ("control: *", "random_schedule: *",
         "exactly_once: one in the middle of a WRITE of 64 KiB is lost",
         "exactly_once: the answer to one *", "exactly_once: a fadd that is posted on the backup*",
         "exactly_once: on the backup the answer to a send is lost",
         "failover: local cable, 1 QPs, 4 KiB", "failover: remote cable, 8 QPs, 64 KiB",
         "failover: 128 x 64 KiB, all ACKs lost",
         "failover: 128 x 64 KiB, all packets lost inside the third",
         "failover: scatter lists *", "failover: silent loss, found by heartbeats",
         "failover: both cables at once, *", "failover: destroyed on the backup, *",
         "failback: drain and undrain: all, both directions",
         "failback: local cable, plugged again, pulled again",
         "failback: remote cable, then the backup's",
         "application_qp: two lives of one QP",
         "after_failover: all, both directions", "after_failover: read answers lost",
         "after_failover: send answers lost --shared-cq --bidir",
         "after_failover: a receive that cannot be posted there",
         "after_failover: fences on the backup, requests lost",
         "after_failover: one CQ for all, asleep", "after_failover: one CQ for QPs in every state",
         "dead_nic: unknown: *", "protocols: simple, packets lost, the client's*",
         "protocols: ll128, answers lost, the client's*",
         "protocols: a QP to itself moves and comes back",
         "second_failure: a cable goes in the failback, after 2 packets, all come back",
         "second_failure: a cable goes in the handshake, after 2 packets, all come back")
# These connect by RDMA CM, for which the device is loaded in another way (mlx5_cm.py).
BY_CM = ("programs: rping*", "programs: ucmatose", "programs: timewait *",
         "programs: qperf *", "programs: rcopy*", "programs: riostream")
# What the device cannot do: to come back under an application's hands; windows; events of
# solicited receives only; UD, of which UCX has a QP for each connection. What of mlx5 is not
# protected: a CQ that a flush would overrun. SRQs have tests of their own (mlx5_srq.py). Atomics,
# which the kernel's driver does not post, stay: see the tests above. What libmlx5 does otherwise:
# at RESET it drops what was not polled, and it may wake once more than it was asked to. Open
# MPI's libfabric finds its device by an address, which is the one below. kmemleak is looked at
# once.
LEFT_OUT = ("perftest: *srq*", "perftest: ib_atomic*", "programs: Open MPI*", "programs: UCX*",
            "programs: pyverbs*", "*: *--srq",
            "exactly_once: one fadd *", "exactly_once: one cas *", "after_failover: atomics: *",
            "exactly_once: the answer to one fadd *", "exactly_once: the answer to one cas *",
            "exactly_once: an operator's move *", "exactly_once: * come* home*",
            "operations: module: send_inv", "operations: module: mw", "dead_nic: *atomic*",
            "operations: *solicited events", "application_qp: reset as errors are kept back",
            "failback: both ends asleep*", "perftest: ib_read_lat -e*",
            "second_failure: a small CQ and unsignaled work*", "policy: kmemleak *",
            "second_failure: the backup device is removed from under a returned QP")


# What is about QPs of the kernel's that are home, or about one that is left alone there
KEPT = ("failback: a move shows what it waits for", "failback: link switch, qp move",
        "failback: work that stands still without an error leaves its path",
        "after_failover: one CQ for QPs in every state", "second_failure: a key *",
        "exactly_once: *")


def among(title, patterns):
    """Whether it is one of those."""
    return any(fnmatch(title, pattern) for pattern in patterns)


def borrow():
    """Tests of other suites that begin with module and pairs."""
    for test in list(TESTS):
        title = f"{test.suite}: {test.name}"
        if (test.suite not in SUITES or test.state != SHIFT or not test.kernels
                or among(title, LEFT_OUT + BY_CM)):
            continue
        if not among(title, SHORT):
            variants.leave_out(f"mlx5: {title}")
        run = on_mlx5_kept if among(title, KEPT) else on_mlx5
        add("mlx5", title, partial(run, test.function), MORE)


register()
borrow()
