# SPDX-License-Identifier: GPL-2.0
"""Users in the kernel: Documentation/internals/kernel-users.md."""

import shift
from registry import BARE, STOCK, test
from testbed import PREFIX, check, each, wait_for

NQN = "shift"
PORT = 4420
KEEP_ALIVE = 5 * shift.DEADLINE_SCALE   # seconds: nvme's own, as slow as the module is on nodes
CONFIG = "/sys/kernel/config"
TARGET = f"{CONFIG}/nvmet"
# Blocks of 4 KiB of each of the writers that are at work at the same time.
BLOCKS, WRITERS = 32, 4
ROUNDS = 12
ROUNDS_OF_WAYS = 50
WARM = 3        # rounds, until caches have what they keep
# Of unswappable memory, in KiB: what a round may not leave behind. The record of a QP for data has
# twice as much. Caches and deferred frees take a part of it.
LEFT = 32


class Nvme:
    """A block device in the memory of the second node, which the first one connects to."""

    def __init__(self, bed):
        self.host, self.target = bed.nodes[:2]
        self.address = self.target.address(0)

    def serve(self):
        """Offer the block device."""
        disk, port = f"{CONFIG}/nullb/nullb0", f"{TARGET}/ports/1"
        space = f"{TARGET}/subsystems/{NQN}/namespaces/1"
        self.target.must(f"""set -e
            modprobe null_blk nr_devices=0
            modprobe nvmet-rdma
            grep -q " {CONFIG} " /proc/mounts || mount -t configfs configfs {CONFIG}
            mkdir {disk}
            echo 64 >{disk}/size
            echo 1 >{disk}/memory_backed
            echo 4096 >{disk}/blocksize
            echo 1 >{disk}/power
            mkdir {TARGET}/subsystems/{NQN}
            echo 1 >{TARGET}/subsystems/{NQN}/attr_allow_any_host
            mkdir {space}
            echo /dev/nullb0 >{space}/device_path
            echo 1 >{space}/enable
            mkdir {port}
            echo rdma >{port}/addr_trtype
            echo ipv4 >{port}/addr_adrfam
            echo {self.address} >{port}/addr_traddr
            echo {PORT} >{port}/addr_trsvcid
            ln -s {TARGET}/subsystems/{NQN} {port}/subsystems/{NQN}""")
        # its own multipath would try again what is to go well the first time
        self.host.must("modprobe nvme_core multipath=N && modprobe nvme-rdma")

    def connect(self):
        """Connect, and wait for the block device."""
        self.host.must(f"echo transport=rdma,traddr={self.address},trsvcid={PORT},nqn={NQN},"
                       f"nr_io_queues=1,keep_alive_tmo={KEEP_ALIVE} >/dev/nvme-fabrics")
        wait_for("the namespace", lambda: not self.host.run("test -b /dev/nvme0n1").status)

    def disconnect(self):
        """End the connection, if there is one."""
        self.host.must("for each in /sys/class/nvme/nvme*/delete_controller; do "
                       "! test -e $each || echo 1 >$each; done")

    def end(self):
        """Take all of it down."""
        self.disconnect()
        self.host.must("modprobe -r nvme-rdma")
        self.target.must(f"""set -e
            rm -f {TARGET}/ports/1/subsystems/{NQN}
            rmdir {TARGET}/ports/1 {TARGET}/subsystems/{NQN}/namespaces/1
            rmdir {TARGET}/subsystems/{NQN} {CONFIG}/nullb/nullb0
            modprobe -r nvmet-rdma
            modprobe -r null_blk""")

    def traffic(self):
        """Write and read at the same time, past the cache, and compare."""
        self.host.must(f"""set -e
            disk=/dev/nvme0n1
            one() {{
                dd if=/dev/urandom of=/tmp/wrote$1 bs=4k count={BLOCKS} 2>/dev/null
                dd if=/tmp/wrote$1 of=$disk bs=4k seek=$(($1 * {BLOCKS})) oflag=direct 2>/dev/null
                dd if=$disk of=/tmp/read$1 bs=64k count={BLOCKS // 16} iflag=direct \\
                    skip=$(($1 * {BLOCKS // 16})) 2>/dev/null
                cmp /tmp/wrote$1 /tmp/read$1
            }}
            for each in $(seq 0 {WRITERS - 1}); do one $each & pids="$pids $!"; done
            for pid in $pids; do wait $pid; done
            rm /tmp/wrote* /tmp/read*""", timeout=120)


def unreclaimable(node):
    """Memory of the kernel that cannot be freed, in KiB."""
    for line in node.read("/proc/meminfo").splitlines():
        if line.startswith("SUnreclaim:"):
            return int(line.split()[1])
    raise AssertionError("no SUnreclaim in /proc/meminfo")


def said(node):
    """How many lines the module has said."""
    return int(node.run("dmesg | grep -c rdma_shift:").out)


def users(node):
    """Whose QPs the module knows, by the names of their modules, with the reasons."""
    return {(row["comm"], row.get("reason")) for row in shift.qps(node)}


def gone(bed):
    """Wait until the module knows no QP. A target lets go of its own a moment later."""
    for node in bed.nodes:
        wait_for(f"{node.name}: no QP left", lambda node=node: not shift.qps(node))


@test("kernel_users", "each way of polling, chains, registrations, RESET, drain", state=BARE)
def all_ways(bed):
    """A user that does what others seldom do: it notices nothing; lost is what it overfills. It is
    shown completions that no device has, whatever way it polls."""
    node = bed.nodes[0]
    run = f"insmod {PREFIX}/rds_rdma.ko dev=rxe0 rounds={ROUNDS_OF_WAYS}"
    for asked in ("", "kernel_users=rds"):
        shift.setup(bed, f"{shift.MODULE} {asked}")
        result = node.run(f"{run} pushes={int(bool(asked))}", timeout=300)
        # it never stays
        check("temporarily unavailable" in result.err,
              f"{asked}: {result.text}\n{node.run('dmesg | grep rds_rdma:').out}")
        stats = shift.stats(node)
        found = [stats[name] for name in ("kernel_qps", "kernel_lost", "illegal", "failed")]
        # two QPs for each of four ways, one of which posts more than its queue takes; and one more
        check(found == ([9, 4, 0, 0] if asked else [0, 0, 0, 0]), f"{asked}: {stats}")
        # at least a send, a receive and a registration in each round
        check((stats["kernel_posts"] >= 4 * 3 * ROUNDS_OF_WAYS) == bool(asked), f"{asked}: {stats}")
        check(not shift.qps(node), "a QP is left")
        shift.forget(bed)


@test("kernel_users", "nvme: connect, write, read, disconnect, again and again", state=BARE)
def nvme_again(bed):
    """All that is posted is recorded and found completed; nothing is left, and nothing is said."""
    shift.setup(bed, f"{shift.MODULE} kernel_users=nvme")
    nvme = Nvme(bed)
    nvme.serve()
    counters = shift.Counters(bed)
    lines = before = None
    for number in range(WARM + ROUNDS):
        if number == WARM:
            lines, before = each(bed.nodes, said), each(bed.nodes, unreclaimable)
        nvme.connect()
        nvme.traffic()
        if not number:
            each(bed.nodes, lambda node: shift.protected(node, 2))
            check(users(nvme.host) == {("nvme_rdma", None)}, f"{users(nvme.host)}")
            check(users(nvme.target) == {("nvmet_rdma", None)}, f"{users(nvme.target)}")
            shift.refused(nvme.host, "pair", "del", "rxe0")
        nvme.disconnect()
        gone(bed)
    # a queue for commands and one for data, each time
    counters.moved("kernel_qps", 2 * (WARM + ROUNDS))
    counters.moved("kernel_posts", (WARM + ROUNDS) * WRITERS * BLOCKS)
    counters.still("kernel_lost", "switches", "mirror_failed", "failed", "illegal")
    check(each(bed.nodes, said) == lines, "the module has said something")
    wait_for(f"no more than {LEFT} KiB left of a round", lambda: all(
        now - then < LEFT * ROUNDS
        for now, then in zip(each(bed.nodes, unreclaimable), before)))
    # CQs of the core's pools are still there
    shift.forget(bed)
    nvme.connect()
    nvme.traffic()
    nvme.end()


@test("kernel_users", "nvme: not asked for, or older than the module", STOCK, BARE)
def nvme_untouched(bed):
    """Its QPs are not tracked, and the module comes and goes while they work."""
    nvme = Nvme(bed)
    nvme.serve()
    for users_of in ("", "kernel_users=nfs,rds", "kernel_users=nvme"):
        if users_of.endswith("nvme"):
            nvme.connect()
        shift.setup(bed, f"{shift.MODULE} {users_of}")
        if not users_of.endswith("nvme"):
            nvme.connect()
        nvme.traffic()
        counters = each(bed.nodes, shift.stats)
        check(not any(stats["kernel_qps"] or stats["kernel_posts"] for stats in counters),
              f"{users_of}: {counters}")
        shift.forget(bed)
        nvme.traffic()
        nvme.disconnect()
    nvme.end()
    result = bed.nodes[0].run(f"insmod {shift.MODULE} kernel_users=nvme,smc")
    check(result.status and not shift.loaded(bed.nodes[0]), "a name that is not known is taken")
