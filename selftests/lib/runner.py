# SPDX-License-Identifier: GPL-2.0
"""Run tests on one lab: states, kernel logs, what is kept of a failure."""

import re
import time
import traceback

import kmsg
import shift
from registry import BARE, LOADED, SHIFT, Skip
from testbed import Cluster, Failure, LabError, Unready, each

# What is no matter of time: what test programs say if data, order or completions are wrong, and
# counters that never move; and suites about what nobody may do, or what a fault must do.
WRONG = re.compile(r"VIOLATION|\bwrong:? |not what was written|of another round|"
                   r"counter (illegal|msg_bad) moved")
NEVER_LATE = ("abi", "control", "netlink", "trust")


class Runner:
    """A lab of one kernel and the state its nodes are in."""

    def __init__(self, kernel, built, logs, processors=2, nice=0):
        self.kernel = kernel
        self.processors = processors    # of each node
        self.nice = nice                # of its nodes
        self.built = built
        self.logs = logs
        self.bed = None
        self.state = None
        self.again = self.broken = None
        self.late = False       # the last failure may have been one of time only
        self.told = []          # what the last test has told of itself, passed or not
        self.processor = 0      # seconds that nodes were computing in the last test

    def boot(self):
        """A fresh lab with everything installed."""
        if self.bed:
            self.bed.down()
        self.bed = Cluster(self.kernel, processors=self.processors, nice=self.nice)
        self.bed.up()
        shift.install(self.bed, self.built)
        self.state = BARE

    def close(self):
        """End the lab."""
        if self.bed:
            self.processor += self.bed.processor()
            self.bed.down()
            self.bed = None

    def cut(self):
        """From another thread: let the test that runs fail, soon."""
        try:
            if self.bed:
                self.bed.down()
        except (LabError, OSError):
            pass

    def prepare(self, state):
        """Bring the nodes into the state a test asks for."""
        if self.bed is None:
            self.boot()
        self.bed.plug_all()
        if self.bed.unsettled and self.state == SHIFT:
            shift.settled(self.bed)
        self.bed.unsettled = False
        if state == self.state:
            return
        was, self.state = self.state, None
        if was != BARE:
            shift.forget(self.bed)
        if state == LOADED:
            each(self.bed.nodes, shift.load)
        elif state == SHIFT:
            shift.setup(self.bed)
        self.state = state

    def run(self, test):
        """Run one test: (passed, skipped, message, seconds).

        Once more if the emulator has broken a node, or what it begins with did not come about:
        that says nothing of the test. Why is told.
        """
        self.again = None
        self.processor = -self.bed.processor() if self.bed else 0
        result = self.attempt(test)
        if self.broken and not result[0]:
            broken = self.broken
            result = self.attempt(test)
            self.again = broken
        if self.bed:
            self.processor += self.bed.processor()
        return result

    def attempt(self, test):
        """One run of it."""
        began = time.monotonic()
        self.broken = None
        self.late = False
        self.told = []
        trouble = []
        skipped = None
        brackets = None
        try:
            self.ready(test)
            self.bed.found = None
            self.told = self.bed.told = []
            brackets = kmsg.Brackets(self.bed, f"{test.suite}: {test.name}")
            brackets.begin()
            test.function(self.bed)
            self.bed.whole()
        except Skip as skip:
            skipped = str(skip)
        except (Failure, LabError, OSError, KeyError, ValueError) as error:
            trouble.append(str(error) if isinstance(error, (Failure, LabError))
                           else traceback.format_exc())
            if isinstance(error, Unready):
                self.broken = str(error).partition("\n")[0]
        state = ""
        if self.bed and trouble:
            programs, state = self.bed.found or shift.witness(self.bed)
            trouble += [text for text, tail in programs if tail not in trouble[0]]
        # An application's end is part of the test: its kernel log counts.
        # What a node that died said last is wanted in any case.
        if self.bed:
            try:
                self.bed.stop_processes()
            except (Failure, LabError, OSError) as error:
                trouble.append(str(error))
            if brackets:
                said = brackets.end()
                self.late = not (said or test.suite in NEVER_LATE or "VIOLATION" in state or
                                 WRONG.search("\n".join(trouble)))
                # before what programs printed: only the first lines are told once more at the end
                trouble[1:1] = said
                trouble += brackets.said() if trouble else []
                # what else a kernel complains of is never excused
                self.broken = brackets.broken() or (None if said else self.broken)
                self.keep(test, brackets, trouble, state)
        if trouble:
            # Whatever is wrong now must not be the next test's trouble.
            self.abandon()
        elif not skipped:
            self.state = test.leaves
        return (not trouble, skipped, "\n".join(trouble),
                time.monotonic() - began)

    def ready(self, test):
        """Prepare, once more on a fresh lab if the old one is not usable.

        Why that was so is told: it is the test's before, or the lab's.
        """
        try:
            self.prepare(test.state)
        except (Failure, LabError, OSError) as error:
            if self.bed is None:
                raise
            self.again = str(error).partition("\n")[0]
            self.abandon()
            self.prepare(test.state)

    def abandon(self):
        """Give the lab up; the next test boots a new one."""
        try:
            self.close()
        except (Failure, LabError, OSError):
            pass
        self.bed = None
        self.state = None

    def keep(self, test, brackets, trouble, state):
        """Write what a reader of a failure wants to see."""
        if not trouble:
            return
        name = f"{test.suite}-{test.name}".replace("/", "-").replace(" ", "_")
        place = self.logs / self.kernel / f"{name}.log"
        place.parent.mkdir(parents=True, exist_ok=True)
        with open(place, "w", encoding="utf-8") as out:
            out.write("\n".join(trouble) + "\n")
            for node in self.bed.nodes:
                out.write(f"\n==== {node.name}: kernel log\n")
                out.write(brackets.text(node))
            out.write(state)
