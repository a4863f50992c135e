# SPDX-License-Identifier: GPL-2.0
"""Tests that are left out unless they are asked for: variants of others that are run.

A run takes all of them with SHIFT_LONG=1, and those that its patterns name. What is alone in
showing something on all kernels does not belong here.
"""

import os
from fnmatch import fnmatch

# By kernel; patterns of "suite: name". The kernels after the full matrix show what differs there,
# and the debug kernel, on which a test takes ten times as long, what it alone can find.
VARIANTS = {
    "6.1": [
        # each operation is in one of the mixes, with and without the module
        *(f"operations: {module}: {name}" for module in ("no module", "module") for name in (
            "write", "write_imm", "send", "send_imm", "read", "fadd", "cas", "mix: one direction",
            "mix: solicited events", "mix: ibv_post_send, inline, lists")),
        "operations: no module: mix: SRQ, solicited events",
        "operations: no module: mix: messages of 64 KiB",
        "operations: no module: mix: ibv_start_poll",
        *(f"after_failover: {name}" for name in (
            "write, *", "write_imm, *", "send, *", "send_imm, *", "read, *", "all, one direction",
            "asleep")),
        # of three dimensions, half of the corners
        *(f"failover: local cable, {name}" for name in (
            "1 QPs, 1 B", "1 QPs, 64 KiB", "8 QPs, 4 KiB", "8 QPs, 1 MiB")),
        *(f"failover: remote cable, {name}" for name in (
            "1 QPs, 4 KiB", "1 QPs, 1 MiB", "8 QPs, 1 B", "8 QPs, 64 KiB")),
        "failover: inline data by ibv_wr_*",
        "second_failure: *, after 5 packets, all come back",
        "srq: one QP, remote cable", "srq: 4 QPs, both directions, remote cable",
        "srq: drain and undrain: one QP", "srq: remote cable, plugged again, pulled again",
        *(f"windows: {name}" for name in (
            "all, remote cable", "ibv_wr_*, inline, lists", "asleep", "send_inv, remote cable",
            "there and back", "send_inv, answers lost")),
        "exactly_once: the answer to one send_imm is lost",
        "exactly_once: the answer to one write_imm is lost",
        "exactly_once: one cas is lost", "exactly_once: on the backup the answer to a write is lost",
        *(f"perftest: {name} survives the client's cable" for name in (
            "ib_write_lat", "ib_send_bw", "ib_send_lat", "ib_read_bw")),
        # the others do the same, and more beside it
        "programs: rping",
        # the host's cable shows the same, but for who asks first
        "kernel_failover: *, ten times", "kernel_failover: * at random, [23]",
        "kernel_failover: *: drained and taken back",
        # the engine is the same as on rxe; what is not is the fence, and how queues are drained
        "kernel_failover: mlx5: nvme: local cable", "kernel_failover: mlx5: nvme: silent loss",
        "kernel_failover: mlx5: nfs: *",
        # one end's packets are as good as the other's
        "kernel_second: a cable goes in the *, after [05] packets",
        "kernel_second: nvme: a cable *",
        # minutes, until NFS says that a server does not respond
        "kernel_failover: nfs: without the module it says what it suffers",
        # so does "a cable, then the backup's"
        "kernel_failover: nvme: the target has SRQs, local cable",
        "kernel_failover: nvme: the target has SRQs, remote cable",
        "kernel_failover: nvme: swap, and no memory left, remote cable",
        "kernel_failover: nvme: a filesystem, *, remote cable",
        "kernel_failover: nfs: on ext4, local cable", "kernel_failover: nfs: on ext4, silent loss",
        "kernel_failover: nvme: two queues, *",
        "kernel_failover: nfs: local cable", "kernel_failover: nfs: both cables, *",
        "kernel_failover: nfs: a cable, then *", "kernel_failover: nfs: the module in *",
        *(f"kernel_failover: {user}: {name}" for user in ("rds", "iser") for name in (
            "remote cable", "a cable, then *", "both cables, *", "cables at random, *",
            "disconnected on the backup", "the module in *")),
        "kernel_failover: iser: silent loss",
        "kernel_failover: nvme: its neighbour *", "kernel_failover: nfs: its neighbour *",
        "kernel_failover: iser: its neighbour *",
        *(f"kernel_failover: {user}: its interface *" for user in ("nvme", "nfs", "iser")),
        "kernel_users: *, 200 times", "kernel_users: nvme: the target has SRQs: *",
        *(f"kernel_users: {user}: *" for user in ("nfs", "iser", "rds")),
        *(f"kernel_failover: {user}: its server registers *" for user in ("nfs", "iser")),
        # one way by which handlers are called, and the one in which none is
        *(f"kernel_exactly_once: {name}" for name in (
            "softirq", "workqueue*", "mlx5: workqueue*", "unbound*", "direct, *", "a key *",
            "a FETCH_ADD *")),
        # QPs end as after a controller's reset
        *(f"kernel_life: nvme: {name}" for name in (
            "the server *", "its own device *", "the host's driver *", "the backup's device *",
            "a NIC that cannot be asked, at-least-once", "register_always=N, remote cable")),
        "kernel_life: nfs: *", "kernel_life: iser: *",
        # figures: each program that is known, over each outage
        "program_matrix: *",
        # what the attacker says is the same without keys; proofs have tests of their own
        "trust: a node of the directory that attacks the QPs of two others, *",
        # their passive ends are as that of rc_bw
        "programs: qperf rc_bi_bw", "programs: qperf rc_rdma_*",
        "programs: qperf rc_bw, the server's cable",
        "programs: rping, the client's cable stays out",
        # over IPv6 the address goes with the interface, too
        "programs: rping: the interface goes down and comes up",
        "programs: rping over IPv6, no module: *",
        # the other end asks for no lanes, either
        "versions: a node's module knows no lanes: the connecting one",
        "programs: UCX: the *", "programs: UCX: * only",
        "failback: drain and undrain: ibv_wr_*, inline, lists", "failback: drain and undrain: 64 KiB",
        "failback: drain and undrain: asleep",
        "directory: a cable that flaps as fast as it can",
        "mlx5: handed back: the peer ends, later", "mlx5: not handed back: its CQ was overrun",
        "mlx5: atomics outlast an outage, the server's cable",
        # what remains has each size, each number of QPs and each side once
        *(f"failover: {name}" for name in (
            "local cable, 8 QPs, 1 B", "remote cable, 1 QPs, 64 KiB", "remote cable, 8 QPs, 4 KiB")),
        "after_failover: one CQ for all, remote cable", "after_failover: one CQ for all, unsignaled",
        "failback: drain and undrain: writes", "failback: remote cable, plugged again, pulled again",
        "failback: local cable, then the backup's",
        # the simulator draws the moment; of each kind one moment is tried on nodes
        *(f"second_failure: {name}" for name in (
            "the peer is reset in fallback", "the peer comes back under an idle QP in default",
            "both cables go in the handshake, after 3 messages, and come back late",
            "a cable goes in the handshake, after 0 packets, all come back",
            "a cable goes in the failback, after 0 packets, all come back",
            "a cable goes in the failback, after 2 packets, all come back --srq",
            "a bad receive is there at the fault --srq", "a bad receive is met at the fault --srq")),
        "directory: a device is renamed while its QPs are away: they come home",
        "policy: 200 ms flap while the own backup is dead",
        "policy: backup first, default later: the error comes in time",
        "srq: messages of 64 KiB", "srq: drain and undrain: asleep, one CQ",
        "srq: local cable, then the backup's",
        "windows: SRQ, send_inv", "windows: there and back --srq",
        "windows: a cable, then the backup's",
        "perftest: ib_send_bw --use-srq -q 4, there and back",
        "perftest: ib_write_bw -q 16, there and back", "perftest: ib_read_lat -e, there and back",
        "perftest: ib_send_bw -e -q 4 in both directions survives",
        "perftest: ib_atomic_lat, moved away before the cable is pulled, and back",
        # the same asleep is not one, and perftest polls, too
        "programs: ibv_rc_pingpong", "programs: ibv_rc_pingpong, the server's cable",
        # of two devices that share the engine the other one has these
        *(f"mlx5: {name}" for name in (
            "WRITE, remote cable", "SEND, remote cable", "1 of 8 signaled", "inline", "events",
            "an idle QP in a CQ that others have filled, local cable",
            "handed back: ibv_wr_[*], unsignaled, ibv_start_poll",
            "failover: remote cable, 8 QPs, 64 KiB", "control: module: data, *",
            "after_failover: all, both directions", "after_failover: send answers lost *",
            "dead_nic: unknown: at-least-once here, exactly-once at the peer",
            "dead_nic: unknown: exactly-once here, *",
            "a module that replays from a wrong point is caught",
            *(f"SRQ: {name}" for name in (
                "one QP, remote cable", "4 QPs, both directions, local cable", "messages of 64 KiB",
                "ibv_start_poll", "asleep", "one CQ for all, resized", "drain and undrain: one QP",
                "drain and undrain: 4 QPs", "drain and undrain: asleep, one CQ",
                "local cable, plugged again, pulled again", "remote cable, plugged again, pulled again",
                "local cable, then the backup's")),
            "failback: local cable, plugged again, pulled again",
            "exactly_once: the answer to one send_imm is lost",
            "exactly_once: the answer to one write_imm is lost",
            *(f"random_schedule: {number} of *" for number in (1, 2, 3, 4)),
            "failover: silent loss, found by heartbeats", "protocols: simple, *",
            "after_failover: fences on the backup, requests lost", "handed back: WRITE",
            "handed back: inline, one CQ", "failback: remote cable, then the backup's",
            "second_failure: a cable goes in the failback, after 2 packets, all come back",
            "exactly_once: on the backup the answer to a send is lost",
            "second_failure: a cable goes in the handshake, after 2 packets, all come back")),
        # the simulator draws ten thousand schedules; nodes have one of each kind of device
        *(f"random_schedule: {number} of *" for number in (2, 3, 4)),
        "second_failure: both cables go in the handshake, and stay out",
        # what the program does without the module, in two of its mixes
        *(f"operations: no module: mix: {name}" for name in (
            "ibv_wr_[*], inline, lists", "SRQ, one CQ, resized", "events, CQ resized",
            "ibv_start_poll, events, one CQ, resized")),
        # to the module it is the same as the request lost
        "perftest: ib_atomic_lat, not moved, survives a short outage: the answer lost",
    ],
    "6.12": [
        *(f"kernel_exactly_once: {name}" for name in (
            "softirq", "workqueue*", "unbound*", "direct*", "a *", "key*", "mlx5: *")),
        "kernel_failover: mlx5: *",
        "kernel_second: nvme *", "kernel_second: nvme: *", "kernel_second: nfs: *",
        "kernel_second: a cable goes in the handshake, *",
        "kernel_failover: *: without the module it says what it suffers",
        # one of each user
        *(f"kernel_failover: {user}: remote cable" for user in ("nfs", "rds", "iser")),
        *(f"kernel_failover: *: {name}" for name in (
            "its neighbour is lost", "its interface *", "*, ten times",
            "drained and taken back", "a cable, then *",
            "both cables, *", "cables at random, *", "disconnected on the backup",
            "the module in *")),
        *(f"kernel_failover: nvme: the target has SRQs, {name}" for name in (
            "* cable", "a cable, *", "disconnected *")),
        "kernel_failover: rds: the peer's MAC *",
        "kernel_failover: nvme: silent loss", "kernel_failover: nfs: silent loss",
        "kernel_failover: iser: silent loss", "kernel_failover: rds: local cable",
        "kernel_failover: nvme: swap, *", "kernel_failover: nvme: a filesystem, *",
        "kernel_failover: nfs: on ext4, *", "kernel_failover: nvme: polled, *",
        "kernel_failover: nvme: two queues, *", "kernel_failover: nvme: a retry *",
        "kernel_users: *, 200 times",
        *(f"kernel_users: {user}: *" for user in ("nfs", "iser", "rds")),
        "kernel_failover: *: its server registers *",
        "kernel_life: *",
        "program_matrix: *",
        # a program's test, which runs on a node without the module
        "provider: *",
        "kernel_users: nvme: not asked for, *",
        "namespaces: *",
        # the debug kernel is 6.12, too, and has these
        "protocols: a QP to itself moves and comes back",
        "trust: nodes prove that they know the key",
        "memory: registrations that change, the client's cable",
        "memory: GPU memory is mirrored, the client's cable",
        "shapes: each is moved, the client's cable",
        "srq: 4 QPs, both directions, local cable",
        "srq: a QP without a peer that moves is connected while the SRQ is away",
        "session: both rails up, down and up again with the cable",
        "policy: an application killed in the middle of a failover",
        "pair: a registration that hangs holds up its process only",
        "application_qp: reset as errors are kept back",
        "abi: everything a hostile process may do to /dev/shift",
        "windows: bound before and after, and home again",
        "netlink: random attributes in thousands of messages",
        "failover: heartbeats alone are lost: *",
        "module: rmmod while traffic of older objects goes on",
        # the judge is the same code; that devices prove themselves is in each test with mlx5
        "mlx5: an assumption does not hold",
        "control: no module: the application gets its error",
        "module: insmod and rmmod, again and again, *",
        "failback: local cable, plugged again, pulled again",
        "shapes: each is moved, the server's cable",
        "mlx5_soft: appears and goes", "perftest: ib_write_bw without the module ends in an error",
        "directory: back home when the path is good again",
        "pair: a device is renamed", "pair: with itself, unknown, twice, deleted twice",
        "pair: mutual pairs and a third device", "pair: the backup in use goes, *",
        "pair: a registration of older memory domains hangs", "pair: pair show and sysfs *",
        "failover: remote cable, 1 QPs, 4 KiB", "failover: unsignaled, 1 of 8 signaled",
        "failover: inline data", "failover: a stopped application",
        "failover: 128 x 64 KiB, data lost after the second", "failover: heartbeats: *",
        "failover: a port that is active again wakes its links",
        "after_failover: one CQ for all, remote cable", "after_failover: one CQ for all, resized",
        "after_failover: one CQ for all, unsignaled",
        "application_qp: err as errors are kept back", "application_qp: attributes changed *",
        "application_qp: RTS after its path has gone",
        "failback: a move shows what it waits for", "failback: an idle application",
        "failback: link probe", "failback: drain and undrain: writes",
        "failback: local cable, then the backup's",
        "exactly_once: the first packet *", "exactly_once: the last packet *",
        "exactly_once: one fadd is lost", "exactly_once: a fadd that is posted on the backup *",
        "second_failure: an application killed in every state",
        "second_failure: memory is deregistered and used again amid a switch",
        "policy: stock provider: *", "programs: ibv_rc_pingpong",
        "programs: ibv_rc_pingpong, the server's cable", "random_schedule: 2 of *",
        "mlx5: an idle QP in a CQ *", "netlink: an ordinary user *",
        "verbs: hundreds of short applications",
        # these are about the module and its helper, and rxe of this kernel has no part in them
        "control: no module: *", "route: heartbeats *", "directory: shiftd is an ordinary user *",
        "trust: a peer that is removed *", "memory: GPU memory that cannot be mirrored",
        "module: rmmod after protected traffic leaves no trace",
        # another test here, or the same on 6.1, has these operations, faults and states
        "programs: UCX: a cable is pulled, and is back", "mlx5: 4 QPs, both directions",
        "random_schedule: 1 of *", "second_failure: both ends start a move at the same moment",
        "failover: local cable, 8 QPs, 64 KiB", "protocols: simple, *",
        "exactly_once: an operator's move waits for the answer to a fadd",
    ],
    "debug": [
        # users in the kernel take four minutes each: one of NVMe and one of NFS stand for all,
        # but for SRQs, which only a long run has here
        *(f"kernel_exactly_once: {name}" for name in (
            "softirq", "workqueue*", "unbound*", "direct*", "a *", "key*")),
        "kernel_second: *",
        "kernel_failover: nvme: the target has SRQs, *",
        "kernel_failover: *: without the module it says what it suffers",
        # one of NVMe, on which a filesystem is, and one of NFS
        *(f"kernel_failover: {user}: local cable" for user in ("nvme", "iser")),
        *(f"kernel_failover: *: {name}" for name in (
            "remote cable", "its neighbour is lost", "its interface *", "*, ten times",
            "silent loss", "drained and taken back", "a cable, then *", "both cables, *",
            "cables at random, *", "disconnected on the backup", "the module in *")),
        "kernel_failover: nvme: a filesystem, *, remote cable",
        "kernel_failover: nfs: on ext4, *", "kernel_failover: nvme: polled, *",
        "kernel_failover: nvme: two queues, *",
        "kernel_life: *",
        # kmemleak is asked after all tests, too
        "kernel_users: *, 12 times",
        # "bound before and after, and home again" goes the same way in a fifth of the time
        "random_schedule: 1 of seed *", "random_schedule: 12 of seed *",
        # the code that these run is run by the other tests of this kernel, too
        "module: rmmod after protected traffic leaves no trace",
        "memory: an application at its memlock limit",
        "after_failover: all, both directions", "control: module: data, *",
        "policy: backup and default dead: the error comes in time",
        "mlx5_soft: garbage in rings and doorbell records",
        "directory: back home when the path is good again",
        "pair: with itself, unknown, twice, deleted twice", "pair: mutual pairs and a third device",
        "failover: local cable, 8 QPs, 64 KiB",
        "failover: a port that is active again wakes its links",
        "failover: silent loss, found by heartbeats", "verbs: hundreds of short applications",
        "after_failover: one CQ for all, asleep",
        "application_qp: err as errors are kept back", "application_qp: attributes changed *",
        "application_qp: RTS after its path has gone",
        "failback: drain and undrain: all, both directions",
        "second_failure: memory is deregistered and used again amid a switch",
        "netlink: an ordinary user *",
        "failover: remote cable, 1 QPs, 4 KiB", "operations: module: mix: *",
        "application_qp: a bad receive on the backup, and a second life",
        "memory: udmabuf", "memory: GPU memory that cannot be mirrored",
        # QPs of that device are moved by tests of memory; of the device itself 6.1 tries all
        "mlx5: WRITE, local cable", "mlx5_soft: operations: both directions",
        "tracepoints: memory is deregistered when the peer has forgotten its key",
        "pair: objects made while pair del is refused are tracked",
    ],
}


def leave_out(title):
    """A variant by its title, on the kernel with the full matrix."""
    VARIANTS["6.1"].append(title)


def left_out(kernel, title):
    """Whether a test is left out of a run that asks for no test in particular."""
    return not os.environ.get("SHIFT_LONG") and any(
        fnmatch(title, pattern) for pattern in VARIANTS.get(kernel, ()))
