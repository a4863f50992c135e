# SPDX-License-Identifier: GPL-2.0
"""Random schedules: traffic, and one to four things that happen to it.

All of a schedule follows from a seed and its number. A fixed short draw is part of
the tests; selftests/campaign runs as many as it is told to.
"""

import random
from contextlib import nullcontext
from functools import partial

import shift
from registry import BARE, MAIN, STOCK, add, test
from testbed import Failure, check, wait_for
from traffic import BULK_TIMEOUT
from nodes.failover import atomics_move, beating, dropped, start
from nodes.second_failure import goes_down, moves_on

SEED = 20261121
NUMBERS = {1: MAIN, 2: STOCK, 3: ("6.1",), 4: ("6.1",), 12: MAIN}
WRONG = 2, 107          # seed and number: sends and writes of 4 QPs, requests lost once

WINDOWS = ["send_inv", "mw"]
ATOMICS = ["fadd", "cas"]
OPERATIONS = ("write", "write_imm", "send", "send_imm", "read")
# What is lost at one end. rxe may repeat for ever what is lost in part only; so the
# cable follows, but when everything is lost.
LOSSES = {
    "everything-in": {"direction": "in"},
    "answers": {"direction": "in", "opcode": "RC_ACK"},
    "read-responses": {"direction": "in", "opcode": "RC_READ_RESP_*"},
    "requests": {"direction": "out", "opcode": "RC_[SW]*"},
}


class Event:
    """Something that moves all QPs to the other NIC."""

    def __init__(self, draw, operations, away):
        self.away = away            # from the backup
        kinds = ["cable"] * 3 + ["operator", "everything-in"]
        if operations != ["read"]:
            kinds += ["answers", "requests"]
        if "read" in operations:
            kinds.append("read-responses")
        self.kind = draw.choice(kinds)
        self.side = draw.choice((0, 1))
        self.skip = draw.choice((0, 0, 1, 2, 5, 30))
        self.more = draw.randint(1, 3)
        self.loser = 0              # the node at which packets are lost

    def __str__(self):
        loser = ", lost at 1" if self.loser else ""
        return (f"{self.kind} at {'backup' if self.away else 'default'}"
                f"/{self.side}+{self.skip}{loser}")

    def choose_loser(self, draw, bidir):
        """Either end, if there is something to lose: the server sends only if both do."""
        if self.kind == "everything-in" or bidir and self.kind in LOSSES:
            self.loser = draw.choice((0, 1))

    def happen(self, bed):
        """Before it the other path was made good."""
        rail = int(self.away)
        if self.kind == "operator":
            shift.must(bed.nodes[self.side], "pair",
                       "undrain" if self.away else "drain", bed.nics.default)
        elif self.kind == "cable":
            goes_down(bed, rail, self.side)
        else:
            bed.drop(bed.nodes[self.loser], rail, skip=self.skip, **LOSSES[self.kind])
            wait_for("packets lost", lambda: dropped(bed, rail) > 0)
            if self.kind != "everything-in":
                goes_down(bed, rail, self.side)

    def caused(self, bed):
        """Somebody moved for this, and not for anything else that went wrong meanwhile."""
        causes = {row["cause"] for node in bed.nodes[:2] for row in shift.qps(node)}
        wanted = {"operator"} if self.kind == "operator" else {"port", "cqe", "heartbeat"}
        check(causes & wanted, f"{self}: they moved for {causes}")

    def again(self, bed):
        """What came at a moment at which a QP could not move is said again."""
        if self.kind == "operator":
            self.happen(bed)


class Schedule:
    """What is drawn, and how it is run."""

    def __init__(self, seed, number):
        draw = random.Random(f"{seed}/{number}")
        self.number = number
        self.ops = draw.sample(OPERATIONS, draw.randint(1, len(OPERATIONS)))
        self.qps = draw.choice((1, 1, 2, 4, 8))
        self.size = draw.choice(("0-200", "1-5000", "0-9000", "1000-40000"))
        depth = draw.choice((8, 16, 32))
        self.options = ["--seed", draw.randrange(1 << 31), "--depth", depth,
                        "--signal-every", draw.choice((1, 1, 3, 8))]
        for option, chance in (("--bidir", .6), ("--events", .3), ("--shared-cq", .3),
                               ("--resize-cq", .1), ("--guard", .3), ("--inline", .2),
                               ("--srq", .2)):
            # all are guarded; it is drawn as it was, so that others are what they were
            if draw.random() < chance or option == "--guard":
                self.options.append(option)
        self.options += ["--poll", draw.choice(("cq", "start")),
                         "--post", draw.choice(("send", "wr"))]
        count = draw.choice((1, 1, 2, 2, 3, 4))
        self.events = [Event(draw, self.ops, bool(i % 2)) for i in range(count)]
        self.timeout = BULK_TIMEOUT
        more = draw.random()
        if more < .2:
            self.add_windows()
        elif more > .9:
            self.add_atomics()
        for event in self.events:
            event.choose_loser(draw, "--bidir" in self.options)
        self.inside = None          # packets of the last switch until it is interrupted
        if .2 <= more <= .9 and "--srq" not in self.options and draw.random() < .3:
            self.inside = draw.choice((0, 1, 2))
            self.options += ["--allow-error", "--fence", 0]

    def __str__(self):
        return (f"{self.number}: {','.join(self.ops)} of {self.size} B, {self.qps} QPs, "
                f"{' '.join(map(str, self.options))}; {', '.join(map(str, self.events))}"
                + ("" if self.inside is None else f", interrupted+{self.inside}"))

    def add_windows(self):
        """With what rxe executes once more in a retry, and then fails: nothing is retried."""
        self.ops += WINDOWS
        self.timeout = 21
        for event in self.events:
            if event.kind != "operator":
                event.kind = "cable"

    def add_atomics(self):
        """One whose answer is lost is an error: they are moved by operators only."""
        self.ops += ATOMICS
        for event in self.events:
            event.kind = "operator"

    def moved(self, bed, event, verify):
        """All QPs have arrived where the event sends them.

        One that was handed back is unprotected, too, while the cable is out that it came by.
        """
        want = "returned" if event.away else "fallback"
        seen = []

        def arrived():
            check(verify.client.status is None and verify.server.status is None,
                  f"{event}: a program has ended")
            rows = [row for node in bed.nodes[:2] for row in shift.qps(node)]
            states = [(row["state"], row.get("reason")) for row in rows]
            if states and states not in seen:
                seen.append(states)
            if len(states) == 2 * self.qps and all(
                    state in shift.alike(bed, want) or reason == "no-session" and event.away
                    and bed.nics.gives_back for state, reason in states):
                return True
            event.again(bed)
            return False
        try:
            wait_for(f"all QPs are {want} after {event}", arrived, 180)
        except Failure as failure:
            raise Failure(f"{failure}; their states were {seen[-6:]}\nclient:\n{verify.client.tail()}\n"
                          f"server:\n{verify.server.tail()}") from None

    def run(self, bed):
        """Traffic, the events, traffic in between, all verified."""
        with atomics_move(bed) if ATOMICS[0] in self.ops else nullcontext():
            self.run_it(bed)

    def run_it(self, bed):
        """The same, where atomics may be moved if there are any."""
        # no rest: an event of the schedule is to find as much under way as can be
        verify = start(bed, "--ops", ",".join(bed.nics.has(self.ops)), "--mix", "--size",
                       self.size, "--progress", 20, "--pace", 0, *bed.nics.has(self.options),
                       qps=self.qps, timeout=self.timeout)
        counters = shift.Counters(bed)
        try:
            self.happens(bed, verify)
        finally:
            for node in bed.nodes[:2]:
                shift.must(node, "pair", "undrain", bed.nics.default)
        counters.still("illegal", "msg_bad")
        whole = len(self.events) - (self.inside is not None)
        counters.moved("switches", self.qps * whole)
        if whole == len(self.events):
            counters.still("failed")

    def nowhere_else(self, bed, event):
        """All QPs are where the event finds them: nothing else has moved them.

        One that is given back is on its way for a moment.
        """
        want = {"fallback"} if event.away else {"default", "returned"}

        def there():
            states = {row["state"] for node in bed.nodes[:2] for row in shift.qps(node)}
            check(not states & ({"default", "returned", "fallback"} - want),
                  f"before {event} QPs are {states}")
            return states <= want
        wait_for(f"all QPs are {' or '.join(want)}", there, 60)

    def interrupted(self, bed, event):
        """What the event begins stands still, and the path that it goes to dies, too.

        Then all is well: each QP goes on, on either path, or ends in an error that is right.
        """
        rail = int(not event.away)
        counters = shift.Counters(bed)
        with beating(bed, 0):
            bed.drop(bed.nodes[1], rail, direction="in", opcode="RC_SEND_*", skip=self.inside)
            event.happen(bed)
            wait_for("a message lost in the switch", lambda: dropped(bed, rail) > 0)
            # an operator's move is called off soon, and tried again
            check(moves_on(bed) or any(counters.delta("abandoned")),
                  f"{event}: over before it was interrupted")
            goes_down(bed, rail, event.side)
            bed.undrop()
            bed.plug_all()
            wait_for("the end of each switch", lambda: not moves_on(bed), 180)

    def happens(self, bed, verify):
        """The events, with traffic in between, to the end of the program."""
        verify.go()
        for event in self.events:
            bed.plug_all()
            shift.wait_session(bed, 2)
            verify.more(event.more)
            before = shift.Counters(bed)
            self.nowhere_else(bed, event)
            if self.inside is not None and event == self.events[-1]:
                self.interrupted(bed, event)
            else:
                event.happen(bed)
                self.moved(bed, event, verify)
                event.caused(bed)
            check(sum(before.delta("faults") + before.delta("moves")) > 0,
                  f"{event}: nobody asked to change the path")
        if self.inside is None:
            verify.more(2)
            verify.finish()
        else:
            verify.client.send("stop")
            verify.end()


for _number, _kernels in NUMBERS.items():
    add("random_schedule", f"{_number} of seed {SEED}", partial(Schedule(SEED, _number).run),
        _kernels)


@test("control", "a schedule with a module that replays from a wrong point fails", state=BARE)
def wrong_schedule(bed):
    """What the campaign draws can fail: requests are lost among writes, and a byte is missing."""
    shift.setup(bed, shift.WRONG_MODULE)
    counters = shift.Counters(bed)
    said = [len(node.console) for node in bed.nodes]
    try:
        Schedule(*WRONG).run(bed)
    except Failure as failure:
        # An end all of whose packets were executed is one ahead of what it has sent: it fails
        # before it replays, and its kernel says why.
        check(sum(counters.delta("switches")) > 0 or any(
            "progress unknown" in node.console[start:] for node, start in zip(bed.nodes, said)),
              f"it failed before a failover: {failure}")
        # what is missing may be seen by the program, or by the receiver's NIC
        check(any(wrong in process.text for process in bed.processes
                  for wrong in ("VIOLATION", "error completion")),
              f"it failed for another reason: {failure}")
    else:
        raise Failure("not caught")
    finally:
        bed.stop_processes()
        bed.plug_all()
        shift.forget(bed)
