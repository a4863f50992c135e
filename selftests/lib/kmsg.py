# SPDX-License-Identifier: GPL-2.0
"""What a kernel log must not contain."""

import re

from testbed import Failure, LabError, each, wait_for

BAD = re.compile(
    r"BUG:|WARNING:|KASAN|UBSAN|KFENCE|kmemleak: \d+ new|refcount_t:|\bOops|"
    r"general protection|Kernel panic|INFO: task |INFO: rcu|rcu_sched self-det|"
    r"soft lockup|hung task|list_(add|del) corruption|Call Trace|"
    r"possible (circular|recursive|irq|unsafe|deadlock)|"
    r"inconsistent lock state|suspicious RCU|sleeping function|"
    r"scheduling while atomic|unbalanced|Bad page|"
    r"rdma_shift:.*\b(bug|illegal|leak)", re.IGNORECASE)

# Said by these kernels with nothing of ours loaded.
HARMLESS = re.compile(r"kmemleak: Kernel memory leak detector|"
                      r"kmemleak: Automatic|kasan: KernelAddressSanitizer|"
                      r"ubsan: |loading out-of-tree|tainting kernel|"
                      r"Speculative Return Stack|Lock dependency|"
                      r"KFENCE: initialized|kfence: initialized", re.IGNORECASE)

# The end of a program, of which tests judge themselves: perftest of Debian 12 with -R may crash in
# librdmacm. Other reports of that kind ("segfault at") have no bad word in them.
PROGRAM = re.compile(r"traps: .{1,15}\[\d+\] general protection fault ip:[0-9a-f]+ sp:[0-9a-f]+ ")

# The trace the kernel prints of an allocation that a test makes fail. And once after a boot it may
# say that a workqueue of iSCSI's, which is for reclaim, waits for one that is not: at the end of a
# session, and with nothing of ours.
PROVOKED = re.compile(r"(alloc_edge: (vmalloc error|page allocation failure)|"
                      r"objects_edge invoked oom-killer|"
                      r"WQ_MEM_RECLAIM iscsi_ctrl[^\n]* is flushing !).*?</TASK>", re.DOTALL)


# What a kernel says of its own death is told whole: the log is not always kept.
DEATH = re.compile(r"\bOops|general protection|BUG: |Kernel panic", re.IGNORECASE)
BEFORE, BEHIND = 5, 50
SAID = 12

# Of a trace the functions tell most.
TRACE_END = re.compile(r"end trace|</TASK>|</IRQ>.*</TASK>")
TRACE_NOISE = re.compile(
    r"Modules linked in|Code:|EFLAGS|\b(R(?!IP)[A-Z0-9]{2}|[CDFG][SR]\d?|PKRU): ?[0-9a-f]|"
    r"Hardware name|<IRQ>|</?TASK>|cut here")
TRACE_MAX = 40


def last_words(text):
    """The lines around the first sign that a kernel died, or none."""
    if "Kernel panic" not in text:
        return []
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if DEATH.search(line))
    return lines[max(first - BEFORE, 0):first + BEHIND]


# EFLAGS as a kernel prints them, and their bits that no processor can set
FLAGS = re.compile(r"EFLAGS: ([0-9a-f]{8})\b")
NO_FLAGS = 0xffc08028


def broken_flags(text):
    """Flags of a double fault that no processor has: the emulator lost them. None: not so.

    They were pushed as the fault was taken. Nothing may have been wrong before: what corrupts
    memory is no emulator's fault, nor is a KASAN report that is followed by one.
    """
    before, fault, after = text.partition("PANIC: double fault")
    found = FLAGS.search(after)
    if not fault or not found or bad_lines(before):
        return None
    return found.group(1) if int(found.group(1), 16) & NO_FLAGS else None


# An emulated processor may execute a breakpoint that is not there any more: the kernel sets one for
# a moment when it patches its own code. No mistake of a module's C code leads to one.
BREAKPOINT = re.compile(r"^.*\bint3: 0000 \[#1\].*$", re.MULTILINE)


def emulator_broke(text):
    """How the emulator has broken a node, or None."""
    if flags := broken_flags(text):
        return f"had flags {flags}"
    found = BREAKPOINT.search(text)
    if found and not bad_lines(text[:found.start()]):
        return "was in a breakpoint that had gone"
    return None


# nvmet has a command that arrives before the end of its connection's set-up executed in RDMA CM's
# handler, which takes the lock of its configuration; and to disable a port destroys another id of
# RDMA CM under that lock. lockdep takes that for a deadlock, with the module or without.
LOCKDEP = re.compile(r"[^\n]*possible circular locking.*?</TASK>", re.DOTALL)
NVMET = "nvmet_config_sem", "handler_mutex", "nvmet_rdma_disable_port", "nvmet_rdma_cm_handler"
OURS = "[rdma_shift]"


def nvmet_locks(text):
    """Whether a kernel complained of nvmet's locks, and of nothing else. Then lockdep is off."""
    found = LOCKDEP.search(text)
    return bool(found and OURS not in found.group() and
                not bad_lines(text[:found.start()] + text[found.end():]) and
                all(name in found.group() for name in NVMET))


def bad_lines(text):
    """Lines of a log that must not be there."""
    return [line for line in PROVOKED.sub("", text).splitlines()
            if BAD.search(line) and not HARMLESS.search(line) and not PROGRAM.search(line)]


def first_trace(text):
    """What follows the first bad line, to the end of its trace, without registers."""
    lines = PROVOKED.sub("", text).splitlines()
    bad = set(bad_lines(text))
    first = next((i for i, line in enumerate(lines) if line in bad), len(lines))
    found = []
    for line in lines[first:first + 2 * TRACE_MAX]:
        if TRACE_END.search(line):
            break
        if not TRACE_NOISE.search(line):
            found.append(line)
    return found[:TRACE_MAX]


class Brackets:
    """A mark in every node's log now; later, what came after it."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.start = {}
        for node in cluster.nodes:
            self.start[node.name] = len(node.console)

    def begin(self):
        """What counts begins here."""
        each(self.cluster.nodes, lambda node: self.mark(node, f"begin {self.name}"))
        for node in self.cluster.nodes:
            self.start[node.name] = len(node.console)

    @staticmethod
    def mark(node, text):
        """Write a mark and wait until it is on the console."""
        node.write("/dev/kmsg", f"selftest: {text}\n")
        wait_for(f"{node.name}: its console",
                 lambda: f"selftest: {text}" in node.console)

    def end(self):
        """Bad lines since the mark, as 'node: line'."""
        return sum(each(self.cluster.nodes, self.found), [])

    def found(self, node):
        """Those of one node."""
        found = []
        try:
            self.mark(node, f"end {self.name}")
        except (Failure, LabError, OSError) as error:
            found.append(f"{node.name}: {error}")
        text = self.text(node)
        lines = last_words(text)
        if not lines and bad_lines(text):
            lines = first_trace(text)
            lines += [line for line in bad_lines(text) if line not in lines]
        if found and not lines:
            lines = [*text.splitlines()[-SAID:], f"its emulator: {node.emulator}"]
        return found + [f"{node.name}: {line}" for line in lines]

    def broken(self):
        """Whether the emulator has broken a node, or a kernel complained of itself; how."""
        for node in self.cluster.nodes:
            if how := emulator_broke(self.text(node)):
                return f"{node.name}: the emulated processor {how}"
        texts = {node.name: self.text(node) for node in self.cluster.nodes}
        found = [name for name, text in texts.items() if nvmet_locks(text)]
        if found and not any(bad_lines(text) for name, text in texts.items() if name not in found):
            return f"{found[0]}: lockdep complains of nvmet"
        return None

    def said(self):
        """What the module said last on each node: of use if the test has failed."""
        return [f"{node.name}: {line}" for node in self.cluster.nodes
                for line in [line for line in self.text(node).splitlines()
                             if "rdma_shift:" in line][-SAID:]]

    def text(self, node):
        """All a node's kernel said since the mark."""
        return node.console[self.start[node.name]:]


def kmemleak(node):
    """Scan twice (a leak is only reported when seen twice); what was found."""
    if node.run("test -e /sys/kernel/debug/kmemleak").status:
        return ""
    for _ in range(2):
        node.must("echo scan >/sys/kernel/debug/kmemleak", timeout=300)
    return node.must("cat /sys/kernel/debug/kmemleak", timeout=60).strip()
