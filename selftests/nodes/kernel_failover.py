# SPDX-License-Identifier: GPL-2.0
"""A cable is pulled under a user in the kernel: Documentation/internals/kernel-users.md."""

import random
import re
from contextlib import contextmanager
from functools import partial

import shift
from registry import BARE, MAIN, STOCK, add
from testbed import check, each, wait_for
from ulp import (Iser, Nfs, NfsOnDisk, Nvme, NvmePolled, NvmeSrq, NvmeTwo, Rds, gone, quiet,
                 trouble)
from ulp_work import Datagrams, Disk, Files, Fio, FioPolled, Swap, Tree
from nodes.failover import SIDES, dropped, goes_silent, patience, pull
from nodes.programs import interface_down

WORK = {Nvme: Disk, NvmeSrq: Disk, Nfs: Tree, Rds: Datagrams, Iser: Disk}
FAULTS = 12     # of a random schedule


@contextmanager
def working(bed, kind, program=None):
    """A program works all the time, its user's QPs are protected: it notices nothing."""
    user = kind(bed)
    shift.setup(bed)
    user.serve()
    each(bed.nodes[:2], lambda node: node.must("dmesg -c >/dev/null"))
    user.connect()
    each(bed.nodes[:2], lambda node: shift.protected(node, user.QPS))
    shift.wait_session(bed)
    counters = shift.Counters(bed)
    work = (program or WORK[kind])(user)
    work.more(work.WARM)
    yield work, counters
    work.more(2)
    work.finish()
    counters.still("failed", "illegal", "msg_bad", "kernel_lost", "mirror_failed")
    quiet(bed, user)
    user.disconnect()
    gone(bed)
    user.end()
    shift.forget(bed)


def moved(bed, counters, work, times=1):
    """All QPs are on the backup, and the program goes on."""
    qps = work.user.QPS
    wait_for("failover on both nodes",
             lambda: min(counters.delta("switches")) >= times * qps, 120)
    each(bed.nodes[:2], lambda node: shift.protected(node, qps, "fallback"))
    work.more(2)


def cable(side, rounds, kind, program, bed):
    """The cable is pulled and plugged again, and the QPs go home, again and again."""
    with working(bed, kind, program) as (work, counters):
        for number in range(rounds):
            pull(bed, side)
            # to the backup, and home
            moved(bed, counters, work, 2 * number + 1)
            bed.plug_all()
            shift.home(bed, kind.QPS)
            work.more(1)
        check(sum(counters.delta("faults")) >= rounds, "faults were not counted")


def silent(kind, rounds, program, bed):
    """The path loses all packets, and no port says so; the QPs go home, again and again."""
    with working(bed, kind, program) as (work, counters):
        for number in range(rounds):
            goes_silent(bed)
            moved(bed, counters, work, 2 * number + 1)
            check(dropped(bed) > 0, "no packet was dropped")
            bed.undrop()
            shift.home(bed, kind.QPS)
            work.more(1)


def drained(kind, bed):
    """An operator moves the QPs; that is no fault."""
    with working(bed, kind) as (work, counters):
        shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
        moved(bed, counters, work)
        shift.must(bed.nodes[0], "pair", "undrain", bed.nics.default)
        shift.home(bed, kind.QPS)
        work.more(1)
        # away from one link, and one QP back
        link = shift.links(bed.nodes[0], bed.nics.default)[0]["link"]
        shift.must(bed.nodes[0], "link", "switch", str(link))
        moved(bed, counters, work, 3)
        qpn = shift.qps(bed.nodes[0])[0]["qpn"]
        shift.must(bed.nodes[0], "qp", "move", bed.nics.default, str(qpn), "default")
        wait_for("a QP is home", lambda: any(
            row["state"] == "returned" for row in shift.qps(bed.nodes[0])), 60)
        work.more(1)
        counters.still("faults")


def backup_too(kind, bed):
    """While they are on the backup its cable goes as well, at the other end."""
    with working(bed, kind) as (work, counters):
        pull(bed, "local")
        moved(bed, counters, work)
        bed.nodes[0].link(0, True)
        shift.wait_session(bed)
        bed.nodes[1].link(1, False)
        wait_for("failover on both nodes",
                 lambda: min(counters.delta("switches")) >= 2 * kind.QPS, 120)
        each(bed.nodes[:2], lambda node: shift.protected(node, kind.QPS, "returned"))
        work.more(2)
        bed.plug_all()
        shift.wait_session(bed)
        pull(bed, "remote")
        moved(bed, counters, work, 3)
        bed.plug_all()
        shift.home(bed, kind.QPS)


def all_out(kind, bed):
    """Both paths are dead for a while. The backup comes back first."""
    with working(bed, kind) as (work, counters):
        bed.nodes[0].link(1, False)
        pull(bed, "local")
        each(bed.nodes[:2], lambda node: wait_for(f"{node.name}: no link is up", lambda: not any(
            link["state"] == "up" for link in shift.show(node, "link")), 60))
        counters.still("switches")
        bed.nodes[0].link(1, True)
        moved(bed, counters, work)
        bed.plug_all()
        shift.home(bed, kind.QPS)


def at_random(seed, kind, bed):
    """Cables at both ends and of both paths go and come, whatever state the QPs are in."""
    draw = random.Random(seed)
    with working(bed, kind) as (work, counters):
        for _ in range(FAULTS):
            # a QP that has lost a packet, and cannot leave its own NIC, is killed by rxe's retry
            if any(row["state"] == "default" for row in shift.qps(bed.nodes[0])):
                shift.wait_session(bed)
            node, rail = draw.choice(bed.nodes[:2]), draw.randrange(2)
            faults = sum(counters.delta("faults"))
            node.link(rail, False)
            if draw.randrange(2):
                wait_for("carrier is gone", lambda node=node, rail=rail: not node.carrier(rail))
            else:
                wait_for("a fault, or work that goes on",
                         lambda faults=faults, then=work.rounds():
                         sum(counters.delta("faults")) > faults or work.rounds() != then, 60)
            node.link(rail, True)
            if draw.randrange(2):
                work.more(1)
        shift.wait_session(bed)
        work.more(2)
        shift.home(bed, kind.QPS)
        check(sum(counters.delta("faults")) > 0, "no fault was counted")


def one_lost(bed):
    """A single packet is lost: rxe's retry may kill the QP, which has to be noticed.

    On 6.1 it completes nothing any more; later kernels flush all that it has, and say why only if
    they are asked to.
    """
    with working(bed, Nvme) as (work, counters), patience(bed, 0, 1):
        host = bed.nodes[0]
        mute = bed.kernel == "6.1"
        if not mute:
            host.must("""grep -q debugfs /proc/mounts || mount -t debugfs none /sys/kernel/debug
                echo 'func rxe_reg_fast_mr +p' >/sys/kernel/debug/dynamic_debug/control""")
        for number in range(1, 40):
            bed.drop(bed.nodes[1], 0, direction="in", opcode="RC_SEND_*", count=1)
            wait_for("a packet is lost", lambda number=number: dropped(bed) >= number, 60)
            then = work.rounds()
            wait_for("a failover, or work that goes on", lambda then=then:
                     min(counters.delta("switches")) > 0 or all(
                         now > before for now, before in zip(work.rounds(), then)), 120)
            if "not free" in host.run("dmesg").out:
                break
        check("not free" in host.run("dmesg").out, "no retry has killed a QP")
        wait_for("failover on both nodes", lambda: min(counters.delta("switches")) > 0, 60)
        check(bool(counters.delta("stalled")[0]) == mute, "what was found is not what happens here")
        check(sum(counters.delta("faults")) > 0, "no fault was counted")
        bed.undrop()
        work.more(2)


def told_nothing(kind, bed):
    """With the cable the neighbour is lost. RDMA CM would tell connections so (UNREACHABLE)."""
    with working(bed, kind) as (work, counters):
        pull(bed, "local")
        moved(bed, counters, work)
        host, other = bed.nodes[:2]
        host.run(["ping", "-c", "1", "-W", "1", other.address(0)], timeout=60)
        # others may have asked for it before
        wait_for("a neighbour whose address is kept", lambda: counters.delta("neighbours")[0], 60)
        work.more(2)
        bed.plug_all()
        shift.home(bed, kind.QPS)


def goes_down(kind, bed):
    """The host's interface is taken down beside its cable, and is back: the neighbour goes too."""
    with working(bed, kind) as (work, counters):
        pull(bed, "local")
        moved(bed, counters, work)
        interface_down(bed)
        work.more(2)
        bed.plug_all()
        shift.home(bed, kind.QPS)
        work.more(1)
        check(sum(counters.delta("faults")) > 0, "no fault was counted")


def other_mac(bed):
    """The peer's MAC address changes on a path that works: RDS is told, and connects anew."""
    user = Rds(bed)
    shift.setup(bed)
    user.serve()
    user.connect()
    each(bed.nodes[:2], lambda node: shift.protected(node, user.QPS))
    shift.wait_session(bed)
    host, peer = bed.nodes[:2]
    counters = shift.Counters(bed)
    before = [row["qpn"] for row in shift.qps(host)]
    mac = peer.read("/sys/class/net/rail0/address").strip()

    def moves(to):
        peer.must(f"ip link set rail0 address {to}")
        host.must(f"ip neigh replace {peer.address(0)} lladdr {to} nud reachable dev rail0")

    try:
        moves("52:54:00:00:99:99")
    finally:
        moves(mac)
    wait_for("RDS was told: its QP is another one", lambda: (
        lambda now: now and not set(now) & set(before))([row["qpn"] for row in shift.qps(host)]),
             120)
    counters.still("neighbours")
    user.disconnect()
    gone(bed)
    shift.forget(bed)


def others_join(bed):
    """Queues that share receives with those that are away are connected, work, and follow them.

    The driver's ring has receives then that the kernel has taken over: they must not be used.
    """
    with working(bed, NvmeSrq) as (work, counters):
        user = work.user
        shift.must(user.host, "pair", "drain", bed.nics.default)
        moved(bed, counters, work)
        user.connect("/dev/nvme1n1")
        user.verify("/dev/nvme1n1")
        each(bed.nodes[:2], lambda node: shift.protected(node, 2 * user.QPS, "fallback"))
        user.verify("/dev/nvme1n1")
        shift.home(bed, 2 * user.QPS)
        work.more(1)
        # the others do not stop for that
        user.disconnect("nvme1")
        each(bed.nodes[:2], lambda node: shift.protected(node, user.QPS, "returned"))
        # away is an SRQ on its own device, too
        user.connect("/dev/nvme1n1")
        user.verify("/dev/nvme1n1")
        each(bed.nodes[:2], lambda node: shift.protected(node, 2 * user.QPS, "returned"))
        counters = shift.Counters(bed)
        pull(bed, "local")
        wait_for("failover on both nodes",
                 lambda: min(counters.delta("switches")) >= 2 * user.QPS, 120)
        each(bed.nodes[:2], lambda node: shift.protected(node, 2 * user.QPS, "fallback"))
        user.verify("/dev/nvme1n1")
        work.more(1)
        bed.plug_all()
        shift.home(bed, 2 * user.QPS)


def ends_away(kind, bed):
    """Both ends go in order while the path of their QPs is dead, and may connect again after."""
    user = kind(bed)
    shift.setup(bed)
    user.serve()
    each(bed.nodes[:2], lambda node: node.must("dmesg -c >/dev/null"))
    for side in SIDES:
        user.connect()
        each(bed.nodes[:2], lambda node: shift.protected(node, user.QPS))
        shift.wait_session(bed)
        work = WORK[kind](user)
        work.more(1)
        counters = shift.Counters(bed)
        pull(bed, side)
        moved(bed, counters, work)
        work.finish()
        user.disconnect()
        gone(bed)
        counters.still("failed", "illegal", "msg_bad", "kernel_lost")
        quiet(bed, user)
        bed.plug_all()
        shift.settled(bed)
    user.end()
    shift.forget(bed)


@contextmanager
def loaded_anew(node, parameters):
    """The RDMA core of a node is loaded with these parameters, while it lasts."""
    rails = " ".join(map(str, range(node.cluster.rails)))

    def load(words):
        node.must(f"""set -e
            for rail in {rails}; do
                rdma link delete rxe$rail
            done
            for each in rdma_ucm rdma_rxe ib_uverbs iw_cm ib_cm ib_core; do
                ! test -e /sys/module/$each || modprobe -r $each
            done
            modprobe ib_core {words}
            modprobe -a ib_uverbs rdma_ucm rdma_rxe
            for rail in {rails}; do
                rdma link add rxe$rail type rxe netdev rail$rail
            done""")
    load(parameters)
    yield
    load("")


def mrs_of_users(node):
    """MRs of users in the kernel on the default device, and not of links."""
    return len(re.findall(r"mrlen|mrn", node.must("rdma resource show mr dev rxe0")))


def registers(kind, bed):
    """What a target moves is registered for each transfer, as a NIC may need it (rdma_rw)."""
    target = bed.nodes[1]
    with loaded_anew(target, "force_mr=1"):
        with working(bed, kind) as (work, counters):
            check(mrs_of_users(target) > 0, "the target has no MR")
            for number, side in enumerate(SIDES):
                pull(bed, side)
                moved(bed, counters, work, 2 * number + 1)
                bed.plug_all()
                shift.home(bed, kind.QPS)
                work.more(1)
            check(sum(counters.delta("faults")) >= len(SIDES), "faults were not counted")


def alone(kind, number, bed):
    """Without a peer that has it, QPs are unprotected, and all is as without it."""
    user = kind(bed)
    node = bed.nodes[number]
    shift.load(node)
    shift.pair(node)
    user.serve()
    user.connect()
    work = WORK[kind](user)
    work.more(1)
    work.finish()
    rows = shift.qps(node)
    check(len(rows) == user.QPS and all(row["state"] == "unprotected" for row in rows), f"{rows}")
    user.disconnect()
    user.end()
    shift.unpair(node)
    shift.unload(node)


def unhelped(kind, bed):
    """The negative control: without the module the same fault makes it say what others must not."""
    user = kind(bed)
    user.serve()
    each(bed.nodes[:2], lambda node: node.must("dmesg -c >/dev/null"))
    user.connect()
    work = WORK[kind](user)
    work.more(1)
    quiet(bed, user)
    pull(bed, "local")
    wait_for("a line about its trouble",
             lambda: any(trouble(node, user) for node in bed.nodes[:2]), 400)
    bed.plug_all()
    work.abandon()
    user.end()


def each_user(kind):
    """Register the tests of one.

    When RDS is asked for a connection it ends an id of RDMA CM in the handler of another one, which
    lockdep takes for a deadlock, with the module or without.
    """
    kernels = STOCK if kind is Rds else MAIN
    fio = Fio if kind in (Nvme, Iser) else None

    def new(name, function, *arguments):
        add("kernel_failover", f"{kind.NAME}: {name}", partial(function, *arguments), kernels, BARE)

    for side in SIDES:
        new(f"{side} cable", cable, side, 1, kind, fio)
        new(f"{side} cable, ten times", cable, side, 10, kind, fio)
    new("silent loss", silent, kind, 1, fio)
    new("silent loss, ten times", silent, kind, 10, fio)
    new("drained and taken back", drained, kind)
    new("a cable, then the backup's", backup_too, kind)
    # the only retry of RDS is over before that
    if kind is not Rds:
        new("both cables, the backup's comes back", all_out, kind)
    for seed in range(1, 4):
        new(f"cables at random, {seed}", at_random, seed, kind)
    new("its neighbour is lost", told_nothing, kind)
    new("its interface goes down and comes up", goes_down, kind)
    new("disconnected on the backup", ends_away, kind)
    # the driver of iSER does not come out of that: its removal waits for ever
    if kind is not Iser:
        new("without the module it says what it suffers", unhelped, kind)
    new("the module in one node only", alone, kind, 0)
    new("the module in the server's node only", alone, kind, 1)


for _kind in Nvme, Nfs, Rds, Iser:
    each_user(_kind)
for _name, _test in (("local cable", partial(cable, "local", 1, NvmeSrq, None)),
                     ("local cable, ten times", partial(cable, "local", 10, NvmeSrq, Fio)),
                     ("remote cable", partial(cable, "remote", 1, NvmeSrq, None)),
                     ("a cable, then the backup's", partial(backup_too, NvmeSrq)),
                     ("others join while it is away", others_join),
                     ("disconnected on the backup", partial(ends_away, NvmeSrq))):
    add("kernel_failover", f"{NvmeSrq.NAME}, {_name}", _test, MAIN, BARE)
for _kind in Nvme, Nfs, Iser:
    add("kernel_failover", f"{_kind.NAME}: its server registers all memory",
        partial(registers, _kind), STOCK, BARE)
for _kind, _program in (NvmeTwo, Fio), (NvmePolled, FioPolled):
    add("kernel_failover", f"{_kind.NAME}, local cable",
        partial(cable, "local", 1, _kind, _program), MAIN, BARE)
add("kernel_failover", "rds: the peer's MAC address changes on a working path", other_mac, STOCK,
    BARE)
add("kernel_failover", "nvme: a retry kills a QP", one_lost, STOCK, BARE)
for _name, _test in (("local cable", partial(cable, "local", 1, NfsOnDisk, Tree)),
                     ("remote cable", partial(cable, "remote", 1, NfsOnDisk, Tree)),
                     ("silent loss", partial(silent, NfsOnDisk, 1, Tree))):
    add("kernel_failover", f"nfs: on ext4, {_name}", _test, MAIN, BARE)
for _side in SIDES:
    add("kernel_failover", f"nvme: a filesystem, and too little memory, {_side} cable",
        partial(cable, _side, 1, Nvme, Files), MAIN, BARE)
    # on the debug kernel a node without any memory does not answer the lab any more
    add("kernel_failover", f"nvme: swap, and no memory left, {_side} cable",
        partial(cable, _side, 1, Nvme, Swap), STOCK, BARE)
