#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What an overlay's upper layer has that its lower ones have not, or have otherwise.

usage: left.py UPPER LOWER... -- IGNORED...
A file that was copied up and is as before counts as none. Exit status: 1 if there is anything.
"""

import filecmp
import os
import stat
import sys


def below(lowers, path):
    """Where the lower layers have it, or None."""
    for lower in lowers:
        found = os.path.join(lower, path.lstrip("/"))
        if os.path.lexists(found):
            return None if whiteout(found) else found
    return None


def whiteout(path):
    """Whether this says that the lower layers' file is not there any more."""
    status = os.lstat(path)
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def opaque(path):
    """Whether nothing that lower layers have in this folder is seen any more."""
    try:
        return os.getxattr(path, "trusted.overlay.opaque", follow_symlinks=False) == b"y"
    except OSError:
        return False


def differs(upper, lowers, path):
    """How a file of the upper layer differs from what was there, or None."""
    here = os.path.join(upper, path.lstrip("/"))
    there = below(lowers, path)
    if whiteout(here):
        return there and "removed"
    if there is None:
        return "left behind"
    if opaque(here):
        return "removed and made anew"
    ours, theirs = os.lstat(here), os.lstat(there)
    if (ours.st_mode, ours.st_uid, ours.st_gid) != (theirs.st_mode, theirs.st_uid, theirs.st_gid):
        return "another mode"
    if stat.S_ISLNK(ours.st_mode):
        return "changed" if os.readlink(here) != os.readlink(there) else None
    if stat.S_ISREG(ours.st_mode) and not filecmp.cmp(here, there, shallow=False):
        return "changed"
    return None


def main(upper, *words):
    """Print a line for each, whatever is below a folder that is new included."""
    cut = words.index("--")
    lowers, ignored = words[:cut], words[cut + 1:]
    status = 0
    for folder, folders, files in os.walk(upper):
        at = "/" + os.path.relpath(folder, upper) if folder != upper else ""
        folders[:] = [name for name in folders if f"{at}/{name}" not in ignored]
        for name in folders + [name for name in files if f"{at}/{name}" not in ignored]:
            if how := differs(upper, lowers, f"{at}/{name}"):
                print(f"{how}: {at}/{name}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
