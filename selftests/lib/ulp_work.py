# SPDX-License-Identifier: GPL-2.0
"""Programs that work on what a user of RDMA in the kernel offers, and compare what they read."""

import json

from registry import DEBUG
from testbed import check, each, wait_for


class Jobs:
    """Shells of a node that do the same all the time, in rounds; the end of one is an error."""

    def __init__(self, user, scripts):
        self.user, self.node = user, user.host
        self.jobs = [self.node.start(f"""
            n=0
            while ! test -e /tmp/enough; do
                {script}
                n=$((n + 1))
                echo round $n
            done""") for script in scripts]

    def rounds(self):
        """How many rounds each is through."""
        return [job.text.count("round ") for job in self.jobs]

    def more(self, count=1, timeout=120):
        """Wait until each is through so many rounds more."""
        then = self.rounds()
        wait_for(f"{count} rounds more of each", lambda: all(
            now - before >= count for now, before in zip(self.rounds(), then)) or self.ended(),
            timeout)
        check(not self.ended(), "\n".join(job.tail() for job in self.jobs))

    def ended(self):
        """Has one ended?"""
        return any(job.status is not None for job in self.jobs)

    def finish(self, timeout=120):
        """End after the round that each is in."""
        self.node.must("touch /tmp/enough")
        for job in self.jobs:
            job.expect(0, timeout=timeout)
        self.tidy()

    def tidy(self):
        """Nothing is left for others."""
        self.node.must("rm -rf /tmp/enough /tmp/wrote* /tmp/read*")

    def abandon(self, timeout=400):
        """End, however it went: a fault was not kept from it."""
        self.node.must("touch /tmp/enough")
        for job in self.processes():
            job.wait(timeout)
        self.tidy()

    def processes(self):
        """All that it has started."""
        return self.jobs


class Disk(Jobs):
    """Parts of a disk are written and read, past the cache."""

    WARM = 6        # rounds: more requests than a ledger has entries

    def __init__(self, user, jobs=4, blocks=64):
        super().__init__(user, [f"""
                dd if=/dev/urandom of=/tmp/wrote{job} bs=4k count={blocks} 2>/dev/null || exit 2
                dd if=/tmp/wrote{job} of={user.DISK} bs=4k seek={job * blocks} oflag=direct \\
                    conv=notrunc 2>/dev/null || exit 3
                dd if={user.DISK} of=/tmp/read{job} bs=16k count={blocks // 4} iflag=direct \\
                    skip={job * blocks // 4} 2>/dev/null || exit 4
                cmp /tmp/wrote{job} /tmp/read{job} || exit 5""" for job in range(jobs)])


class Swap(Jobs):
    """Files in a memory that is too small for them: a part of them is on the disk at any time.

    Who needs memory waits for the disk to write, and so may whoever carries what is written.
    """

    WARM = 1
    SIZE = 30       # MiB of each file
    SPARE = 16      # MiB that are left for all of them
    ATOMIC = 32768  # KiB that the kernel keeps for who cannot wait

    def __init__(self, user, jobs=4):
        node = user.host
        node.must(f"""set -e
            mkswap {user.DISK} >/dev/null
            swapon {user.DISK}
            mkdir -p /hog /full
            mount -t ramfs none /hog
            mount -t tmpfs -o size=90% none /full
            # for packets: rxe of 6.12 ends a QP that has none
            echo {self.ATOMIC} >/proc/sys/vm/min_free_kbytes
            # of memory that cannot be swapped
            left=$(awk '$1 == "MemAvailable:" {{ print int($2 / 1024) }}' /proc/meminfo)
            dd if=/dev/zero of=/hog/all bs=1M count=$((left - {self.SPARE})) 2>/dev/null""",
                  timeout=120)
        super().__init__(user, [f"""
                dd if=/dev/urandom of=/full/wrote{job} bs=1M count=1 2>/dev/null || exit 2
                for part in $(seq {self.SIZE}); do cat /full/wrote{job}; done >/full/file{job} \
                    || exit 3
                for part in $(seq 0 {self.SIZE - 1}); do
                    dd if=/full/file{job} bs=1M count=1 skip=$part 2>/dev/null \
                        | cmp - /full/wrote{job} || exit 4
                done""" for job in range(jobs)])

    def swapped(self):
        """Pages that went to the disk and came from it, since boot."""
        lines = dict(line.split() for line in self.node.read("/proc/vmstat").splitlines())
        return int(lines["pswpout"]), int(lines["pswpin"])

    def more(self, count=1, timeout=300):
        """Wait until so many times 500 pages more went to the disk, and as many came from it."""
        then = self.swapped()
        wait_for(f"{count} times 500 pages out and in", lambda: all(
            now - before >= 500 * count for now, before in zip(self.swapped(), then))
            or self.ended(), timeout)
        check(not self.ended(), "\n".join(job.tail() for job in self.jobs))

    def finish(self, timeout=600):
        super().finish(timeout)
        self.node.must(f"umount /full /hog && swapoff {self.user.DISK}", timeout=300)


class Files(Jobs):
    """Files on the disk, of processes that may have less memory than the files' pages take.

    Whoever takes a page more gives up others first. Pages that were changed have to be written for
    that, and whoever carries what is written may have to wait for that memory.
    """

    WARM = 1
    SIZE = 8        # MiB of each file
    MEMORY = 8      # MiB for all of them
    ROUND = 300     # pages; the debug kernel takes ten times as long for each
    SLOW_ROUND = 100
    MOUNT = "/small"
    CGROUPS = "/sys/fs/cgroup"
    GROUP = f"{CGROUPS}/small"

    def __init__(self, user, jobs=4):
        node = user.host
        node.push("/sbin/mke2fs", "/sbin/e2fsck")
        node.must(f"""set -e
            grep -q ' {self.CGROUPS} ' /proc/mounts || mount -t cgroup2 none {self.CGROUPS}
            echo +memory >{self.CGROUPS}/cgroup.subtree_control
            mkdir -p {self.GROUP} {self.MOUNT}
            echo {self.MEMORY}M >{self.GROUP}/memory.high
            mke2fs -q -t ext4 {user.DISK}
            mount -t ext4 {user.DISK} {self.MOUNT}
            dd if=/dev/urandom of=/tmp/wrote bs=1M count=1 2>/dev/null""", timeout=300)
        super().__init__(user, [f"""
                echo $$ >{self.GROUP}/cgroup.procs
                for part in $(seq {self.SIZE}); do
                    echo {job} $n $part
                    cat /tmp/wrote
                done >{self.MOUNT}/file{job} || exit 3
                for part in $(seq {self.SIZE}); do
                    read -r line && test "$line" = "{job} $n $part" || exit 4
                    dd bs=64k count=16 2>/dev/null | cmp - /tmp/wrote || exit 5
                done <{self.MOUNT}/file{job}""" for job in range(jobs)])

    def pages(self):
        """Pages that the processes gave up, and pages that were written to disks."""
        return tuple(int(self.node.must(f"awk '$1 == \"{name}\" {{ print $2 }}' {path}"))
                     for name, path in (("pgsteal", f"{self.GROUP}/memory.stat"),
                                        ("nr_written", "/proc/vmstat")))

    def more(self, count=1, timeout=300):
        """Wait until so many times some pages were given up, and written."""
        then = self.pages()
        pages = count * (self.SLOW_ROUND if self.node.cluster.kernel == DEBUG else self.ROUND)
        wait_for(f"{pages} pages given up, and written", lambda: all(
            now - before >= pages for now, before in zip(self.pages(), then))
            or self.ended(), timeout)
        check(not self.ended(), "\n".join(job.tail() for job in self.jobs))

    def finish(self, timeout=600):
        super().finish(timeout)
        self.node.must(f"""set -e
            umount {self.MOUNT}
            e2fsck -f -n {self.user.DISK}
            rmdir {self.GROUP}""", timeout=300)


class Tree(Jobs):
    """Trees of files are copied, renamed, compared past the cache and removed; a lock is held."""

    WARM = 3
    SIZES = 0, 10, 5000, 70000, 300000

    def __init__(self, user, jobs=3):
        host, top = user.host, user.MOUNT
        host.push("/usr/bin/flock")
        super().__init__(user, [f"""
                tree=/tmp/wrote{job}; there={top}/tree{job}
                rm -rf $tree; mkdir -p $tree/below || exit 2
                for size in {" ".join(map(str, self.SIZES))}; do
                    head -c $size /dev/urandom >$tree/below/$size || exit 2
                done
                cp -r $tree $there.new && mv $there.new $there || exit 3
                sync $there/below/*
                for size in {" ".join(map(str, self.SIZES))}; do
                    dd if=$there/below/$size of=/tmp/read{job} bs=64k iflag=direct 2>/dev/null \\
                        || exit 4
                    cmp $tree/below/$size /tmp/read{job} || exit 5
                done
                test "$(ls $there/below | wc -l)" = {len(self.SIZES)} || exit 6
                rm -r $there || exit 7""" for job in range(jobs)])
        self.lock = host.start(f"flock {top}/held sh -c 'echo held; "
                               "while ! test -e /tmp/enough; do sleep 1; done'")
        self.lock.wait_line("held")
        self.locks = user.locks()
        self.connects = user.connects()

    def processes(self):
        """One holds the lock."""
        return [*self.jobs, self.lock]

    def finish(self, timeout=120):
        """End, and see that the lock was held by one connection all the time."""
        locks, connects = self.user.locks(), self.user.connects()
        check(int(locks) and locks == self.locks, f"{locks} locks, there were {self.locks}")
        check(connects == self.connects, f"connected {connects} times, before {self.connects}")
        self.node.must("touch /tmp/enough")
        self.lock.expect(0, timeout=60)
        super().finish(timeout)


class Datagrams:
    """Each end sends to the other, and checks that all come once, in order, as they were sent."""

    WARM = 12

    def __init__(self, user):
        self.user = user
        self.ends = user.start("--port 4001")

    def rounds(self):
        """How many hundreds each has heard."""
        return [end.text.count("heard ") for end in self.ends]

    def more(self, count=1, timeout=120):
        """Wait until each has heard so many hundreds more."""
        then = self.rounds()
        wait_for(f"{count} times 100 datagrams", lambda: all(
            now - before >= count for now, before in zip(self.rounds(), then)) or any(
            end.status is not None for end in self.ends), timeout)
        check(all(end.status is None for end in self.ends),
              "\n".join(end.tail() for end in self.ends))

    def abandon(self):
        """End; none of them is lost by a fault."""
        self.finish()

    def finish(self):
        """Both are told to end, and do when they have heard all. The longest pause, in seconds."""
        each(self.user.nodes, lambda node: node.must("killall -INT rds_verify"))
        for end in self.ends:
            end.expect(0, timeout=120)
        return max(int(end.wait_line(r"longest pause (\d+) ms").group(1))
                   for end in self.ends) / 1e3


class Fio:
    """fio as packaged: random reads and writes of 4 KiB, many at a time, each verified."""

    WARM = 6
    ENGINE = "libaio"
    OPTIONS = ("--name=verify --direct=1 --rw=randrw "
               "--bs=4k --iodepth=32 --numjobs=2 --offset_increment=16m --size=16m "
               "--verify=crc32c --verify_backlog=64 --verify_fatal=1 --serialize_overlap=1 "
               "--time_based --runtime=3600 --group_reporting --output-format=json "
               "--output=/tmp/fio.json")
    PID = "/tmp/fio.pid"

    def __init__(self, user):
        self.user, self.node = user, user.host
        self.node.push("/usr/bin/fio")
        self.process = self.node.start(
            f"echo $$ >{self.PID}; exec fio --filename={user.DISK} --ioengine={self.ENGINE} "
            f"{self.OPTIONS}")
        self.count = user.requests

    def more(self, count=1, timeout=120):
        """Wait for some hundreds of requests more."""
        then = self.count()
        wait_for(f"{count} times 200 requests", lambda: self.process.status is not None
                 or self.count() >= then + 200 * count, timeout)
        check(self.process.status is None, self.process.tail())

    def finish(self):
        """End it, and see that nothing was wrong; the longest stall, in seconds."""
        # one of its jobs that gets the signal in the middle of something may wait for ever
        self.node.must(f"kill -INT $(cat {self.PID})")
        self.process.expect(128, timeout=120)
        # in front of it fio says that it was interrupted
        text = self.node.read("/tmp/fio.json")
        job = json.loads(text[text.index("{"):])["jobs"][0]
        check(job["error"] == 0, f"fio: {job['error']}")
        return max(job[way]["clat_ns"]["max"] for way in ("read", "write")) / 1e9


class FioPolled(Fio):
    """The same, by somebody who polls for the end of each request."""

    ENGINE = "pvsync2 --hipri"

    def __init__(self, user):
        disk = user.DISK.removeprefix("/dev/")
        check(user.host.read(f"/sys/block/{disk}/queue/io_poll").strip() == "1",
              f"{disk} cannot be polled")
        super().__init__(user)
