# SPDX-License-Identifier: GPL-2.0
"""rdma-core's own pyverbs tests: the same results with the module as without.

They connect a device with itself, so nothing here is moved: what is compared is each
verb's answer. What passes with the module is no worse for it; all else is run without it, too.
"""

import re
from concurrent.futures import ThreadPoolExecutor

import shift
from registry import BARE, Skip, test
from testbed import PATCHED, PREFIX, TOP, check, run_program

PYTHON = f"{PREFIX}/python"
ENVIRONMENT = {**PATCHED, "PYTHONHOME": PYTHON, "PYTHONPATH": PYTHON,
               "PYTHONDONTWRITEBYTECODE": "1"}
NAME = re.compile(r"^\w+ \((tests\.[\w.]+)\)")
RESULT = re.compile(r" \.\.\. (ok|FAIL|ERROR|skipped .*|expected failure|"
                    r"unexpected success)$")
# Of rxe 6.1 without the module: most of the others are skipped for want of hardware.
LEAST_PASSED = 90


def results(process):
    """What each test ended with, by name, once all have ended."""
    status = process.wait(600)
    found = {}
    name = None
    for line in process.text.splitlines():
        begun = NAME.match(line)
        ended = RESULT.search(line)
        name = begun.group(1) if begun else name
        if ended and name:
            found[name] = ended.group(1)
            name = None
    ran = re.search(r"^Ran (\d+) tests", process.text, re.M)
    check(ran and len(found) == int(ran.group(1)),
          f"{process.name()} ended with {status}, {len(found)} results, "
          f"{ran and ran.group(0)}:\n{process.tail()}")
    check("ModuleNotFoundError" not in process.text, process.tail())
    return found


@test("programs", "pyverbs: same results with the module as without", state=BARE)
def pyverbs(bed):
    """All of its tests but those of hardware that only mlx5, EFA or a GPU has."""
    if shift.RDMA_CORE != shift.DEFAULT_RDMA_CORE:
        raise Skip(f"cannot run here: pyverbs is built of {shift.DEFAULT_RDMA_CORE}, and "
                   "uses what libibverbs keeps to its own release")
    done = run_program([TOP / "rdma-core/build", "--pyverbs"], stdout=-1, stderr=-1)
    check(done.returncode == 0, done.stderr)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda node: node.push(f"{done.stdout.strip()}:{PYTHON}"),
                      bed.nodes))
    bare, node = bed.nodes
    shift.load(node)
    shift.pair(node)
    words = [f"{PYTHON}/bin/python3", f"{PYTHON}/tests/run_tests.py", "--dev", "rxe0",
             "--gid", "1", "-v"]
    running = node.start(words, env=ENVIRONMENT)
    under = results(running)
    passed = [name for name in under if under[name] == "ok"]
    check(len(passed) >= LEAST_PASSED, f"only {len(passed)} passed:\n{running.text}")
    others = sorted({*under} - {*passed})
    without = results(bare.start([*words, *others], env=ENVIRONMENT))
    differ = [f"{name}: without the module {without.get(name)}, with it {under[name]}"
              for name in others if without.get(name) != under[name]]
    check(not differ, "\n".join(differ))
    counters = shift.stats(node)
    check(counters["mirror_mr"] >= LEAST_PASSED, f"the module saw little: {counters}")
    for name in ("failed", "illegal", "msg_bad", "mirror_failed"):
        check(not counters[name], f"counter {name} moved: {counters}")
    node.must(["rm", "-r", PYTHON])
    bare.must(["rm", "-r", PYTHON])
    shift.forget(bed)
