# SPDX-License-Identifier: GPL-2.0
"""Users of RDMA in the kernel, as packaged: what one node serves, and another connects to."""

import re

import shift
from testbed import check, each, wait_for

CONFIG = "/sys/kernel/config"


def disk_requests(node, disk):
    """Reads and writes that a disk has completed."""
    fields = node.read(f"/sys/block/{disk.removeprefix('/dev/')}/stat").split()
    return int(fields[0]) + int(fields[4])


class Nvme:
    """A block device in the memory of the second node, which the first one connects to."""

    NAME = "nvme"
    OWNERS = "nvme_rdma", "nvmet_rdma"
    QPS = 2         # a queue for commands and one for data
    QUEUES = ""     # for data, beside the one for each processor
    DEPTH = 128     # requests of a queue, each with an MR
    # What it says of a connection that is lost, and the block layer of a request.
    LINES = "nvme|blk_|I/O"
    TROUBLE = "reconnect|timeout|I/O error|failed|reset|recovery|no usable path|expired|fatal"
    DISK = "/dev/nvme0n1"
    NQN = "shift"
    PORT = 4420
    TARGET = f"{CONFIG}/nvmet"
    OPTIONS = ""    # of the target's module
    DRIVER = ""     # of the host's
    KEEP_ALIVE = 5 * shift.DEADLINE_SCALE   # seconds: its own, as slow as the module is on nodes
    RAILS = (0,)
    MULTIPATH = "N"     # its own would try again what is to go well the first time
    FAMILY = "ipv4"

    def __init__(self, bed):
        self.host, self.target = bed.nodes[:2]

    def address(self, rail):
        """Of the target."""
        return self.target.address(rail)

    def serve(self):
        """Offer the block device."""
        disk = f"{CONFIG}/nullb/nullb0"
        subsystem = f"{self.TARGET}/subsystems/{self.NQN}"
        space = f"{subsystem}/namespaces/1"
        self.target.must(f"""set -e
            modprobe null_blk nr_devices=0
            modprobe nvmet-rdma {self.OPTIONS}
            grep -q " {CONFIG} " /proc/mounts || mount -t configfs configfs {CONFIG}
            mkdir {disk}
            echo 256 >{disk}/size
            echo 1 >{disk}/memory_backed
            echo 4096 >{disk}/blocksize
            echo 1 >{disk}/power
            mkdir {subsystem}
            echo 1 >{subsystem}/attr_allow_any_host
            mkdir {space}
            echo /dev/nullb0 >{space}/device_path
            echo 1 >{space}/enable""")
        for rail in self.RAILS:
            port = f"{self.TARGET}/ports/{rail + 1}"
            self.target.must(f"""set -e
                mkdir {port}
                echo rdma >{port}/addr_trtype
                echo {self.FAMILY} >{port}/addr_adrfam
                echo {self.address(rail)} >{port}/addr_traddr
                echo {self.PORT} >{port}/addr_trsvcid
                ln -s {subsystem} {port}/subsystems/{self.NQN}""")
        self.load()

    def load(self):
        """Have the host's driver. Its parts stay loaded when it goes, with their parameters."""
        self.host.must(f"""rmmod nvme_fabrics nvme_core 2>/dev/null
            modprobe nvme_core multipath={self.MULTIPATH} && modprobe nvme-rdma {self.DRIVER}""")

    def connect(self, disk=DISK):
        """Connect, once more if there is a connection, and wait for the block device."""
        for rail in self.RAILS:
            self.host.must(f"echo transport=rdma,traddr={self.address(rail)},"
                           f"trsvcid={self.PORT},nqn={self.NQN},nr_io_queues=1,"
                           f"{self.QUEUES}keep_alive_tmo={self.KEEP_ALIVE},duplicate_connect "
                           ">/dev/nvme-fabrics")
        wait_for("the namespace", lambda: not self.host.run(f"test -b {disk}").status)

    def verify(self, disk):
        """Write and read a part of it that nobody else has, past the cache, and compare."""
        self.host.must(f"""set -e
            dd if=/dev/urandom of=/tmp/other bs=4k count=64 2>/dev/null
            dd if=/tmp/other of={disk} bs=4k seek=8192 oflag=direct conv=notrunc 2>/dev/null
            dd if={disk} bs=16k count=16 skip=2048 iflag=direct 2>/dev/null | cmp - /tmp/other
            rm /tmp/other""", timeout=120)

    def requests(self):
        """Reads and writes so far."""
        return disk_requests(self.host, self.DISK)

    def disconnect(self, controllers="nvme*"):
        """End connections, if there are any."""
        self.host.must(f"for each in /sys/class/nvme/{controllers}/delete_controller; do "
                       "! test -e $each || echo 1 >$each; done")

    def end(self):
        """Take all of it down."""
        self.disconnect()
        self.host.must("modprobe -r nvme-rdma")
        # its work item may end in the text of a module that is gone: nvmet-rdma does not wait; a
        # connection that was lost ends when nothing has come for as long as it keeps itself alive
        wait_for("the target's PD is gone", lambda: "nvmet_rdma" not in self.target.must(
            "rdma resource show pd"), 3 * self.KEEP_ALIVE)
        subsystem = f"{self.TARGET}/subsystems/{self.NQN}"
        self.target.must(f"""set -e
            rm -f {self.TARGET}/ports/*/subsystems/{self.NQN}
            rmdir {self.TARGET}/ports/* {subsystem}/namespaces/1
            rmdir {subsystem} {CONFIG}/nullb/nullb0
            modprobe -r nvmet-rdma
            modprobe -r null_blk""")


class NvmeTwo(Nvme):
    """The same with a queue for data more: one for writes, and one for reads."""

    NAME = "nvme: two queues"
    QPS = 3
    QUEUES = "nr_write_queues=1,"


class NvmePolled(Nvme):
    """The same with a queue whose CQ is polled by who waits, and by nobody else."""

    NAME = "nvme: polled"
    QPS = 3
    QUEUES = "nr_poll_queues=1,"


class NvmeSrq(Nvme):
    """The target's queues have their receives in common: as many as queues have that share them."""

    NAME = "nvme: the target has SRQs"
    OPTIONS = "use_srq=1 srq_size=256"


class Multipath(Nvme):
    """The same over two paths, between which nvme chooses by itself."""

    NAME = "nvme multipath"
    QPS = 4
    RAILS = (0, 1)
    MULTIPATH = "Y"

    def requests(self):
        """Reads and writes so far: the disk of all paths counts none."""
        paths = self.host.must("cd /sys/block && echo nvme*c*n*").split()
        return sum(disk_requests(self.host, path) for path in paths)


class Nfs:
    """A folder in the memory of the second node, which the first one mounts."""

    NAME = "nfs"
    OWNERS = "rpcrdma", "rpcrdma"
    QPS = 1
    LINES = "nfs|rpc|lockd"
    TROUBLE = "not responding|closed|reset|error|failed|lost|reclaim|recovery failed"
    PORT = 20049
    EXPORT, MOUNT = "/export", "/mnt"
    DISK = f"{MOUNT}/disk"      # a file, for who wants one
    NFSD = "/proc/fs/nfsd"
    STATE = "/var/lib/nfs"      # of the packaged programs

    BELOW = None                # on a disk of the server's, instead of in memory

    def __init__(self, bed):
        self.host, self.server = bed.nodes[:2]
        self.address = self.server.address(0)

    def serve(self):
        """Export the folder; nobody has to wait for clients of before."""
        self.server.push("/usr/sbin/exportfs", "/usr/sbin/rpc.mountd", "/sbin/mke2fs",
                         "/etc/netconfig:/etc/netconfig")
        below = "mount -t tmpfs none"
        if self.BELOW:
            below = f"mke2fs -q -t {self.BELOW} /dev/nullb0 && mount -t {self.BELOW} /dev/nullb0"
        self.server.must(f"""set -e
            modprobe null_blk nr_devices=1 gb=1 memory_backed=1
            modprobe rpcrdma
            modprobe nfsd
            mkdir -p /run {self.STATE}/v4recovery {self.EXPORT}
            touch /etc/exports {self.STATE}/etab {self.STATE}/rmtab
            {below} {self.EXPORT}
            # locks are to be held by the server, and not by a client with a delegation
            echo 0 >/proc/sys/fs/leases-enable
            mount -t nfsd nfsd {self.NFSD}
            echo "-3 +4.2" >{self.NFSD}/versions
            exportfs -o rw,no_root_squash,fsid=0,insecure,no_subtree_check \\
                10.0.0.0/8:{self.EXPORT}
            rpc.mountd -N 2 -N 3 -u""")
        self.begin()
        self.host.must(f"modprobe rpcrdma && modprobe nfsv4 && mkdir -p {self.MOUNT}")

    def begin(self):
        """Answer on the first rail; to end, a server takes zero for its threads."""
        self.server.must(f"""set -e
            echo rdma {self.PORT} >{self.NFSD}/portlist
            echo 4 >{self.NFSD}/threads
            echo Y >{self.NFSD}/v4_end_grace""")

    def connect(self):
        """Mount the folder."""
        self.host.must("mount -i -t nfs4 -o "
                       f"vers=4.2,proto=rdma,port={self.PORT},addr={self.address},"
                       f"clientaddr={self.host.address(0)} {self.address}:/ {self.MOUNT}")

    def connects(self):
        """How often the host has connected."""
        for line in self.host.read("/proc/self/mountstats").splitlines():
            if line.split()[:2] == ["xprt:", "rdma"]:
                return int(line.split()[4])
        raise AssertionError("nothing is mounted over RDMA")

    def requests(self):
        """Reads and writes so far."""
        text = self.host.read("/proc/self/mountstats")
        return sum(int(count) for count in re.findall(r"^\s*(?:READ|WRITE): (\d+)", text, re.M))

    def locks(self):
        """Locks of its clients, as the server has them."""
        return self.server.must("grep -c POSIX /proc/locks || true").strip()

    def disconnect(self):
        """Unmount it, if it is mounted."""
        self.host.must(f"! grep -q ' {self.MOUNT} ' /proc/mounts || umount {self.MOUNT}")

    def end(self):
        """Take all of it down."""
        self.disconnect()
        self.host.must("modprobe -r nfsv4")
        # an unmounted transport is closed by a work item
        wait_for("the transport is closed",
                 lambda: not self.host.run("modprobe -r rpcrdma").status, 60)
        self.server.must(f"""set -e
            echo 0 >{self.NFSD}/threads
            killall rpc.mountd
            exportfs -ua
            exportfs -f
            umount {self.NFSD} {self.EXPORT}
            modprobe -r nfsd
            modprobe -r rpcrdma
            modprobe -r null_blk""")


class NfsOnDisk(Nfs):
    """The same on a file system that writes to a disk, and has a journal."""

    BELOW = "ext4"


class Iser:
    """A disk in the memory of the second node, which the first one logs in to by iSCSI."""

    NAME = "iser"
    OWNERS = "ib_iser", "ib_isert"
    QPS = 1
    LINES = "iser|iscsi|scsi|sd |blk_|I/O"
    # it tells of a port error, too, and does nothing
    TROUBLE = "I/O error|conn error|fail|timed out|abort|reset|recover|lost|drop"
    DISK = "/dev/sda"
    IQN = "iqn.2026-01.org.example:shift"
    TARGET = f"{CONFIG}/target"
    PING = 5 * shift.DEADLINE_SCALE         # seconds: its own, as slow as the module is on nodes

    def __init__(self, bed):
        self.host, self.target = bed.nodes[:2]
        self.portal = f"{self.target.address(0)}:3260"
        self.daemon = None

    def serve(self):
        """Offer the disk, and have the initiator's daemon."""
        group, store = f"{self.TARGET}/iscsi/{self.IQN}/tpgt_1", f"{self.TARGET}/core/rd_mcp_0/disk"
        self.target.must(f"""set -e
            modprobe ib_isert
            grep -q " {CONFIG} " /proc/mounts || mount -t configfs configfs {CONFIG}
            mkdir -p {store}
            echo rd_pages=8192 >{store}/control
            echo 1 >{store}/enable
            mkdir -p {self.TARGET}/iscsi {group}/lun/lun_0
            ln -s {store} {group}/lun/lun_0/disk
            mkdir {group}/np/{self.portal}
            echo 1 >{group}/np/{self.portal}/iser
            echo 0 >{group}/attrib/authentication
            echo 1 >{group}/attrib/generate_node_acls
            echo 0 >{group}/attrib/demo_mode_write_protect
            echo 1 >{group}/enable""")
        self.host.push("/sbin/iscsid", "/sbin/iscsiadm",
                       "/etc/iscsi/iscsid.conf:/etc/iscsi/iscsid.conf")
        self.host.must(f"""set -e
            modprobe ib_iser
            modprobe sd_mod
            mkdir -p /run/lock
            echo InitiatorName={self.IQN}:host >/etc/iscsi/initiatorname.iscsi""")
        self.daemon = self.host.start("exec iscsid -f")

    def admin(self, words):
        """The administrator's program, on the record of the target."""
        self.host.must(f"iscsiadm -m node -T {self.IQN} -p {self.portal} {words}")

    def connect(self):
        """Log in, and wait for the disk."""
        wait_for("the initiator's daemon", lambda: not self.host.run(
            f"iscsiadm -m node -T {self.IQN} -p {self.portal} -I iser -o new").status)
        for name in "interval", "timeout":
            self.admin(f"-o update -n node.conn[0].timeo.noop_out_{name} -v {self.PING}")
        self.admin("--login")
        wait_for("the disk", lambda: not self.host.run(f"test -b {self.DISK}").status)

    def requests(self):
        """Reads and writes so far."""
        return disk_requests(self.host, self.DISK)

    def disconnect(self):
        """Log out, if it is logged in."""
        if not self.host.run("iscsiadm -m session").status:
            self.admin("--logout")

    def end(self):
        """Take all of it down."""
        self.disconnect()
        self.daemon.stop()
        self.host.must("modprobe -r ib_iser")
        top = f"{self.TARGET}/iscsi/{self.IQN}"
        group = f"{top}/tpgt_1"
        self.target.must(f"""set -e
            echo 0 >{group}/enable
            rm {group}/lun/lun_0/disk
            rmdir {group}/np/{self.portal} {group}/lun/lun_0 {group} {top} {self.TARGET}/iscsi
            rmdir {self.TARGET}/core/rd_mcp_0/disk {self.TARGET}/core/rd_mcp_0
            modprobe -r ib_isert""")


class Rds:
    """Datagrams that come once and in order, between two nodes."""

    NAME = "rds"
    OWNERS = "rds_rdma", "rds_rdma"
    QPS = 1
    LINES = "RDS"
    TROUBLE = "drop|reconnecting|status|fail|error"

    def __init__(self, bed):
        self.host, self.peer = self.nodes = bed.nodes[:2]

    def serve(self):
        """The module's own memory on each device is older than all connections."""
        each(self.nodes, lambda node: node.must("modprobe rds_rdma"))

    def connect(self):
        """The first datagram connects."""
        self.serve()
        for end in self.start("--count 1"):
            end.expect(0)

    def start(self, options):
        """The program at both ends. One begins, lest both connect at the same time."""
        ends = []
        for node, other, more in (self.peer, self.host, "--wait"), (self.host, self.peer, ""):
            ends.append(node.start(f"exec rds_verify --bind {node.address(0)} "
                                   f"--peer {other.address(0)} {more} {options}"))
            # what nobody is bound to is lost
            ends[-1].wait_line("bound")
        return ends

    def disconnect(self):
        """Connections stay until their user is unloaded."""
        each(self.nodes, lambda node: node.must("! test -d /sys/module/rds_rdma || "
                                                "modprobe -r rds_rdma"))

    def end(self):
        """Take all of it down."""
        self.disconnect()


def gone(bed):
    """Wait until the module knows no QP. A server lets go of its own a moment later."""
    for node in bed.nodes:
        wait_for(f"{node.name}: no QP left", lambda node=node: not shift.qps(node))


def trouble(node, user):
    """Lines of such a user in a node's log that nobody wants to see."""
    return node.run(f"dmesg | grep -Ei '{user.LINES}' | grep -Ei '{user.TROUBLE}'").out


def quiet(bed, user):
    """Nobody has said that anything went wrong."""
    for node in bed.nodes[:2]:
        lines = trouble(node, user)
        check(not lines, f"{node.name}: {lines}")
