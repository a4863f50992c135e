# SPDX-License-Identifier: GPL-2.0
"""Modules that were built before, of the same sources for the same kernel: kept in the cache.

A fresh clone, which is what CI runs in, need not compile once more what it was tested with.
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from testbed import TOP

CACHE = Path(os.environ.get("SHIFT_CACHE") or Path.home() / ".cache/rdma_shift")
SETS = CACHE / "modules"
BUILD = TOP / "build"
# All that a module of the module's or of the tests' is built from; more than one of them needs.
SOURCES = ("Kbuild", "kmod", "uapi", "rdma-core/shift", "scripts/build-kmod", "scripts/kernel-root",
           "selftests/mlx5_soft", "selftests/unit", "selftests/lib/builds.py")
MADE = re.compile(r"^\.|^config\.h$|\.(o|ko|a|mod|mod\.c|pyc)$|^modules\.order$|^Module\.symvers$")
MOST = 16       # sets that are kept


def sources():
    """All files in these folders, but for what a build in the tree itself has left."""
    for name in SOURCES:
        place = TOP / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and not MADE.search(path.name):
                yield path


class Kept:
    """The modules for one kernel, in folders of build/."""

    def __init__(self, kdir, folders):
        self.folders = folders
        digest = hashlib.sha256()
        compiler = subprocess.run(["cc", "--version"], check=True, stdout=subprocess.PIPE).stdout
        # a kernel that was built anew has other symbol versions
        symbols = (Path(kdir) / "Module.symvers").read_bytes()
        for part in (compiler, str(kdir).encode(), symbols, *(folder.encode() for folder in folders)):
            digest.update(b"%d:" % len(part) + part)
        for path in sources():
            content = path.read_bytes()
            digest.update(f"{path.relative_to(TOP)} {len(content)}:".encode() + content)
        self.place = SETS / digest.hexdigest()[:24]

    def restore(self):
        """Put them into build/; False if they are not there."""
        if not (self.place / "complete").exists():
            return False
        for folder in self.folders:
            shutil.copytree(self.place / folder, BUILD / folder, dirs_exist_ok=True)
        os.utime(self.place)
        return True

    def keep(self):
        """They were just built: keep them, and no more sets than MOST."""
        shutil.rmtree(self.place, ignore_errors=True)
        for folder in self.folders:
            for module in (BUILD / folder).rglob("*.ko"):
                copy = self.place / module.relative_to(BUILD)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(module, copy)
        (self.place / "complete").touch()
        for old in sorted(SETS.iterdir(), key=lambda place: -place.stat().st_mtime)[MOST:]:
            shutil.rmtree(old, ignore_errors=True)
