# SPDX-License-Identifier: GPL-2.0
"""Running other programs, and keeping two of us from doing the same work."""

import fcntl
import subprocess
from contextlib import contextmanager

from common import LabError


def run(*command, **options):
    """Run a command to its end and return its stdout."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    options.setdefault("text", True)
    try:
        done = subprocess.run([str(word) for word in command],
                              check=False, **options)
    except FileNotFoundError:
        raise LabError(f"{command[0]} is not installed: "
                       "run scripts/deps") from None
    if done.returncode:
        last = (done.stderr or "").strip().splitlines()[-3:]
        raise LabError(f"{command[0]} failed ({done.returncode}): "
                       + " / ".join(last))
    return done.stdout


@contextmanager
def locked(path):
    """Hold an exclusive lock on a file in the cache."""
    with open(path, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
