# SPDX-License-Identifier: GPL-2.0
"""Programs that connect by RDMA CM on the software mlx5 device: tests of programs.py as they are.

RDMA CM has to be loaded when the device is there (kernel_mlx5.py), and so has the module.
"""

from contextlib import contextmanager
from functools import partial

import shift
import variants
from registry import BARE, SHIFT, TESTS, add
from testbed import Nics, each
from nodes import kernel_mlx5, programs
from nodes.mlx5 import BY_CM, MLX5, MORE, among

CM = Nics("mls0", "mls1", MLX5.env, MLX5.stock,
          lambda node: shift.must(node, "pair", "add", "mls0", "mls1"), cannot=MLX5.cannot,
          lacks=MLX5.lacks, flushes=True, gives_back=True)
BORROWED = (programs,)      # has to be registered before


@contextmanager
def devices(bed):
    """The test's devices on all nodes, with module and pairs, while it lasts."""
    with kernel_mlx5.devices(bed, CM):
        each(bed.nodes, lambda node: node.must("modprobe rdma_ucm"))
        shift.setup(bed)
        yield
        bed.stop_processes()
        bed.plug_all()
        shift.forget(bed)


def on_mlx5(function, bed):
    """A test that knows nothing of it."""
    with devices(bed):
        function(bed)


def borrow():
    """Those that begin with module and pairs; the others are about RDMA CM alone."""
    for test in list(TESTS):
        title = f"{test.suite}: {test.name}"
        if test.state == SHIFT and among(title, BY_CM):
            variants.leave_out(f"mlx5: {title}")
            add("mlx5", title, partial(on_mlx5, test.function), MORE, BARE)


borrow()
