# SPDX-License-Identifier: GPL-2.0
"""Users in the kernel on the software mlx5 device: the same tests as on rxe, and refusals.

RDMA CM takes the first device with an address. So it is loaded when the software devices are there,
and has nothing to do with the rxe devices below them. In the debug kernel it is built in, and was
there before.
"""

from contextlib import contextmanager
from functools import partial

import shift
from registry import BARE, STOCK, add
from stream import stream
from testbed import PREFIX, RXE, Failure, Nics, check, each
from ulp import Nfs, Nvme, NvmeSrq, gone, quiet
from ulp_work import Disk
from nodes.kernel_exactly_once import story
from nodes.kernel_failover import WORK, cable, drained, ends_away, silent
from nodes.mlx5_proof import FAULTS
from nodes.mlx5_soft import MODULE, install
from nodes.pair_life import pair_of

def devices_of(parameters):
    """Those of the test, with parameters of the module."""
    return Nics("mls0", "mls1", {}, {},
                lambda node: shift.must(node, "pair", "add", "mls0", "mls1"), parameters=parameters)


KERNEL = devices_of("mlx5_kernel_users=Y")


class SignedNvme(Nvme):
    """The host has as many MRs with signatures as others."""

    def connect(self, disk=Nvme.DISK):
        """Connect, and count the MRs."""
        super().connect(disk)
        mrs = self.host.must("rdma resource show").partition("mls0:")[2].split()
        count = int(mrs[mrs.index("mr") + 1])
        check(count >= 2 * self.DEPTH, f"{count} MRs")


def without_cm(node):
    """The modules of connections are not loaded: they go by what a device says as they are."""
    node.must("for each in rdma_ucm rdma_cm ib_cm; do "
              "! test -e /sys/module/$each || rmmod $each || exit 1; done")


def begin(node, parameters):
    """The software devices, which connections of RDMA CM are made on."""
    install(node)
    without_cm(node)
    node.must(f"insmod {MODULE} on=rxe0,rxe1 cm=1 {parameters} && modprobe rdma_cm")


def leave(node):
    """As it was before."""
    without_cm(node)
    node.must("rmmod mlx5_soft && modprobe rdma_ucm && ! test -e /sys/module/mlx5_soft")


@contextmanager
def devices(bed, nics=KERNEL, parameters=""):
    """On all nodes, while it lasts; the module is loaded and unloaded meanwhile."""
    bed.nics = nics
    try:
        each(bed.nodes, lambda node: begin(node, parameters))
        yield
        each(bed.nodes, leave)
    except Failure:
        bed.found = shift.witness(bed)
        raise
    finally:
        bed.nics = RXE


def on_mlx5(function, bed):
    """A test that knows nothing of it."""
    with devices(bed):
        function(bed)


def refused(bed, user, node, reason):
    """It is as without the module, and a node says why."""
    user.serve()
    user.connect()
    shift.wait_reason(node, reason, user.QPS)
    unmoved(bed, user)


def unmoved(bed, user):
    """A user that is connected works, and ends."""
    counters = shift.Counters(bed)
    work = WORK[type(user)](user)
    work.more(1)
    work.finish()
    counters.still("faults", "switches", "illegal", "kernel_lost")
    quiet(bed, user)
    user.disconnect()
    gone(bed)
    user.end()
    shift.forget(bed)


def unproven(kind, bed):
    """A NIC that does not tell its PSN in ERR: its users are as without the module."""
    user = kind(bed)
    shift.setup(bed)
    host = user.host
    host.must(f"shiftctl pair del mls0 && echo {1 << 3:#x} >{FAULTS.format('mls0')} && "
              "shiftctl pair add mls0 mls1")
    check(3 in pair_of(host, "mls0")["proof_failed"], f"{pair_of(host, 'mls0')}")
    refused(bed, user, host, "unproven")


def unasked(bed):
    """The parameter is off by default: users are shown, and are as without the module."""
    with devices(bed, devices_of("")):
        user = Nvme(bed)
        shift.setup(bed)
        user.serve()
        user.connect()
        for node, owner in zip(bed.nodes, user.OWNERS):
            check(shift.unlisted(node, "mls0") == [owner] * user.QPS,
                  f"{node.name}: {shift.show(node, 'qp')}")
        unmoved(bed, user)


def translated(bed):
    """Behind an IOMMU an address is good for one NIC only: users are as without the module."""
    with devices(bed, parameters="iommu=1"):
        user = Nvme(bed)
        shift.setup(bed)
        user.serve()
        user.connect()
        each(bed.nodes, lambda node: shift.wait_reason(node, "iommu", user.QPS))
        unmoved(bed, user)


def shared(bed):
    """Queues that share receives: in ERR a NIC does not tell which of them a queue had begun."""
    user = NvmeSrq(bed)
    shift.setup(bed)
    refused(bed, user, user.target, "srq")


def full(bed):
    """Who drains a queue that is full, on the backup, waits until all of it was flushed."""
    shift.setup(bed)
    node = bed.nodes[0]
    shift.must(node, "pair", "drain", "mls0")
    counters = shift.Counters(bed)
    result = node.run(f"insmod {PREFIX}/rds_rdma.ko dev=mls0 full=1", timeout=300)
    # it never stays
    check("temporarily unavailable" in result.err,
          f"{result.text}\n{node.run('dmesg | grep rds_rdma:').out}")
    check(counters.delta("moves")[0] >= 6, "not each QP has moved")
    counters.still("illegal", "kernel_lost", "failed")
    shift.must(node, "pair", "undrain", "mls0")
    shift.forget(bed)


def mistake(bed):
    """A local error is the user's own mistake if the port is active, and may be the path's if not.

    No event has told of the port.
    """
    node = bed.nodes[0]
    for down in 1, 0:
        shift.setup(bed)
        node.must(f"echo {down} >/sys/kernel/debug/mlx5_soft/mls0/port_down")
        counters = shift.Counters(bed)
        result = node.run(f"insmod {PREFIX}/rds_rdma.ko dev=mls0 mistake=1", timeout=300)
        check("temporarily unavailable" in result.err,
              f"{result.text}\n{node.run('dmesg | grep rds_rdma:').out}")
        check(counters.delta("faults")[0] == down, f"port down: {down}, {counters.delta('faults')}")
        counters.still("illegal", "kernel_lost")
        # a NIC whose port is down cannot prove itself for the next pair
        node.must("echo 0 >/sys/kernel/debug/mlx5_soft/mls0/port_down")
        shift.forget(bed)


def signatures(bed):
    """A NIC has MRs with signatures. NVMe allocates them, and is protected: its disk has none.

    A user who maps one is unprotected from then on.
    """
    with devices(bed, parameters="pi=1"):
        cable("local", 1, SignedNvme, Disk, bed)
        shift.setup(bed)
        node = bed.nodes[0]
        result = node.run(f"insmod {PREFIX}/rds_rdma.ko dev=mls0 mistake=3", timeout=300)
        check("temporarily unavailable" in result.err,
              f"{result.text}\n{node.run('dmesg | grep rds_rdma:').out}")
        shift.forget(bed)


def each_user(kind, kernels):
    """Register the tests of one."""
    def new(name, function, *arguments):
        add("kernel_failover", f"mlx5: {kind.NAME}: {name}",
            partial(on_mlx5, partial(function, *arguments)), kernels, BARE)

    for side in "local", "remote":
        new(f"{side} cable", cable, side, 1, kind, None)
    new("silent loss", silent, kind, 1, None)
    new("drained and taken back", drained, kind)
    new("disconnected on the backup", ends_away, kind)
    new("a NIC that has not proved itself", unproven, kind)


each_user(Nvme, STOCK)
each_user(Nfs, STOCK)
add("kernel_failover", f"mlx5: {NvmeSrq.NAME}", partial(on_mlx5, shared), STOCK, BARE)
add("kernel_failover", "mlx5: nvme, not asked for", unasked, STOCK, BARE)
add("kernel_failover", "mlx5: nvme on NICs behind an IOMMU", translated, STOCK, BARE)
add("kernel_failover", "mlx5: full queues are drained on the backup", partial(on_mlx5, full), STOCK,
    BARE)
add("kernel_failover", "mlx5: nvme on a NIC with signatures", signatures, STOCK, BARE)
add("kernel_failover", "mlx5: a local error, and a port that is down", partial(on_mlx5, mistake),
    STOCK, BARE)
for _name, _kind in (("softirq", stream(poll="softirq")),
                     ("workqueue, 3 QPs on one CQ", stream(qps=3, poll="workqueue", one_cq=True))):
    add("kernel_exactly_once", f"mlx5: {_name}", partial(on_mlx5, partial(story, _kind)), STOCK,
        BARE)
