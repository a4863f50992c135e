# SPDX-License-Identifier: GPL-2.0
"""Second failures: what dies while a switch, or the backup, is in use already."""

from functools import partial

import shift
from registry import FULL, MAIN, STOCK, add, test
from testbed import CONTROL_RAIL, TOP, check, wait_for
from traffic import QP_TIMEOUT, SPOILT_RECEIVE, Verify, spoilt_receive
from nodes.failover import (beating, dropped, fall_back, goes_silent, pull, shape, start,
                            survives)
from nodes.failback import BIDIR, everywhere, home, telling

QPS = 2


def in_fallback(bed, verify):
    """A cable is out, both ends are on the backup."""
    survives(bed, verify, "local", verify.qps, finish=False)


def is_returned(bed, verify):
    """Drained and taken back."""
    verify.go()
    verify.more(1)
    shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
    everywhere(bed, verify, "fallback")
    home(bed, verify)
    verify.more(1)


def is_asking(bed, verify):
    """The peer's backup died a moment before the fault: nobody answers."""
    verify.go()
    verify.more(1)
    bed.nodes[1].link(1, False)
    pull(bed, "local")
    telling(verify, lambda: wait_for("a switch", lambda: any(
        row["state"] == "switching" for row in shift.qps(bed.nodes[0])), 30))


def stands_still(rail, skip, begin, bed, verify):
    """A switch that has begun, as its messages are lost on the path that it goes to.

    Nothing of the application's is there yet, and no heartbeats are.
    """
    verify.go()
    verify.more(1)
    bed.drop(bed.nodes[1], rail, direction="in", opcode="RC_SEND_*", skip=skip)
    begin(bed)
    telling(verify, lambda: wait_for("a message is lost", lambda: dropped(bed, rail) > 0, 60))
    check(moves_on(bed), "no QP is in a switch")


def agrees(bed, verify):
    """Asked and answered; the ends cannot tell each other how far they got."""
    with beating(bed, 0):
        stands_still(1, 2, lambda bed: pull(bed, "local"), bed, verify)


def is_settling(bed, verify):
    """A move waits for work that will not finish: its path is silent."""
    verify.go()
    verify.more(1)
    goes_silent(bed)
    shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
    telling(verify, lambda: wait_for("a switch", lambda: moves_on(bed), 30))


def returns(bed, verify):
    """The same on the way home."""
    in_fallback(bed, verify)
    bed.plug_all()
    shift.wait_session(bed, 2)
    with beating(bed, 0):
        stands_still(0, 2, lambda bed: shift.must(
            bed.nodes[0], "pair", "undrain", bed.nics.default), bed, verify)


STATES = {"fallback": in_fallback, "returned": is_returned, "asking": is_asking,
          "agreeing": agrees, "settling": is_settling, "returning": returns}


def no_qp_left(bed):
    """Whatever the applications had is gone."""
    for node in bed.nodes:
        wait_for(f"{node.name}: no QP left", lambda node=node: not shift.qps(node), 60)


@test("second_failure", "an application killed in every state", STOCK)
def killed(bed):
    """Nothing is left of it, the next one runs, the module can be unloaded."""
    client = bed.nodes[0]
    for reach in STATES.values():
        verify = start(bed, *BIDIR, qps=QPS)
        reach(bed, verify)
        check(reach in (in_fallback, is_returned) or moves_on(bed), "no QP is in a switch")
        client.must("killall -9 shift_verify")
        check(verify.client.wait(60) == 137, "the client was not killed")
        verify.server.wait(90)
        no_qp_left(bed)
        shift.must(client, "pair", "undrain", bed.nics.default)
        bed.plug_all()
        shift.wait_session(bed)
    shift.forget(bed)
    shift.setup(bed)


def delete(node, device):
    """Remove an RDMA device; rxe waits until applications have closed it."""
    return node.start(f"rdma link delete {device}")


def reasons(node):
    """States of a node's QPs, with why they are not protected."""
    return {(row["state"], row.get("reason")) for row in shift.qps(node)}


@test("second_failure", "the backup device is removed from under a returned QP")
def backup_removed(bed):
    """It goes on where it is, with new memory too, unprotected."""
    client = bed.nodes[0]
    verify = start(bed, *BIDIR, qps=QPS)
    counters = shift.Counters(bed)
    try:
        is_returned(bed, verify)
        delete(client, "rxe1").expect(0)
        verify.more(3)
        check(reasons(client) == {("unprotected", "device-gone")},
              f"the QPs are {reasons(client)}")
        # The pair is there again; these QPs' memory has no mirror.
        shift.bring_back(client)
        verify.more(2)
        check(reasons(client) == {("unprotected", "device-gone")},
              f"the QPs are {reasons(client)}")
        counters.still("failed", "illegal", "msg_bad")
        pull(bed, "local")
        verify.fails()
    finally:
        bed.stop_processes()
        shift.bring_back(client)
    bed.plug_all()
    shift.wait_session(bed)
    verify = start(bed, *shape(4096, 1))
    survives(bed, verify, "local")


def device_removed(reach, device, bed):
    """The application gets an error, the device goes, all can be set up again."""
    client = bed.nodes[0]
    verify = start(bed, *BIDIR, qps=QPS)
    try:
        reach(bed, verify)
        removal = delete(client, device)
        status = verify.client.wait(120)
        # its own QP was reset: as its device goes a post may be refused before the error
        # is polled
        refused = device == "rxe0" and ": posting: Invalid argument" in verify.client.text
        check(status == 3 or (status == 1 and refused),
              f"the client ended with {status}:\n{verify.client.tail()}")
        if refused:
            verify.server.expect(3)
        else:
            verify.fails(status=None)
        removal.expect(0)
        no_qp_left(bed)
    finally:
        bed.stop_processes()
        shift.bring_back(client)
    bed.plug_all()
    shift.must(client, "pair", "undrain", bed.nics.default)
    shift.wait_session(bed)
    verify = start(bed, *shape(4096, 1))
    verify.go()
    verify.more(1)
    verify.finish()


for _state, _device in (("fallback", "rxe1"), ("fallback", "rxe0"), ("returned", "rxe0")):
    add("second_failure", f"{_device} is removed in state {_state}",
        partial(device_removed, STATES[_state], _device))


def on_default(bed, verify):
    """Nothing has happened yet."""
    del bed
    verify.go()
    verify.more(1)


def in_switch(bed, verify):
    """The cable goes and the peer with it."""
    verify.go()
    verify.more(1)
    bed.drop(bed.nodes[1], 1, direction="in", opcode="RC_SEND_*")
    pull(bed, "local")
    wait_for("a switch", lambda: moves_on(bed), 30)


def lives_again(bed, links=0):
    """The server, after its reset: all that it had but its applications."""
    server = bed.nodes[1]
    shift.install(bed, shift.Built(TOP), [server])
    bed.plug_all()
    shift.load(server)
    shift.pair(server)
    shift.introduce(bed)
    shift.wait_session(bed, links)


def peer_resets(reach, bed):
    """The survivor gets its error; the peer's next life is known as a new one."""
    client, server = bed.nodes[:2]
    # retries of its own NIC are what ends it there: rxe's fences may wait for ever after one
    verify = start(bed, *BIDIR, "--fence", 8 if reach is in_fallback else 0, qps=QPS)
    reach(bed, verify)
    illegal = shift.stats(client)["illegal"]
    server.reset()
    status = verify.client.wait(120)
    check(status == 3, f"the client ended with {status}:\n{verify.client.tail()}")
    check(shift.stats(client)["illegal"] == illegal, "an illegal transition")
    wait_for(f"{client.name}: no QP left", lambda: not shift.qps(client), 60)
    lives_again(bed)
    verify = start(bed, *shape(4096, 1))
    survives(bed, verify, "local")


for _name, _reach in (("default", on_default), ("fallback", in_fallback),
                      ("a switch", in_switch)):
    add("second_failure", f"the peer is reset in {_name}", partial(peer_resets, _reach))


def peer_comes_back(away, program, order, bed):
    """An idle QP has noticed nothing when its links are up again, to another life of the peer.

    It must not be shown as protected by that; nor wait for what the other life would know.
    """
    client, server = bed.nodes[:2]
    words = [program, bed.nics.default]
    server.start(words, env=bed.nics.env).wait_line("^listening$")
    ours = client.start([*words, server.address(CONTROL_RAIL)], env=bed.nics.env)
    ours.wait_line("^connected$")
    for node in (client, server):
        shift.protected(node, 1)
    shift.wait_session(bed, 2)
    if away:
        fall_back(bed)
    before = shift.stats(client)
    server.reset()
    lives_again(bed, 2)
    if away:
        shift.protected(client, 1, "fallback")
    else:
        shift.wait_reason(client, "peer-unprotected")
    ours.send(order)
    ours.wait_line("^(error|wrong:) transport retry counter exceeded", 90)
    ours.wait(60)
    no_qp_left(bed)
    now = shift.stats(client)
    moved = [now[name] - before[name] for name in ("switches", "failed", "illegal")]
    check(moved == [0, int(away), 0], f"switches, failed, illegal: {moved}")
    verify = start(bed, *shape(4096, 1))
    survives(bed, verify, "local")


# A WRITE on the backup needs a key that the peer tells; a SEND does not.
for _name, _away, _program, _order in (
        ("default", False, "sleep_edge", "send 1"), ("fallback", True, "sleep_edge", "send 1"),
        ("fallback, a key is asked for", True, "dereg_edge", "go")):
    add("second_failure", f"the peer comes back under an idle QP in {_name}",
        partial(peer_comes_back, _away, _program, _order))


@test("second_failure", "both ends start a move at the same moment", STOCK)
def both_move(bed):
    """Two asks, one switch for each QP: the higher epoch wins.

    An end that is told late only follows. So it goes on until each has asked, whoever is told
    first. Whether both ask in one move is left to chance; the simulator has many such moves.
    """
    verify = start(bed, *BIDIR, qps=4)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(1)
    turn = 0
    while turn < 3 or turn < 20 and not all(counters.delta("moves")):
        for verb, state in (("drain", "fallback"), ("undrain", "returned")):
            for node in bed.nodes[::1 if turn % 2 else -1]:
                node.start(["shiftctl", "pair", verb, bed.nics.default])
            if verb == "drain":
                everywhere(bed, verify, state)
            else:
                home(bed, verify)
            verify.more(1)
        turn += 1
    verify.finish()
    counters.moved("returns", 12)
    counters.moved("moves")
    counters.still("faults")
    counters.still("failed", "illegal", "msg_bad")


@test("second_failure", "both paths die in fallback: the error comes in time")
def nothing_left(bed):
    """The one that is in use and the one that was left."""
    verify = start(bed, *BIDIR, qps=QPS)
    in_fallback(bed, verify)
    counters = shift.Counters(bed)
    bed.nodes[1].link(0, False)
    bed.nodes[1].link(1, False)
    verify.fails(timeout=90)
    counters.still("illegal")


def moves_on(bed):
    """Whether a QP of either node is in a switch."""
    return any(row["state"] in ("switching", "wait-signaled", "wait-sinked")
               for node in bed.nodes[:2] for row in shift.qps(node))


def goes_down(bed, rail, side=1):
    """The server's cable, or the client's, and its kernel knows."""
    node = bed.nodes[side]
    node.link(rail, False)
    wait_for(f"{node.name}: a port down", lambda: "ACTIVE" not in node.read(
        f"/sys/class/infiniband/rxe{rail}/ports/1/state"))


def in_handshake(skip, options, bed):
    """A second cut, after so many packets of the switch: both paths are dead for a while.

    The application's own retries outlast that, so that each QP goes on, on one path or the other.
    """
    # what is left on its own NIC is retried there, and rxe's fences may wait for ever then
    verify = start(bed, *BIDIR, "--fence", 0, *options, qps=4, timeout=22)
    shift.wait_session(bed, 2)
    counters = shift.Counters(bed)
    with beating(bed, 0):
        stands_still(1, skip, lambda bed: pull(bed, "local"), bed, verify)
        goes_down(bed, 1)
        check(moves_on(bed), "the switch was over before")
        bed.plug_all()
        telling(verify, lambda: wait_for("the end of each switch", lambda: not moves_on(bed),
                                         120))
        verify.more(2)
        verify.finish()
    check(sum(counters.delta("faults")) > 0, "no fault was counted")
    counters.still("failed", "illegal", "msg_bad")


@test("second_failure", "both cables go in the handshake, and stay out")
def in_handshake_for_good(bed):
    """Half agreed, and nobody answers any more: each QP ends in its error."""
    verify = start(bed, *BIDIR, "--fence", 0, qps=QPS, timeout=QP_TIMEOUT)
    shift.wait_session(bed, 2)
    counters = shift.Counters(bed)
    stands_still(1, 2, lambda bed: pull(bed, "local"), bed, verify)
    goes_down(bed, 1)
    verify.fails(timeout=150)
    check(sum(counters.delta("faults")) > 0, "no fault was counted")
    counters.still("illegal", "msg_bad")
    no_qp_left(bed)


def in_handshake_for_long(skip, bed):
    """Half agreed, and both paths are dead for longer than any deadline: the QPs wait, as their own
    NICs would have done.
    """
    verify = start(bed, *BIDIR, "--fence", 0, qps=QPS, timeout=22)
    shift.wait_session(bed, 2)
    counters = shift.Counters(bed)
    with beating(bed, 0):
        stands_still(1, skip, lambda bed: pull(bed, "local"), bed, verify)
        goes_down(bed, 1)
        check(moves_on(bed), "the switch was over before")
        wait_for("a QP waits", lambda: sum(counters.delta("outages")) >= 2, 120)
        bed.plug_all()
        telling(verify, lambda: wait_for("the end of each switch", lambda: not moves_on(bed), 120))
    verify.more(3)
    verify.finish()
    check(sum(counters.delta("faults")) > 0, "no fault was counted")
    counters.still("failed", "illegal", "msg_bad")


for _skip in (1, 3):
    add("second_failure", f"both cables go in the handshake, after {_skip} messages, and come back late",
        partial(in_handshake_for_long, _skip))


def in_failback(skip, options, bed):
    """A cut on the way home: each QP stays, or comes back to where it was."""
    verify = start(bed, *BIDIR, *options, qps=4)
    in_fallback(bed, verify)
    bed.plug_all()
    shift.wait_session(bed, 2)
    counters = shift.Counters(bed)
    with beating(bed, 0):
        stands_still(0, skip, lambda bed: shift.must(
            bed.nodes[0], "pair", "undrain", bed.nics.default), bed, verify)
        goes_down(bed, 0)
        bed.plug_all()
        telling(verify, lambda: wait_for("the end of each switch", lambda: not moves_on(bed),
                                         120))
        verify.more(2)
        verify.finish()
    check(sum(counters.delta("moves")) > 0, "no move was counted")
    counters.still("failed", "illegal", "msg_bad")


for _skip, _kernels in ((0, FULL), (2, STOCK), (5, FULL)):
    add("second_failure", f"a cable goes in the handshake, after {_skip} packets, all come back",
        partial(in_handshake, _skip, ()), _kernels)
    add("second_failure", f"a cable goes in the failback, after {_skip} packets, all come back",
        partial(in_failback, _skip, ()), _kernels)
for _name, _function in (("handshake", in_handshake), ("failback", in_failback)):
    add("second_failure", f"a cable goes in the {_name}, after 2 packets, all come back --srq",
        partial(_function, 2, ("--srq",)))


def in_replay(options, skip, bed):
    """What was posted again arrives in part, or not at all; the other path is good by then."""
    client = bed.nodes[0]
    verify = start(bed, *options, "--bidir", qps=QPS, timeout=21)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(1)
    for node in bed.nodes[:2]:
        bed.drop(node, 1, direction="in", opcode="RC_WRITE_*", skip=skip)
    pull(bed, "local")
    telling(verify, lambda: wait_for("a replay that is lost", lambda: sum(
        counters.delta("replayed")) > 0 and dropped(bed, 1) > 0, 60))
    client.link(0, True)
    bed.plugged(client)
    shift.wait_session(bed, 2)
    goes_down(bed, 1)
    everywhere(bed, verify, "returned")
    verify.more(3)
    verify.finish()
    counters.moved("returns", QPS)
    counters.still("failed", "illegal", "msg_bad")


add("second_failure", "the backup's cable goes in the replay",
    partial(in_replay, shape(4096, QPS), 0), STOCK)
add("second_failure", "the backup's cable goes in the replay, after 7 packets of all kinds",
    partial(in_replay, BIDIR, 7))


def own_error(moment, options, bed):
    """The switch changes nothing about an error of the application's own."""
    client, server = bed.nodes[:2]
    verify = start(bed, *SPOILT_RECEIVE, *options)
    counters = shift.Counters(bed)
    if moment == "met":
        # what the peer's NIC says of it is lost
        bed.drop(client, 0, direction="in", opcode="RC_ACK", skip=5)
        verify.go()
        verify.server.wait_line("^error qp 0 wr ")
        check(dropped(bed) > 0, "no answer was lost")
    client.link(0, False)
    if moment != "met":
        verify.go()
    # it may be met at the very moment of the fault
    spoilt_receive(verify, nak_lost=moment == "met")
    wait_for("a port down", lambda: "ACTIVE" not in client.read(
        "/sys/class/infiniband/rxe0/ports/1/state"))
    if moment != "met":
        check(sum(counters.delta("faults")) > 0, "no fault was counted")
    counters.still("illegal", "msg_bad")


# Of 64 receives the one that is spoilt is there from the beginning, of 32 it comes later.
for _moment, _depth, _options in (
        ("there", 16, ()), ("there", 16, ("--srq",)), ("posted", 8, ()),
        ("met", 8, ()), ("met", 8, ("--srq",))):
    add("second_failure", " ".join((f"a bad receive is {_moment} at the fault", *_options)),
        partial(own_error, _moment, ("--depth", _depth, *_options)))


@test("second_failure", "a small CQ and unsignaled work: link switch, and a cable")
def small_queue(bed):
    """The CQ has room for the signaled ones and for nothing that a fence might add."""
    client = bed.nodes[0]
    verify = start(bed, "--size", 4096, "--depth", 128, "--signal-every", 64,
                   "--chain", 32, "--small-cq", "--progress", 100, qps=QPS)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(1)
    link = shift.links(client, "rxe0")[0]["link"]
    shift.must(client, "link", "switch", str(link))
    everywhere(bed, verify, "fallback")
    verify.more(2)
    home(bed, verify)
    verify.more(1)
    pull(bed, "local")
    everywhere(bed, verify, "fallback")
    verify.more(2)
    verify.finish()
    counters.moved("returns", QPS)
    counters.moved("switches", 3 * QPS)
    counters.still("failed", "illegal", "msg_bad")


@test("second_failure", "a small CQ and unsignaled work: unprotected before the fault", ("6.12",))
def too_small_queue(bed):
    """Where flushes are counted, each of which has to be in the CQ: as without the module."""
    client = bed.nodes[0]
    verify = Verify(*bed.nodes[:2], "--size", 4096, "--depth", 128, "--signal-every", 64,
                    "--chain", 32, "--small-cq", "--progress", 100, "--qp-timeout", QP_TIMEOUT)
    shift.wait_reason(client, "operation")
    counters = shift.Counters(bed)
    # earlier tests have left theirs
    for node in bed.nodes[:2]:
        node.must(f"echo >{shift.STEPS}/trace")
    verify.go()
    verify.more(1)
    shift.wait_reason(client, "operation")
    pull(bed, "local")
    # one end has an error of its own, and how they end differs: flushes may have overrun the CQ
    check(verify.client.wait(120) != 0, "there was no fault")
    counters.still("switches", "illegal", "msg_bad")
    # The error may be found by an end that has not seen the fault yet, and keeps it back until it
    # has asked. The other one has left the protection, and says so on a path that is dead: it has
    # to say it again.
    for node in bed.nodes[:2]:
        steps = shift.steps(node, 1000)
        check("shift_qp_transition" in steps, f"{node.name}: no step was recorded: {steps}")
        check("from=ASKED event=DEADLINE" not in steps,
              f"{node.name}: an error was kept back until a deadline")
    bed.stop_processes()


def cut_at_once(bed, take_back):
    """The kernels may not even have seen the cable."""
    pull(bed, "local")
    take_back()


def cut_and_moving(bed, take_back):
    """Whatever the switch has come to."""
    pull(bed, "local")
    wait_for("a switch", lambda: any(row["state"] != "default" for row in
                                     shift.qps(bed.nodes[1])), 30)
    take_back()


def cut_and_held(bed, take_back):
    """Both ends are stopped, and what each got is not told: all is still to be replayed."""
    def held():
        return {row["state"] for row in shift.qps(bed.nodes[1])} == {"switching"}
    with beating(bed, 0):
        bed.drop(bed.nodes[1], 1, direction="in", opcode="RC_SEND_*", skip=1)
        pull(bed, "local")
        wait_for("a message is lost", lambda: dropped(bed, 1) > 0, 60)
        check(held(), "its QP is in no switch")
        take_back()
        check(held(), "the switch was over before")
        bed.undrop()


@test("second_failure", "memory is deregistered and used again amid a switch", MAIN)
def deregistered(bed):
    """No replay reaches memory that the application has taken back."""
    client, server = bed.nodes[:2]
    for cut in (cut_at_once, cut_and_moving, cut_and_held):
        words = ["dereg_edge", bed.nics.default]
        serving = server.start(words, env=bed.nics.env)
        serving.wait_line("^listening$")
        writing = client.start([*words, server.address(CONTROL_RAIL)], env=bed.nics.env)
        serving.wait_line("^connected$")
        for node in bed.nodes[:2]:
            shift.protected(node, 1)
        counters = shift.Counters(bed)
        writing.send("go")
        writing.wait_line("^progress$")

        def take_back(serving=serving):
            serving.send("go")
            serving.wait_line("^deregistered$")
        cut(bed, take_back)
        writing.wait_line("^error ")
        writing.expect(0)
        serving.send("look")
        serving.wait_line("^untouched$")
        serving.expect(0)
        check(sum(counters.delta("faults")) >= 1, "no fault was counted")
        counters.still("illegal")
        no_qp_left(bed)
        bed.plug_all()
        shift.wait_session(bed)
