# SPDX-License-Identifier: GPL-2.0
"""What every part of the lab shares: its error and its places."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent


class LabError(Exception):
    """A failure to tell the user about in one line."""


class UsageError(LabError):
    """The user has asked for something that does not exist."""


def cache_dir():
    """Where everything lives that is costly to make and safe to delete."""
    path = os.environ.get("SHIFT_CACHE")
    if not path:
        path = Path.home() / ".cache" / "rdma_shift"
    path = Path(path).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path
