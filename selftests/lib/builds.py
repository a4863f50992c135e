# SPDX-License-Identifier: GPL-2.0
"""What is built and run on this machine itself: all that nodes use, and suites without nodes."""

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import shift
from kept import CACHE, Kept
from registry import DEBUG, FULL, NEWER
from report import elapsed, user_space
from testbed import TOP, LabError, run_lab

# What takes one processor only comes before what takes as many as there are.
USER_SPACE = {"unit": "selftests/unit", "helper": "selftests/helper",
              "libmlx5": "selftests/provider", "install": "selftests/install",
              "kernels": "selftests/kernels", "model": "model", "simulator": "selftests/sim"}
MATRIX = (*FULL, *NEWER)
# This one mostly waits, for moments that it expects: it runs beside builds, with their priority.
WAITING = "helper"

# Done only when nobody else wants a processor. Where sessions are scheduled as groups (autogroup)
# a process' own priority counts within its session only.
PATIENTLY = ["sh", "-c", "echo 19 2>/dev/null >/proc/self/autogroup; exec nice -n 19 \"$@\"", "sh"]

# What was compiled before, with the same options, is taken from the cache; one for all clones.
COMPILING = {"PATH": f"/usr/lib/ccache:{os.environ['PATH']}", "CCACHE_DIR": str(CACHE / "ccache"),
             "CCACHE_MAXSIZE": "1G", "CCACHE_BASEDIR": str(TOP), "CCACHE_NOHASHDIR": "1"}

# Without what a debugger needs a module has 1 MB instead of 42, which each node is sent and loads.
LEAN = "KCFLAGS=-g0"


class Interrupted(Exception):
    """There is to be no more work."""


class Work:
    """Commands on this machine, each in a session of its own; they can be ended."""

    def __init__(self, report, logs):
        self.report = report
        self.logs = logs
        self.running = set()
        self.stopped = False
        self.lock = threading.Lock()

    def run(self, command, log, patient):
        """Run one to its end, its output in a log: the exit status."""
        words = PATIENTLY * patient + [str(word) for word in command]
        with open(log, "w", encoding="utf-8") as out:
            with self.lock:
                if self.stopped:
                    raise Interrupted
                # pylint: disable-next=consider-using-with
                process = subprocess.Popen(words, cwd=TOP, stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=subprocess.STDOUT, start_new_session=True,
                                           env={**os.environ, **COMPILING})
                self.running.add(process)
            try:
                return process.wait()
            finally:
                with self.lock:
                    self.running.discard(process)

    def stop(self):
        """End what runs, and begin nothing else."""
        with self.lock:
            self.stopped = True
            for process in self.running:
                try:
                    os.killpg(process.pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass

    def step(self, name, command, patient=False):
        """A build step; whether it worked."""
        self.report.say(f"# {elapsed()} {name}")
        log = self.logs / f"{name.replace(' ', '-')}.log"
        status = self.run(command, log, patient)
        if status:
            lines = log.read_text(errors="replace").splitlines()[-20:]
            self.report.say("\n#   ".join(
                [f"# {name} failed, the end of {log.relative_to(TOP)}:", *lines]))
        return not status

    def suite(self, name, patient=False):
        """Run a suite's makefile; a function that tells its results, in their turn."""
        self.report.say(f"# {elapsed()} running {name}")
        log = self.logs / f"{name}.log"
        status = self.run(["make", "-s", "-C", USER_SPACE[name], "check"], log, patient)
        self.report.say(f"# {elapsed()} {name} has ended")
        lines = log.read_text(errors="replace").splitlines()
        return lambda: user_space(self.report, name, status, lines)


def build_common(work, kernels):
    """What is the same for nodes of all kernels; names of what failed."""
    steps = [("build helper", ["make", "-C", "helper"]),
             ("build provider", shift.rdma_core_build())]
    if kernels:
        steps += [("build stock provider", shift.rdma_core_build("--stock")),
                  ("build test programs", ["make", "-C", "selftests/programs"])]
    if not set(MATRIX).isdisjoint(kernels) and shift.RDMA_CORE == shift.DEFAULT_RDMA_CORE:
        steps.append(("build pyverbs", ["rdma-core/build", "--pyverbs"]))
    return [name for name, command in steps if not work.step(name, command)]


def variants(kernel):
    """Modules for tests, and what makes them differ: one that replays from a wrong point, one
    that knows newer messages, too, and one that is too old to know lanes."""
    return ([("wrong", "SHIFT_REPLAY_SKIPS=1")] * (kernel in MATRIX) +
            [("newer", "SHIFT_MSG_NEWEST=5"), ("older", "SHIFT_MSG_CAPS=1")] * (kernel in FULL))


def build_variant(work, kernel, kdir, out, variant, patient):
    """Another module; where the right one is built next, so that they differ in few objects."""
    name, option = variant
    if not work.step(f"build {name} module {kernel}",
                     ["scripts/build-kmod", kdir, out, LEAN, option], patient):
        return False
    folder = Path(f"{out}-{name}")
    folder.mkdir(exist_ok=True)
    shutil.copy(out / "rdma_shift.ko", folder)
    return True


def kernel_is_there(kernel):
    """Whether what modules for a kernel are built against is in the cache."""
    try:
        return bool(run_lab("kdir", kernel))
    except LabError:
        return False


def build_modules(work, kernel, kdir, patient):
    """All modules for one kernel; names of what failed."""
    out = TOP / "build" / f"kmod-{kernel}"
    failed = [f"build {variant[0]} module {kernel}" for variant in variants(kernel)
              if not build_variant(work, kernel, kdir, out, variant, patient)]
    steps = [(f"build module {kernel}", ["scripts/build-kmod", kdir, out, LEAN]),
             (f"build mlx5_soft {kernel}", ["selftests/mlx5_soft/build", kdir,
                                            TOP / "build" / f"mlx5_soft-{kernel}", LEAN, "W=1"])]
    # of its modules only the user in the kernel has tests on other kernels
    some = ["UNIT_MODULES=rds_rdma.o"] * (kernel not in MATRIX)
    steps.append((f"build unit module {kernel}",
                  ["make", "-s", "-C", "selftests/unit", "kmod", f"KDIR={kdir}",
                   f"OUT={TOP}/build/unit-{kernel}", LEAN, *some]))
    return failed + [name for name, command in steps if not work.step(name, command, patient)]


def build_kernel(work, kernel, patient=False):
    """What nodes of one kernel need beside that; names of what failed."""
    if kernel == DEBUG and not work.step("build debug kernel", ["scripts/kernel-debug"], patient):
        return ["build debug kernel"]
    try:
        kdir = run_lab("kdir", "--ensure", kernel).strip()
    except LabError as error:
        work.report.say(f"# {error}")
        return [f"kernel {kernel}"]
    kept = Kept(kdir, [f"kmod-{kernel}", f"mlx5_soft-{kernel}", f"unit-{kernel}"] + [
        f"kmod-{kernel}-{name}" for name, _ in variants(kernel)])
    if kept.restore():
        work.report.say(f"# {elapsed()} modules {kernel} are there, built from the same sources")
        return []
    failed = build_modules(work, kernel, kdir, patient)
    if not failed:
        kept.keep()
    return failed
