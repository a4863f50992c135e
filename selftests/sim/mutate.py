#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Plants mistakes of the file "mutations" into copies of the module: the simulator is to find
each.  Prints a table: the mistake, and the first schedule that shows it."""

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
KMOD = HERE.parents[1] / "kmod"
# Seeds that fail without a mistake, for reasons that Documentation/known-issues.md gives.
KNOWN = ()
KINDS = "quick", "hidden"
HOSTILE = "hostile"


@dataclass
class Mutation:
    """Lines of the module, and what is put in their place.

    kind: "quick" is found soon, "hidden" never, for a reason that stands in the file.
    world: in which it is looked for, as the simulator calls it; "": in the ordinary one;
    "hostile": in that one, with a hostile peer.
    """

    name: str
    kind: str = ""
    world: str = ""
    files: dict = field(default_factory=dict)   # of hunks: ([lines that go], [lines that come])

    def changed(self, kmod):
        """What its files are to be."""
        texts = {}
        for file, hunks in self.files.items():
            text = (kmod / file).read_text(encoding="utf-8")
            for old, new in hunks:
                old, new = "".join(old).rstrip("\n"), "".join(new).rstrip("\n")
                if text.count(old) != 1:
                    raise RuntimeError(f"{file}: stands there {text.count(old)} times, not once:"
                                       f"\n{old}")
                text = text.replace(old, new)
            texts[file] = text
        return texts

    def plant(self, kmod):
        """Change the files in a copy of the module."""
        for file, text in self.changed(kmod).items():
            (kmod / file).write_text(text, encoding="utf-8")


def read():
    """All of the file, in its order."""
    mutations, hunks = [], None
    for line in (HERE / "mutations").read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("== "):
            name, file, *words = line.split()[1:]
            kind = "".join(word for word in words if word in KINDS)
            world = "".join(word for word in words if word not in KINDS)
            mutations.append(Mutation(name, kind, world))
            hunks = mutations[-1].files[file] = []
        elif line.startswith("@ "):
            hunks = mutations[-1].files[line.split()[1]] = []
        elif line[0] in "-+":
            if line[0] == "-" and (not hunks or hunks[-1][1]):
                hunks.append(([], []))
            hunks[-1][line[0] == "+"].append(line[1:])
    return mutations


def build(mutation, base):
    """Build the simulator with that mistake: the program.

    base: where it was built without; only what has changed is compiled.
    """
    out = base / "mutation"
    shutil.rmtree(out, ignore_errors=True)
    for part in ("include", "module", "end", "world"):
        shutil.copytree(base / part, out / part)
    shutil.copytree(KMOD, out / "kmod")
    mutation.plant(out / "kmod")
    made = subprocess.run(["make", "-s", "-C", HERE, f"OUT={out}", f"KMOD={out}/kmod", "SAN=",
                           "WERROR="], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        raise RuntimeError(made.stdout)
    return out / "sim"


def ranges(seed, runs):
    """The seeds from there on, but those that are known to fail: (first, how many)."""
    end = seed + runs
    bounds = [seed - 1, *(known for known in KNOWN if seed <= known < end), end]
    return [(low + 1, high - low - 1) for low, high in zip(bounds, bounds[1:]) if high - low > 1]


def find(mutation, base, runs, seed, jobs):
    """The first schedule that shows it, from 1, and what it says; None: none does."""
    program = build(mutation, base)
    world = ["--hostile"] if mutation.world == HOSTILE else \
            ["--world", mutation.world] if mutation.world else []
    for first, count in [(seed, runs)] if world else ranges(seed, runs):
        run = subprocess.run([program, "--stop", "--brief", "--runs", str(count), "--seed",
                              str(first), *world, *(["--jobs", str(jobs)] if jobs else [])],
                             check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True)
        said = re.search(r"^seed (\d+): (.*)", run.stdout, re.M)
        if said:
            return int(said[1]) - seed + 1, said[2]
    return None


def main():
    """1 if one was not found that should be, or the other way round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", type=Path, help="where the simulator was built with SAN=")
    parser.add_argument("--runs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("names", nargs="*")
    args = parser.parse_intermixed_args()
    wrong = 0
    for mutation in read():
        if args.names and mutation.name not in args.names:
            continue
        found = find(mutation, args.base.resolve(), args.runs, args.seed, args.jobs)
        world = f"{mutation.world}: " if mutation.world else ""
        wrong += bool(found) == (mutation.kind == "hidden")
        if found:
            print(f"{mutation.name:28}{found[0]:7}  {world}{found[1]}", flush=True)
        else:
            expected = ", as expected" if mutation.kind == "hidden" else ""
            print(f"{mutation.name:28}      -  {world}not found in {args.runs} schedules{expected}",
                  flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
