# SPDX-License-Identifier: GPL-2.0
"""The tests of each kernel, and the labs that do them side by side."""

import collections
import queue
import threading
import time

import registry
import shift
from report import elapsed, ktap_reason
from runner import Runner

# Tests of a run that are tried twice; if more fail, something is wrong.
MOST_AGAIN = 5
# Priority of nodes of the debug kernel, and of other kernels, as of nice(1): some 9 to 1. With 28
# to 1 a node of another kernel came so late that rxe sent again what was not lost, which ends QPs;
# with 4 to 1 those of the debug kernel took half as much time again.
DEBUG_FIRST = -7
BEHIND_DEBUG = 3


class Section:
    """All tests of one kernel, by one lab or more at a time; their lines.

    Only one section is shown as it goes, so that its tests stay together; what the
    others say is shown when it is their turn. Failures are told at once as well.
    """

    def __init__(self, report, kernel, tests):
        self.report = report
        self.kernel = kernel
        self.tests = collections.deque(tests)
        self.count = len(tests)
        self.good = True
        self.done = 0
        self.labs = 0
        self.runners = []
        self.built = False      # what its tests use
        self.stop = False
        self.lock = threading.Lock()
        self.lines = queue.SimpleQueue()
        self.say("    KTAP version 1")
        self.say(f"    1..{self.count}")

    def abort(self):
        """Let the tests that run fail, and begin no other."""
        self.stop = True
        for runner in self.runners:
            runner.cut()

    def cannot(self, missing):
        """None of its tests can be run, as these builds have failed."""
        self.report.failed += self.count
        self.stop = True
        self.good = False
        self.say(f"    # not run: {', '.join(missing)} failed")
        self.report.remember(f"nodes with {self.kernel}: {', '.join(missing)}")
        self.lines.put(None)

    def open(self):
        """Whether a lab finds something to do."""
        return self.built and bool(self.tests) and not self.stop

    def coming(self):
        """Whether it will be open, if nothing goes wrong."""
        return not self.built and not self.stop

    def say(self, text):
        """One line or more, in its turn."""
        self.lines.put(text)

    def show(self):
        """Print what it says until it has ended."""
        while True:
            line = self.lines.get()
            if line is None:
                self.report.suite_end(f"nodes with {self.kernel}",
                                      self.good and self.done == self.count)
                return
            self.report.say(line)

    def take(self, backwards):
        """The next test, if any, or the last one."""
        with self.lock:
            if not self.tests or self.stop:
                return None
            return self.tests.pop() if backwards else self.tests.popleft()

    def ended(self, title, passed, remark, text=None, told=()):
        """The result of one test, what it has told of itself, and why it failed."""
        with self.lock:
            self.done += 1
            self.good &= passed
            self.say(f"    {'ok' if passed else 'not ok'} {self.done} {title} # {remark}")
            if told:
                self.say(ktap_reason("\n".join(told)))
            if text:
                self.say(ktap_reason(text))
        if not passed:
            self.report.say(f"# {elapsed()} {self.kernel} failed: {title}")
            self.report.remember(f"{self.kernel} {title}", text)

    def put_off(self, title, remark, text):
        """One has failed, and counts when it was tried again."""
        with self.lock:
            self.done += 1
            self.good = False
            self.say(f"    not ok {self.done} {title} # tried again at the end; {remark}")
            self.say(ktap_reason(text))
        self.report.say(f"# {elapsed()} {self.kernel} failed, is tried again at the end: {title}")

    def leave(self):
        """A lab has no more to do here; the last one ends the section."""
        with self.lock:
            self.labs -= 1
            if not self.labs and (self.stop or not self.tests):
                self.lines.put(None)


class Sections:
    """What labs choose their next kernel from."""

    def __init__(self, sections):
        self.sections = sections
        self.late = []          # to try again: (section, test, what it said)
        self.stop = False
        self.changed = threading.Condition()

    def again(self, section, test, text):
        """Put a test off, to be tried again when all else was run; False: too many were."""
        with self.changed:
            if len(self.late) == MOST_AGAIN:
                return False
            self.late.append((section, test, text))
            return True

    def of(self, kernel):
        """The section of a kernel."""
        return next(section for section in self.sections if section.kernel == kernel)

    def built(self, kernel, missing):
        """All that its tests use is there, but for what could not be built."""
        with self.changed:
            if missing:
                self.of(kernel).cannot(missing)
            else:
                self.of(kernel).built = True
            self.changed.notify_all()

    def choose(self):
        """The one with the fewest labs at work, and whether to begin at its end.

        The debug kernel takes a minute to boot: a second lab of it is not worth that. Beside it
        there is one other lab, as its nodes nearly fill two processors. Of other kernels a second
        lab goes backwards: tests of one suite are in each other's way.
        """
        with self.changed:
            while True:
                left = [section for section in self.sections if section.open()
                        and not (section.labs and section.kernel == registry.DEBUG)]
                full = self.debug_and_another()
                if left and not full:
                    section = min(left, key=lambda section: section.labs)
                    section.labs += 1
                    return section, section.labs > 1
                if self.stop or not (full or any(section.coming() for section in self.sections)):
                    return None, False
                self.changed.wait()

    def debug_and_another(self):
        """Whether a lab of the debug kernel is at work and one of another kernel."""
        busy = [section.kernel for section in self.sections if section.labs]
        return registry.DEBUG in busy and len(busy) > 1

    def left(self, section):
        """A lab has ended there: another may begin elsewhere."""
        with self.changed:
            section.leave()
            self.changed.notify_all()

    def wanted(self, section):
        """Whether a lab of several there should go, as no other works at one that is built."""
        with self.changed:
            return section.labs > 1 and any(other.open() and not other.labs
                                            for other in self.sections)

    def beside(self, shown):
        """How far the others are that are at work, for a reader of that one."""
        others = [f"{section.kernel} at {section.done} of {section.count}"
                  for section in self.sections if section.labs and section != shown]
        return f" ({', '.join(others)})" if others else ""

    def give_up(self):
        """Begin no more tests, as something ended in a way that nobody thought of."""
        with self.changed:
            self.stop = True
            for section in self.sections:
                section.stop = True
                if not section.labs:
                    section.lines.put(None)
            self.changed.notify_all()


def new_runner(section, top, logs):
    """A lab for one kernel.

    Nodes of the full matrix have one processor, which takes the emulator two thirds of the time for
    the same traffic. Those of other kernels have two, so that threads meet each other as well.
    Nodes of the debug kernel go first: if they have to share the processors, a test takes up to
    three times as much of these. They wait for each other's processors, which the emulator does by
    spinning, and repeat what is late.
    """
    runner = Runner(section.kernel, shift.Built(top), logs,
                    1 if section.kernel in registry.FULL else 2,
                    DEBUG_FIRST if section.kernel == registry.DEBUG else BEHIND_DEBUG)
    section.runners.append(runner)
    return runner


def remark_on(runner, skip, seconds):
    """What is said of a test beside its result."""
    return (f"{seconds:.1f} s, {runner.processor:.1f} s of processors, nodes of "
            f"{runner.processors}" if skip is None else f"SKIP {skip}")


def lab_tests(section, backwards, sections, top, logs, deadline):
    """Tests of one kernel while there are any, in one lab as long as it stays clean."""
    report = section.report
    runner = new_runner(section, top, logs)
    try:
        while not sections.wanted(section) and (test := section.take(backwards)):
            title = f"{test.suite}: {test.name}"
            if time.monotonic() > deadline:
                section.ended(title, report.count(False, None), "out of time")
                continue
            section.say(f"    # {elapsed()} {section.kernel} running {title}"
                        f"{sections.beside(section)}")
            passed, skip, text, seconds = runner.run(test)
            report.spent(section.kernel, test.suite, seconds, runner.processor)
            remark = remark_on(runner, skip, seconds)
            if runner.again:
                section.say(f"    # a fresh lab: {runner.again}")
                report.remember(f"{section.kernel} {title}", runner.again, "begun again")
            if not passed and runner.late and sections.again(section, test, text):
                section.put_off(title, remark, text)
                continue
            section.ended(title, report.count(passed, skip), remark, text, runner.told)
    finally:
        runner.abandon()
        sections.left(section)


def second_tries(report, sections, top, logs):
    """Tests that failed, once more, one at a time, with the machine for themselves.

    These results count. What passes now is named at the end of the run, with its first failure.
    """
    for section, test, first in sections.late:
        title = f"{section.kernel} {test.suite}: {test.name}"
        report.say(f"# {elapsed()} {title}, once more")
        runner = new_runner(section, top, logs)
        try:
            passed, skip, text, seconds = runner.run(test)
            remark = remark_on(runner, skip, seconds)
        finally:
            runner.abandon()
        report.count(passed, skip)
        report.say(f"# {elapsed()} {title}: {'ok' if passed else 'not ok'}, {remark}")
        if runner.told:
            report.say(ktap_reason("\n".join(runner.told)))
        if passed:
            report.remember(title, first, "passed only when it was alone")
        else:
            report.say(ktap_reason(text))
            report.remember(title, text)


def lab_worker(sections, *where):
    """Go from kernel to kernel until no tests are left."""
    try:
        while True:
            section, backwards = sections.choose()
            if not section:
                break
            lab_tests(section, backwards, sections, *where)
    except BaseException:
        sections.give_up()
        raise
