# SPDX-License-Identifier: GPL-2.0
"""Counts, KTAP lines, and what is told once more at the end."""

import collections
import re
import threading
import time

TOLD = 60                   # lines of a failure that are told once more at the end
SHORT = 200                 # characters of its first line that are told beside its title
LAST = 12                   # lines of a log that tell why a makefile has ended
BEGAN = time.monotonic()
RESULT = re.compile(r"^(\s*)(not ok|ok) \d+\s*(?:- )?(.*)$")


def clock(seconds):
    """As minutes and seconds, for the reader."""
    return f"{int(seconds) // 60:02}:{int(seconds) % 60:02}"


def elapsed():
    """Since the start."""
    return clock(time.monotonic() - BEGAN)


def ktap_reason(text):
    """A failure's text as KTAP comments."""
    return "\n".join(f"    # {line}" for line in text.splitlines())


class Report:
    """Counts and KTAP lines."""

    def __init__(self, strict):
        self.strict = strict
        self.passed = self.failed = self.skipped = self.suites = 0
        self.remarks = []
        self.titles = []
        self.times = collections.defaultdict(dict)
        self.lock = threading.Lock()

    def say(self, text):
        """One line, at once."""
        print(text, flush=True)

    def count(self, passed, skip_reason):
        """Take one result; the one that counts."""
        with self.lock:
            if skip_reason is not None:
                excused = skip_reason.lower().startswith("cannot run here")
                if not self.strict or excused:
                    self.skipped += 1
                    return True
                passed = False
            if passed:
                self.passed += 1
            else:
                self.failed += 1
            return passed

    def remember(self, title, text=None, what="failed"):
        """This is told once more at the end: of a long log the middle gets lost."""
        lines = (text or "").splitlines()
        head = f"# {what}: {title}"
        with self.lock:
            self.titles.append(": ".join([head, *(line.strip()[:SHORT] for line in lines[:1])]))
            self.remarks.append("\n#   ".join([head, *lines[:TOLD]]))

    def suite_end(self, name, passed):
        """The result of a suite as a test of its own (not counted)."""
        self.suites += 1
        self.say(f"{'ok' if passed else 'not ok'} {self.suites} {name}")

    def spent(self, kernel, suite, seconds, processor):
        """How long a test took, and how much of that its nodes were computing."""
        with self.lock:
            before = self.times[kernel].get(suite, (0, 0, 0))
            self.times[kernel][suite] = tuple(map(sum, zip(before, (1, seconds, processor))))

    def end(self):
        """What is told at the end: where the time went, remarks, and the result."""
        for kernel, suites in self.times.items():
            _, seconds, processor = map(sum, zip(*suites.values()))
            self.say(f"# {kernel}: {clock(seconds)} of tests, {clock(processor)} of processors; "
                     + ", ".join(f"{suite} {clock(times[1])}" for suite, times in sorted(
                         suites.items(), key=lambda item: -item[1][1])))
        # The titles once more behind the texts: who sees only the last lines learns what failed.
        for line in self.remarks + self.titles:
            self.say(line)
        self.say(f"# {elapsed()} done")
        self.say(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")


def user_space(report, name, status, lines):
    """Report a suite that a makefile ran and that printed KTAP itself."""
    good = True
    results = []
    for line in lines:
        found = RESULT.match(line.rstrip())
        if found:
            results.append((len(found.group(1).expandtabs()),
                            found.group(2) == "ok", found.group(3)))
            report.say("    " + line.rstrip())
    # A result that follows more indented ones sums them up.
    deeper = 0
    for indent, passed, text in results:
        if indent >= deeper:
            skip = re.search(r"#\s*SKIP\s*(.*)", text)
            if not report.count(passed, skip.group(1) if skip else None):
                report.remember(f"{name} {text}")
                good = False
        deeper = indent
    if status or not results:
        report.say(f"    # make check ended with {status}: see "
                   f"build/check/{name}.log")
        if good:
            report.count(False, None)
            report.remember(f"{name}: make check ended with {status}", "\n".join(
                [line for line in lines if "error" in line.lower()][:1] + lines[-LAST:]))
        good = False
    report.suite_end(name, good)
