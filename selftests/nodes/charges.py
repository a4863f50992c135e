# SPDX-License-Identifier: GPL-2.0
"""Objects that the module makes for a process count for its rdma cgroup, and yield to its own."""

import re
from functools import partial

import shift
from registry import MAIN, STOCK, add
from testbed import PATCHED, check, each, wait_for
from traffic import Verify
from nodes.failover import on_backup, pull

CGROUPS = "/sys/fs/cgroup"
GROUP = f"{CGROUPS}/limited"
QPS = 4
PROXY = 2                   # a proxy QP and its CQ, on each device
ROOM = 32                   # kmod/core/charge.c leaves so much to the application
INSIDE = ["sh", "-c", f"echo $$ >{GROUP}/cgroup.procs && exec \"$@\"", "sh"]


def make_groups(bed):
    """A cgroup on each node, without limits."""
    for node in bed.nodes[:2]:
        node.must(f"mkdir -p {CGROUPS}; grep -q ' {CGROUPS} ' /proc/mounts || "
                  f"mount -t cgroup2 none {CGROUPS}")
        node.must(f"cd {CGROUPS} && echo +rdma >cgroup.subtree_control && mkdir -p {GROUP}")


def limit(node, device, count):
    """Objects that the processes may have on a device."""
    node.must(f"echo '{device} hca_object={count}' >{GROUP}/rdma.max")


def charged(node):
    """Objects that they have, on the default device and on the backup."""
    text = node.read(f"{GROUP}/rdma.current")
    return tuple(int(re.search(rf"^{dev} .*hca_object=(\d+)", text, re.M)[1])
                 for dev in ("rxe0", "rxe1"))


def end_groups(bed):
    """Nothing is charged any more, so that the cgroups can go."""
    for node in bed.nodes[:2]:
        wait_for(f"{node.name} is charged for nothing", lambda node=node: charged(node) == (0, 0))
        wait_for("it has no processes",
                 lambda node=node: not node.read(f"{GROUP}/cgroup.procs").strip())
    each(bed.nodes[:2], lambda node: node.must(f"rmdir {GROUP}"))


def traffic(bed, env):
    """shift_verify in the cgroups; connected."""
    return Verify(*bed.nodes[:2], "--size", 64, "--progress", 20, "--pace", 3, qps=QPS,
                  env=env, before=INSIDE)


def alone(bed):
    """What it has of its own on the default device, and its mirrors: without the provider."""
    counters = shift.Counters(bed)
    verify = traffic(bed, {})
    seen = [charged(node) for node in bed.nodes[:2]]
    mirrors = counters.delta("mirror_mr")
    verify.go()
    verify.more(1)
    verify.finish()
    for (own, backup), mirrored in zip(seen, mirrors):
        check(own > QPS, f"{own} objects with {QPS} QPs")
        check(backup == 1 + mirrored, f"{backup} are charged for a PD and {mirrored} MRs")
    return seen


def is_charged(bed, seen, most):
    """What is charged beside what @seen has."""
    for node, (own, mirrors) in zip(bed.nodes[:2], seen):
        wanted = (own + most, mirrors + most)
        check(charged(node) == wanted, f"{node.name}: {charged(node)} objects are charged on the "
              f"default and the backup, not {wanted}")


def counted(bed):
    """Each mirror, and a proxy QP with its CQ on either device, as long as they last."""
    make_groups(bed)
    seen = alone(bed)
    counters = shift.Counters(bed)
    verify = traffic(bed, PATCHED)
    each(bed.nodes[:2], lambda node: shift.protected(node, QPS))
    is_charged(bed, seen, PROXY * QPS)
    verify.go()
    verify.more(1)
    pull(bed, "local")
    on_backup(bed, QPS)
    verify.more(1)
    is_charged(bed, seen, PROXY * QPS)
    verify.finish()
    counters.still("failed", "mirror_failed", "illegal", "msg_bad")
    end_groups(bed)


def killed(bed):
    """Processes that are killed leave nothing that is charged."""
    make_groups(bed)
    verify = traffic(bed, PATCHED)
    each(bed.nodes[:2], lambda node: shift.protected(node, QPS))
    verify.go()
    verify.more(1)
    check(min(min(charged(node)) for node in bed.nodes[:2]) > PROXY * QPS, "nothing is charged")
    bed.nodes[0].must("killall -9 shift_verify")
    verify.client.expect(137)
    verify.server.wait(120)         # it notices, and ends by itself
    end_groups(bed)


def reasons(node):
    """States of shift_verify's QPs, and why they are not protected."""
    return {(row["state"], row.get("reason")) for row in shift.qps(node)
            if row["comm"] == "shift_verify"}


def unprotected(node, *words):
    """All of shift_verify's QPs are unprotected, for one of these reasons."""
    wanted = {("unprotected", word) for word in words or ("cgroup",)}
    wait_for(f"{node.name}: reason {words}",
             lambda: reasons(node) and reasons(node) <= wanted, 60, .2)


def stay_away(node):
    """All of shift_verify's QPs are on the backup; another program may have QPs that are not."""
    wait_for(f"{node.name}: on the backup", lambda: reasons(node) == {("fallback", None)}, 60, .2)


def no_room(bed):
    """All that the application makes fits, and nothing else: it runs as without the module."""
    make_groups(bed)
    client, server = bed.nodes[:2]
    (own, _), _ = alone(bed)
    # on the default device, and then on the backup
    for device, most in (("rxe0", own), ("rxe1", ROOM)):
        limit(client, device, most)
        counters = shift.Counters(bed)
        verify = traffic(bed, PATCHED)
        unprotected(client)
        # its peer says so, or has never called
        unprotected(server, "peer-unprotected", "no-session")
        check(device == "rxe0" or charged(client)[1] == 0, f"{charged(client)} are charged")
        check(counters.delta("mirror_failed")[0] > 0 or device == "rxe0", "all was mirrored")
        verify.go()
        verify.more(1)
        verify.finish()
        counters.still("failed", "illegal", "msg_bad")
        limit(client, device, "max")
    # and with room again
    verify = traffic(bed, PATCHED)
    each(bed.nodes[:2], lambda node: shift.protected(node, QPS))
    verify.go()
    verify.more(1)
    verify.finish()
    end_groups(bed)


def begun(bed, device):
    """Protected traffic with little room left; and how much is left if what is the module's goes."""
    make_groups(bed)
    (own, mirrors), _ = alone(bed)
    theirs = own if device == "rxe0" else mirrors
    most = theirs + PROXY * QPS + ROOM + 10
    limit(bed.nodes[0], device, most)
    verify = traffic(bed, PATCHED)
    each(bed.nodes[:2], lambda node: shift.protected(node, QPS))
    verify.go()
    verify.more(1)
    return verify, most - (own if device == "rxe0" else 0)


def fill(node, device, room):
    """As many objects as without the module, in the same cgroup."""
    edge = node.start([*INSIDE, "objects_edge", device, "ah"], env=PATCHED)
    edge.wait_line("^made ", 120)
    made = int(re.search(r"^made (\d+)", edge.text, re.M)[1])
    check(made == room, f"{made} objects were made on {device}, and there is room for {room}")
    return edge


def yields(device, bed):
    """Later the application needs all of its limit: protected QPs give up what they have."""
    client, server = bed.nodes[:2]
    verify, room = begun(bed, device)
    counters = shift.Counters(bed)
    edge = fill(client, device, room)
    unprotected(client)
    unprotected(server, "peer-unprotected")
    verify.more(1)
    edge.send("")
    edge.wait_line("^closed$")
    edge.expect(0)
    verify.more(1)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")
    limit(client, device, "max")
    end_groups(bed)


def away(bed):
    """QPs that are on the backup stay there when its limit is reached, and may go home."""
    client = bed.nodes[0]
    verify, room = begun(bed, "rxe1")
    counters = shift.Counters(bed)
    shift.must(client, "pair", "drain", "rxe0")
    on_backup(bed, QPS)
    edge = fill(client, "rxe1", room)
    verify.more(2)
    each(bed.nodes[:2], stay_away)
    edge.send("")
    edge.wait_line("^closed$")
    edge.expect(0)
    # a move that was refused, or called off, is asked for again
    def home():
        shift.ctl(client, "pair", "undrain", "rxe0")
        return reasons(client) == {("unprotected", "cgroup")}
    wait_for("home, and not protected", home, 150, .5)
    verify.more(1)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")
    limit(client, "rxe1", "max")
    end_groups(bed)


add("charges", "proxy QPs and mirrors count for the rdma cgroup", counted, STOCK)
add("charges", "processes that are killed", killed)
add("charges", "no room for protection", no_room, STOCK)
add("charges", "what is protected yields on the default device", partial(yields, "rxe0"), MAIN)
add("charges", "what is protected yields on the backup", partial(yields, "rxe1"))
add("charges", "the limit is reached while QPs are on the backup", away)
