# SPDX-License-Identifier: GPL-2.0
"""What becomes of users in the kernel besides cables: resets, removals, unloading, policies.

Most of it happens while their QPs are on the backup, and the first rail of the host is dead.
"""

from contextlib import contextmanager
from functools import partial

import shift
from registry import BARE, MAIN, add, test
from testbed import check, each, wait_for
from ulp import Iser, Nfs, Nvme, gone, quiet
from ulp_work import Disk, Files, Fio, Tree
from nodes.dead_nic import AGAIN, ONCE, dead_nic, policies
from nodes.failover import dropped, pull
from nodes.kernel_failover import moved, working

CONTROLLER = "/sys/class/nvme/nvme0"
# seconds: a controller tries every ten, and RDMA CM may take a minute to see that a try is in vain
RECONNECT = 240
ENDED = 60      # seconds for QPs to end whose path is dead


def numbers(node):
    """The numbers of the QPs that the module knows."""
    return {row["qpn"] for row in shift.qps(node)}


def ended(bed, before, within=ENDED):
    """QPs of before are gone at both ends. The host may be making new ones, which lead nowhere."""
    for node, old in zip(bed.nodes, before):
        wait_for(f"{node.name}: none of its QPs is left", lambda node=node, old=old:
                 not numbers(node) & old, within)
    check(not shift.qps(bed.nodes[1]), "the target has other QPs")


def live(user):
    """Wait until the controller is connected again."""
    wait_for("the controller is connected", lambda: user.host.read(
        f"{CONTROLLER}/state").strip() == "live", RECONNECT, .5)


def forgive(bed):
    """What was said of an end that was asked for is no trouble."""
    each(bed.nodes[:2], lambda node: node.must("dmesg -c >/dev/null"))


def recovered(bed, work):
    """With the cable the controller is back. Nothing that it was asked for has failed."""
    bed.plug_all()
    live(work.user)
    each(bed.nodes[:2], lambda node: shift.protected(node, work.user.QPS))
    shift.wait_session(bed)
    work.more(2)
    forgive(bed)


def away(bed, work, counters):
    """The cable is out and stays so; the numbers of the QPs that are on the backup."""
    pull(bed, "local")
    moved(bed, counters, work)
    return each(bed.nodes[:2], numbers)


@test("kernel_life", "nvme: a controller is reset on the backup", MAIN, BARE)
def reset(bed):
    """Its QPs end while the cable is out, and it connects when that is in again."""
    with working(bed, Nvme) as (work, counters):
        before = away(bed, work, counters)
        asked = work.node.start(f"echo 1 >{CONTROLLER}/reset_controller")
        ended(bed, before)
        counters.still("failed", "illegal")
        recovered(bed, work)
        # a reset that does not connect at once is said to have failed
        asked.wait()


@test("kernel_life", "nvme: the server is unloaded on the backup, and comes back", MAIN, BARE)
def server_goes(bed):
    """Both ends let go of their QPs while the cable is out."""
    with working(bed, Nvme) as (work, counters):
        user = work.user
        link = f"{user.TARGET}/ports/1/subsystems/{user.NQN}"
        before = away(bed, work, counters)
        user.target.must(f"rm {link} && modprobe -r nvmet-rdma")
        ended(bed, before)
        counters.still("failed", "illegal")
        user.target.must(f"modprobe nvmet-rdma && ln -s {user.TARGET}/subsystems/{user.NQN} {link}")
        recovered(bed, work)


@contextmanager
def served(bed, kind=Nvme):
    """The disk, or folder, is offered, and nobody has connected to it."""
    user = kind(bed)
    shift.setup(bed)
    user.serve()
    forgive(bed)
    yield user
    user.disconnect()
    gone(bed)
    user.end()
    shift.forget(bed)


def connected(bed, user, program=Disk):
    """Connect, and begin to work once that is protected."""
    user.connect()
    each(bed.nodes[:2], lambda node: shift.protected(node, user.QPS))
    shift.wait_session(bed)
    work = program(user)
    work.more(1)
    return work, shift.Counters(bed)


def all_away(bed, user):
    """Its QPs are on the backup, and stay there."""
    each(bed.nodes[:2], lambda node: shift.protected(node, user.QPS, "fallback"))


def comes_home(bed, user, counters):
    """With the cable its QPs are on the default path again, and nothing was wrong."""
    bed.plug_all()
    shift.home(bed, user.QPS)
    user.verify(user.DISK)
    counters.still("failed", "illegal", "msg_bad", "kernel_lost")


@test("kernel_life", "nvme: a namespace is removed on the backup, and comes back", MAIN, BARE)
def namespace_goes(bed):
    """Events of the target, and what the host does about them, take the backup, too.

    Nobody works on it: after a removal under I/O nvmet of 6.1 never lets go of it, with the module
    or without.
    """
    with served(bed) as user:
        work, counters = connected(bed, user)
        away(bed, work, counters)
        work.finish()
        all_away(bed, user)
        enable = f"{user.TARGET}/subsystems/{user.NQN}/namespaces/1/enable"
        user.target.must(f"echo 0 >{enable}")
        wait_for("no disk", lambda: user.host.run(f"test -b {user.DISK}").status, ENDED)
        user.target.must(f"echo 1 >{enable}")
        wait_for("the disk", lambda: not user.host.run(f"test -b {user.DISK}").status, ENDED)
        user.verify(user.DISK)
        all_away(bed, user)
        comes_home(bed, user, counters)
        quiet(bed, user)


@test("kernel_life", "nvme: a filesystem is unmounted on the backup", MAIN, BARE)
def unmounted(bed):
    """Pages that nobody has written yet go over the backup, and so does the journal."""
    with served(bed) as user:
        work, counters = connected(bed, user, Files)
        away(bed, work, counters)
        user.host.must(f"""set -e
            dd if=/dev/urandom of=/late bs=1M count=4 2>/dev/null
            cp /late {work.MOUNT}/late""")
        check(int(user.host.must("awk '$1 == \"Dirty:\" { print $2 }' /proc/meminfo")) > 1024,
              "nothing is left to be written")
        work.finish()
        all_away(bed, user)
        user.host.must(f"""set -e
            mount -t ext4 -o ro {user.DISK} {work.MOUNT}
            cmp /late {work.MOUNT}/late
            umount {work.MOUNT}
            rm /late""")
        comes_home(bed, user, counters)
        quiet(bed, user)


@test("kernel_life", "nvme: the host's driver is unloaded on the backup", MAIN, BARE)
def driver_goes(bed):
    """It ends its connections itself, and waits for that."""
    with served(bed) as user:
        work, counters = connected(bed, user)
        away(bed, work, counters)
        work.finish()
        user.host.must("modprobe -r nvme-rdma && ! test -e /sys/module/nvme_rdma", timeout=ENDED)
        gone(bed)
        counters.still("failed", "illegal", "msg_bad", "kernel_lost")
        bed.plug_all()
        shift.settled(bed)
        user.load()
        work, counters = connected(bed, user)
        work.finish()
        counters.still("failed", "illegal", "msg_bad", "kernel_lost")


@test("kernel_life", "nvme: its own device is removed on the backup", MAIN, BARE)
def own_goes(bed):
    """The host's driver ends the connections of a device that goes, and the disk goes with them."""
    with served(bed) as user:
        work, counters = connected(bed, user)
        before = away(bed, work, counters)
        work.finish()
        user.host.must("rdma link delete rxe0", timeout=ENDED)
        wait_for("no disk", lambda: user.host.run(f"test -b {user.DISK}").status, ENDED)
        ended(bed, before, 3 * user.KEEP_ALIVE)
        counters.still("illegal", "kernel_lost")
        shift.bring_back(user.host)
        shift.introduce(bed)
        bed.plug_all()
        shift.settled(bed)
        forgive(bed)
        work, counters = connected(bed, user)
        away(bed, work, counters)
        work.finish()
        all_away(bed, user)
        comes_home(bed, user, counters)
        quiet(bed, user)


def again(bed, user, program):
    """With the cable the user connects again by itself, and is protected as before."""
    bed.plug_all()
    # what it asks for first waits for its connection
    once = program(user)
    once.more(1, RECONNECT)
    once.finish()
    each(bed.nodes[:2], lambda node: shift.protected(node, user.QPS))
    shift.wait_session(bed)
    forgive(bed)
    work, counters = program(user), shift.Counters(bed)
    away(bed, work, counters)
    bed.plug_all()
    shift.home(bed, user.QPS)
    work.finish()
    counters.still("failed", "illegal", "msg_bad", "kernel_lost")
    quiet(bed, user)


@test("kernel_life", "nfs: the server ends on the backup, and begins again", MAIN, BARE)
def nfs_server_goes(bed):
    """Both ends let go of their QPs while the cable is out."""
    with served(bed, Nfs) as user:
        work, counters = connected(bed, user, Tree)
        before = away(bed, work, counters)
        work.finish()
        user.server.must(f"echo 0 >{user.NFSD}/threads", timeout=ENDED)
        ended(bed, before)
        counters.still("failed", "illegal", "kernel_lost")
        user.begin()
        again(bed, user, Tree)


@test("kernel_life", "iser: the target is switched off on the backup, and on again", MAIN, BARE)
def iser_target_goes(bed):
    """It ends its sessions; the initiator logs in again when it can."""
    with served(bed, Iser) as user:
        work, counters = connected(bed, user)
        before = away(bed, work, counters)
        work.finish()
        enable = f"{user.TARGET}/iscsi/{user.IQN}/tpgt_1/enable"
        user.target.must(f"echo 0 >{enable}", timeout=ENDED)
        ended(bed, before)
        counters.still("failed", "illegal", "kernel_lost")
        user.target.must(f"echo 1 >{enable}")
        again(bed, user, Disk)


@test("kernel_life", "nvme: the backup's device is removed under it", MAIN, BARE)
def backup_goes(bed):
    """No path is left: its user sees an error, and connects when the cable is in again."""
    with served(bed) as user:
        work, counters = connected(bed, user)
        before = away(bed, work, counters)
        user.host.must("rdma link delete rxe1", timeout=ENDED)
        # nobody can tell the target: it finds out as nothing is asked of it
        ended(bed, before, 3 * user.KEEP_ALIVE)
        counters.still("illegal")
        shift.bring_back(user.host)
        shift.introduce(bed)
        recovered(bed, work)
        # it is moved as before
        counters = shift.Counters(bed)
        pull(bed, "local")
        moved(bed, counters, work)
        bed.plug_all()
        shift.home(bed, user.QPS)
        work.finish()
        counters.still("failed", "illegal", "msg_bad", "kernel_lost")


def doubt(word, bed):
    """The target's NIC cannot be asked which of the host's commands it had, and has had none."""
    with served(bed) as user, policies(bed, word, word):
        work, counters = connected(bed, user)
        with dead_nic(user.target):
            bed.drop(user.host, 0, direction="out", opcode="RC_SEND_*")
            wait_for("commands are lost", lambda: dropped(bed) > 8, 60)
            pull(bed, "local")
            if word == AGAIN:
                moved(bed, counters, work)
                check(counters.delta("doubtful")[0] > 0, "nothing was posted again in doubt")
                counters.still("failed")
                bed.plug_all()
                shift.home(bed, user.QPS)
            else:
                wait_for("a QP has failed", lambda: sum(counters.delta("failed")) > 0, ENDED)
                wait_for("none is left", lambda: not shift.qps(user.target), ENDED)
                counters.still("doubtful")
        counters.still("illegal", "msg_bad")
        if word == ONCE:
            recovered(bed, work)
        work.more(2)
        work.finish()


# dead_nic.ko is built for the full matrix only
for _word in AGAIN, ONCE:
    add("kernel_life", f"nvme: a NIC that cannot be asked, {_word}", partial(doubt, _word),
        state=BARE)


@test("kernel_life", "nvme: rmmod and pair del are refused while it is connected", MAIN, BARE)
def refused(bed):
    """At home and away, with a reason; nothing changes by asking, and afterwards they are not."""
    def ask():
        for node in bed.nodes[:2]:
            said = node.run("rmmod rdma_shift")
            check(said.status and "in use" in said.err, f"{node.name}: rmmod: {said.text}")
            shift.refused(node, "pair", "del", "rxe0", says="users in the kernel")
            check(shift.used_by(node) == "nvme", f"{node.name}: {shift.used_by(node)}")

    # working() unloads the module at its end
    with working(bed, Nvme) as (work, counters):
        ask()
        work.more(1)
        away(bed, work, counters)
        ask()
        work.more(1)
        bed.plug_all()
        shift.home(bed, Nvme.QPS)
        ask()


class OneKey(Nvme):
    """The host gives the target the key of all of its memory, but for what is in pieces."""

    NAME = "nvme: register_always=N"
    DRIVER = "register_always=N"


def one_key(side, bed):
    """The target reads and writes the host's memory by a key that no request has registered."""
    with working(bed, OneKey, Fio) as (work, counters):
        pull(bed, side)
        moved(bed, counters, work)
        bed.plug_all()
        shift.home(bed, OneKey.QPS)
        pull(bed, side)
        moved(bed, counters, work, 3)
        bed.plug_all()
        shift.home(bed, OneKey.QPS)


for _side in "local", "remote":
    add("kernel_life", f"{OneKey.NAME}, {_side} cable", partial(one_key, _side), MAIN, BARE)
