#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Lines and branches of the module that runs have reached, by gcov: a table of files, then the
functions that were never called, and the lines of others that were not reached."""

import json
import subprocess
import sys
from pathlib import Path


def read(data):
    """One object's counters: {name: [...]} of its source file."""
    text = subprocess.run(["gcov", "-b", "-j", "-t", data.name], cwd=data.parent, check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    for file in json.loads(text)["files"]:
        if file["file"].endswith(f"{data.parent.name}/{data.stem}.c"):
            return file
    raise RuntimeError(f"{data} has nothing of its source")


def ranges(numbers):
    """1, 2, 3, 7 as "1-3, 7"."""
    parts = []
    for one in numbers:
        if parts and one == parts[-1][1] + 1:
            parts[-1][1] = one
        else:
            parts.append([one, one])
    return ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in parts)


def main():
    """coverage.py FOLDER...: each has objects and their counters."""
    files = {}
    for folder in map(Path, sys.argv[1:]):
        for data in sorted(folder.glob("*.gcda")):
            files[f"{folder.name}/{data.stem}.c"] = read(data)
    total = [0, 0, 0, 0]
    print(f"{'':28}{'lines':>14}{'branches':>16}")
    for name, file in files.items():
        branches = [branch for line in file["lines"] for branch in line["branches"]
                    if not branch["throw"]]
        sums = (sum(line["count"] > 0 for line in file["lines"]), len(file["lines"]),
                sum(branch["count"] > 0 for branch in branches), len(branches))
        total = [a + b for a, b in zip(total, sums)]
        print(f"{name:28}{sums[0]:6} of {sums[1]:4}{sums[2]:8} of {sums[3]:4}")
    print(f"{'':28}{total[0]:6} of {total[1]:4}{total[2]:8} of {total[3]:4}")
    print("never called:")
    for name, file in files.items():
        never = [one["name"] for one in file["functions"] if not one["execution_count"]]
        if never:
            print(f"  {name}: {', '.join(never)}")
    print("lines not reached, of functions that were called:")
    for name, file in files.items():
        called = {one["name"] for one in file["functions"] if one["execution_count"]}
        lines = [line["line_number"] for line in file["lines"]
                 if not line["count"] and line.get("function_name") in called]
        if lines:
            print(f"  {name}: {ranges(lines)}")


if __name__ == "__main__":
    main()
