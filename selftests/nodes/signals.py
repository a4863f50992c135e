# SPDX-License-Identifier: GPL-2.0
"""An application that gets signals."""

from registry import STOCK, test
from nodes.failover import shape, start, survives


@test("failover", "an application that gets signals all the time", STOCK)
def signals(bed):
    """Whatever a signal meets in a failover of several QPs at work."""
    verify = start(bed, *shape(4096, 8), "--bidir", "--alarm", 1000, qps=8)
    survives(bed, verify, "local", 8)
