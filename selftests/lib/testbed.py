# SPDX-License-Identifier: GPL-2.0
"""Nodes of a lab as tests and the demo see them: run, start, wait, cables."""

import concurrent.futures
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LAB = TOP / "lab" / "lab"

# The lab's own channel, to spare each command a process of its own.
sys.path.insert(0, str(TOP / "lab"))
# pylint: disable=wrong-import-position
import channel                      # noqa: E402
import fault                        # noqa: E402
from cluster import Lab             # noqa: E402
from common import LabError         # noqa: E402

PREFIX = "/opt/rdma_shift"
PATCHED = {"LD_LIBRARY_PATH": f"{PREFIX}/lib"}
CONTROL_RAIL = 2


class Nics:
    """The RDMA devices, the same on all nodes, that a test's applications use.

    Tests take them from Cluster.nics, so that one test can be run on devices of every
    kind. Rail 0 is the default's, rail 1 the backup's.
    """

    def __init__(self, default, backup, env, stock, begin=None, cannot=(), lacks=(),
                 flushes=False, gives_back=False, parameters=""):
        self.default = default
        self.backup = backup
        self.env = env              # of applications
        self.stock = stock          # of those without the patched provider
        self.begin = begin          # function of a node: makes them, and their pairs
        self.cannot = cannot        # options and operations of shift_verify that they do not have
        self.lacks = [*cannot, *lacks]  # and those that end protection
        self.flushes = flushes      # a fence does, so that errors are swallowed in any case
        self.gives_back = gives_back    # its own QP to an application that is home
        self.parameters = parameters    # of the module

    def has(self, options):
        """Those of shift_verify's options, or operations, that can be had."""
        return [option for option in options if option not in self.lacks]


RXE = Nics("rxe0", "rxe1", PATCHED, {})


def each(nodes, function):
    """Call a function of a node for all of them at the same time; the results."""
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        return list(pool.map(function, nodes))


class Failure(Exception):
    """A test's expectation that was not met."""


class Unready(Failure):
    """What a test begins with did not come about: nothing was tried."""


def check(condition, message):
    """Fail with a message unless the condition holds."""
    if not condition:
        raise Failure(message)


def wait_for(what, predicate, timeout=30.0, interval=0.05):
    """Poll until predicate() is true and return its value.

    Not more than half of the time is spent on asking: nodes have better things to do.
    """
    end = time.monotonic() + timeout
    while True:
        asked = time.monotonic()
        value = predicate()
        if value:
            return value
        now = time.monotonic()
        if now > end:
            raise Failure(f"{what}: not within {timeout:.0f} s")
        time.sleep(max(interval, min(now - asked, 1)))


class Result:
    """How a command on a node ended."""

    def __init__(self, command, status, out, err):
        self.command = command
        self.status = status
        self.out = out
        self.err = err

    @property
    def text(self):
        """All it printed, for messages."""
        return (self.out + self.err).strip()


class Process:
    """A program running on a node; its lines are read as they come."""

    def __init__(self, node, words, env=None, user="root"):
        self.node = node
        self.words = words
        self.lines = []
        self.status = None
        self.failure = None
        self.changed = threading.Condition()
        self.partial = {"out": "", "err": ""}
        self.command = channel.Command(node.cluster.lab, node.number,
                                       node.argv(words),
                                       (env or {}).items(), user)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        """Collect output until the program has ended."""
        try:
            while self.command.status is None:
                self.command.handle(lambda data: self.take("out", data),
                                    lambda data: self.take("err", data))
            status = self.command.status
        except (LabError, OSError) as error:
            status = 255
            self.failure = str(error)
        with self.changed:
            for text in self.partial.values():
                if text:
                    self.lines.append((time.monotonic(), text))
            self.status = status
            self.changed.notify_all()

    def take(self, which, data):
        """Split what came into lines."""
        text = self.partial[which] + data.decode(errors="replace")
        *lines, self.partial[which] = text.split("\n")
        with self.changed:
            for line in lines:
                self.lines.append((time.monotonic(), line.rstrip("\r")))
            self.changed.notify_all()

    @property
    def text(self):
        """All lines so far."""
        with self.changed:
            return "\n".join(line for _, line in self.lines)

    def name(self):
        """For messages."""
        return f"{self.node.name}: {self.words[0] if isinstance(self.words, list) else self.words}"

    def wait_line(self, pattern, timeout=60.0, start=0):
        """Wait for a line that matches; the match object."""
        end = time.monotonic() + timeout
        at = start
        with self.changed:
            while True:
                while at < len(self.lines):
                    found = re.search(pattern, self.lines[at][1])
                    at += 1
                    if found:
                        return found
                if self.status is not None:
                    break
                left = end - time.monotonic()
                if left <= 0 or not self.changed.wait(left):
                    break
        why = ("not within %.0f s" % timeout if self.status is None else
               f"it ended with {self.status} {self.failure or ''}")
        raise Failure(f"{self.name()}: no line '{pattern}': {why}\n"
                      + self.tail())

    def wait(self, timeout=120.0):
        """Wait for the end; the exit status."""
        end = time.monotonic() + timeout
        with self.changed:
            while self.status is None:
                left = end - time.monotonic()
                if left <= 0 or not self.changed.wait(left):
                    break
        if self.status is None:
            raise Failure(f"{self.name()} did not end within "
                          f"{timeout:.0f} s\n{self.tail()}")
        return self.status

    def expect(self, status=0, timeout=120.0):
        """Wait for the end and insist on an exit status."""
        got = self.wait(timeout)
        check(got == status, f"{self.name()} ended with {got}, not {status} "
                             f"{self.failure or ''}\n{self.tail()}")

    def tail(self, count=12):
        """The first and last lines, for messages: errors come unbuffered."""
        with self.changed:
            if len(self.lines) > 2 * count:
                return "\n".join("  | " + line for _, line in
                                 self.lines[:count] + self.lines[-count:])
            return "\n".join("  | " + line for _, line in self.lines[-count:])

    def send(self, line):
        """Give the program a line on its stdin."""
        self.command.send(line.encode() + b"\n")

    def stop(self):
        """End it (TERM, then KILL) and wait until it is gone."""
        if self.status is None:
            self.command.stop()
            self.thread.join(15)


class Node:
    """One node of the lab."""

    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        self.name = f"node{number}"
        self.pushed = set()     # what a test has put there for others, too

    @staticmethod
    def argv(words):
        """A string is a shell command line, a list is taken as it is."""
        return ["sh", "-c", words] if isinstance(words, str) else list(words)

    def address(self, rail):
        """The node's IPv4 address on a rail."""
        return f"10.{10 + rail}.0.{1 + self.number}"

    def start(self, words, env=None, user="root"):
        """Start a program and return at once."""
        process = Process(self, words, env, user)
        self.cluster.processes.append(process)
        return process

    def run(self, words, timeout=60.0, env=None, user="root", stdin=b""):
        """Run a command to its end, whatever it ends with."""
        command = channel.Command(self.cluster.lab, self.number,
                                  self.argv(words), (env or {}).items(), user)
        if stdin:
            command.send(stdin)
        command.send(b"")
        out, err = bytearray(), bytearray()
        command.link.settimeout(timeout)
        end = time.monotonic() + timeout
        while command.status is None:
            try:
                command.handle(out.extend, err.extend)
            except LabError:
                if time.monotonic() < end:
                    raise
            if time.monotonic() >= end and command.status is None:
                command.stop()
                raise Failure(f"{self.name}: {words} did not end within "
                              f"{timeout:.0f} s")
        return Result(words, command.status, out.decode(errors="replace"),
                      err.decode(errors="replace"))

    def must(self, words, **options):
        """Run a command that has to succeed; its stdout."""
        result = self.run(words, **options)
        check(result.status == 0, f"{self.name}: {words} ended with "
                                  f"{result.status}: {result.text[-600:]}")
        return result.out

    def read(self, path):
        """What a small file holds, with no program started for it."""
        return self.must(["lab-read", path])

    def read_folder(self, path):
        """What the files of a folder hold, by their names: a line each."""
        return dict(line.split(" ", 1) for line in self.read(path).splitlines())

    def write(self, path, text):
        """Write to a file that is there, with no program started for it."""
        result = self.run(["lab-write", path], stdin=text.encode())
        check(result.status == 0, f"{self.name}: {path}: {result.text}")

    def link(self, rail, up):
        """Pull or plug the cable."""
        self.cluster.disturbed.add((self.number, rail))
        self.cluster.lab.set_link(self.number, rail, up)

    def lossless(self):
        """No queue that drops (fq_codel) makes rxe retry.

        Its retries are not always right: losses are to be those a test asks for.
        """
        for rail in range(self.cluster.rails):
            self.must(["tc", "qdisc", "replace", "dev", f"rail{rail}", "root",
                       "pfifo", "limit", "20000"])

    def reset(self):
        """Power fails and comes back; nothing that was pushed is left."""
        before = self.cluster.processor()
        run_lab("reset", "--name", self.cluster.name, str(self.number))
        self.pushed.clear()
        self.cluster.lab.load()
        self.cluster.past += before - self.cluster.processor()
        wait_for(f"{self.name}: its agent", self.answers, 60)
        self.cluster.disturbed.update(self.cluster.cables())
        self.lossless()

    def answers(self):
        """Whether commands can be run."""
        try:
            return not self.run("true").status
        except LabError:
            return False

    def push(self, *specs):
        """Copy files in: FILE or FILE:DEST each."""
        run_lab("push", "--name", self.cluster.name, str(self.number), *specs)

    @property
    def console(self):
        """Everything the node's kernel said so far."""
        return self.cluster.lab.console(self.number).read_text(
            errors="replace")

    @property
    def emulator(self):
        """Whether the node's machine still runs, and what its emulator has said."""
        lab = self.cluster.lab
        said = (lab.path / f"node{self.number}-qemu.log").read_text(errors="replace").strip()
        return f"{'runs' if lab.running(self.number) else 'has ended'}: {said[-300:]}"

    def carrier(self, rail):
        """Whether the kernel sees the cable."""
        return self.read(f"/sys/class/net/rail{rail}/carrier").strip() == "1"


def run_program(words, **options):
    """subprocess.run() in a session of its own.

    When we are interrupted it is asked to end, not killed, and waited for: it
    may have to clean up.
    """
    with subprocess.Popen([str(word) for word in words], text=True,
                          stdin=subprocess.DEVNULL, start_new_session=True,
                          **options) as process:
        try:
            out, err = process.communicate()
        except BaseException:
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                    process.communicate(timeout=20)
                    break
                except ProcessLookupError:
                    break
                except subprocess.TimeoutExpired:
                    pass
            raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def run_lab(*words):
    """Run lab/lab; its stdout."""
    done = run_program([LAB, *words], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    if done.returncode:
        raise LabError(f"lab {words[0]}: {done.stderr.strip()}")
    return done.stdout


class Cluster:
    """A lab that is booted, used and ended by us."""

    serial = itertools.count()

    def __init__(self, kernel="6.1", nodes=2, rails=3, name=None, icount=False,
                 processors=2, nice=0):
        self.kernel = kernel
        self.options = ["--processors", str(processors), "--nice", str(nice),
                        *(["--icount"] if icount else [])]
        self.rails = rails
        self.count = nodes
        self.name = name or f"check-{kernel}-{os.getpid()}-{next(self.serial)}"
        self.nodes = []
        self.processes = []
        self.lab = None
        self.nics = RXE
        self.dropping = set()       # (node, rail) with rules that lose packets
        self.disturbed = set()      # cables that were touched, or lost packets, since all was well
        self.found = None           # shift.witness() of a failure, if that is over since
        self.told = []              # lines that a test wants to be in the report
        self.past = 0               # seconds of a processor, of machines that were reset
        self.unsettled = False      # nobody has looked yet how links took that

    def cables(self):
        """All of them, as (node's number, rail)."""
        return itertools.product(range(self.count), range(self.rails))

    def up(self):
        """Boot."""
        run_lab("up", "--name", self.name, "--kernel", self.kernel, "--nodes",
                self.count, "--rails", self.rails, *self.options)
        self.lab = Lab(self.name).load()
        self.nodes = [Node(self, number) for number in range(self.count)]
        self.dropping = set()
        self.disturbed = set(self.cables())
        each(self.nodes, Node.lossless)

    def down(self):
        """End it."""
        self.stop_processes()
        if self.lab:
            run_lab("down", "--name", self.name)
            self.lab = None

    def processor(self):
        """Seconds for which processors of this machine have worked for its nodes."""
        return self.past + self.lab.processor() if self.lab else 0

    def restart(self):
        """Boot it afresh."""
        self.down()
        self.processes = []
        self.up()

    def stop_processes(self):
        """End what a test has left running."""
        for process in reversed(self.processes):
            process.stop()
        self.processes = []

    def drop(self, node, rail, direction, opcode="all", skip=0, count=0):
        """Lose packets silently on a node's rail; lab drop --help says what all that is."""
        self.dropping.add((node.number, rail))
        fault.drop(self.lab, node.number, rail, opcode, count, skip, direction, None)

    def rules(self, node, rail):
        """The rules of a node's rail, with how many packets they matched and dropped."""
        return fault.show(self.lab, node.number, rail)

    def clear(self, node, rail):
        """Lose no packet there any more."""
        fault.clear(self.lab, node.number, rail)
        self.dropping.discard((node.number, rail))
        self.disturbed.add((node.number, rail))

    def undrop(self):
        """Lose no packet any more."""
        for number, rail in sorted(self.dropping):
            self.clear(self.nodes[number], rail)

    def whole(self):
        """Insist that nodes have the devices that they began with, as the next test needs them."""
        wanted = {f"rxe{rail}" for rail in range(self.rails)}
        for node, there in zip(self.nodes, each(self.nodes, lambda node: node.must(
                "ls /sys/class/infiniband").split())):
            check(wanted <= set(there), f"{node.name} is left without {wanted - set(there)}")

    def plug_all(self):
        """All cables in, nothing dropped, seen by the kernels, and peers are reached.

        The first packets after a cable is back may be lost; an address that was not
        resolved in a second would fail the QP of the next test. What nobody has touched is
        left alone.
        """
        self.undrop()
        for number, rail in sorted(self.disturbed):
            self.nodes[number].link(rail, True)
        rails = sorted({rail for _, rail in self.disturbed})
        if rails:
            each(self.nodes, lambda node: self.reached(node, rails))
            self.unsettled = True
        self.disturbed.clear()

    @staticmethod
    def carriers(rails):
        """Shell commands that succeed if a node sees its cables on these rails."""
        return [f"read up </sys/class/net/rail{rail}/carrier && test $up = 1" for rail in rails]

    def plugged(self, node):
        """Wait until a node sees all of its cables."""
        wait_for(f"{node.name}: carrier", lambda: not node.run(
            " && ".join(self.carriers(range(self.rails)))).status)

    def reached(self, node, rails):
        """Wait until a node sees its cables on these rails, and its peers answer there."""
        words = self.carriers(rails) + [
            f"ping -q -c 1 -W 2 {peer.address(rail)}"
            for peer in self.nodes if peer is not node for rail in rails]
        wait_for(f"{node.name}: peers reached",
                 lambda: not node.run(" && ".join(words)).status)
