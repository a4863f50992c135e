# SPDX-License-Identifier: GPL-2.0
"""A stream between two kernels, each request of which is checked at both ends.

The module of both ends is selftests/unit/kmod/kernel_stream.c.
"""

import ipaddress

from testbed import PREFIX, check, each, wait_for


class Stream:
    """The first node sends, the second one answers; as a user of RDMA in the kernel (ulp.py)."""

    NAME = "stream"
    QPS = 1
    OPTIONS = {}    # parameters of its module
    LINES = "rds_rdma"
    TROUBLE = "VIOLATION|error|fail"
    FOLDER = "/sys/kernel/debug/kernel_stream"
    ENDS = "send", "receive"

    def __init__(self, bed):
        self.bed = bed
        self.nodes = self.host, self.receiver = bed.nodes[:2]

    def serve(self):
        """rxe does not say that two of its devices are atomic towards each other."""
        if self.OPTIONS.get("atomics"):
            each(self.nodes, lambda node: node.must(
                "echo Y >/sys/module/rdma_shift/parameters/allow_nonglobal_atomics"))

    def connect(self):
        """Load both ends, and tell each the other's numbers."""
        options = " ".join(f"{name}={int(value) if isinstance(value, bool) else value}"
                           for name, value in {"qps": self.QPS, **self.OPTIONS}.items())
        for node, end in zip(self.nodes, self.ENDS):
            node.must(f"insmod {PREFIX}/rds_rdma.ko dev={self.bed.nics.default} stream={end} "
                      f"{options}", timeout=120)
        for node, other in self.nodes, self.nodes[::-1]:
            gid = f"{'0' * 20}ffff{int(ipaddress.ip_address(other.address(0))):08x}"
            mac = other.read("/sys/class/net/rail0/address").strip().replace(":", "")
            for line in other.read(f"{self.FOLDER}/numbers").splitlines():
                node.must(f"echo {line} {mac} {gid} >{self.FOLDER}/connect")

    def counts(self, node):
        """What an end has seen so far."""
        lines = node.read(f"{self.FOLDER}/counts").splitlines()
        return {name: int(value) for name, value in map(str.split, lines)}

    def violations(self):
        """What is wrong, if anything is: of each end, how many, and the first that were said."""
        return [(count, node.run("dmesg | grep VIOLATION").out)
                for node, count in zip(self.nodes, each(
                    self.nodes, lambda node: self.counts(node)["violations"])) if count]

    def disconnect(self):
        """Unload both ends."""
        each(self.nodes, lambda node: node.must(
            "! test -d /sys/module/rds_rdma || rmmod rds_rdma", timeout=120))

    def end(self):
        """Nothing else is there."""
        self.disconnect()


def stream(qps=1, **options):
    """The class of streams with these parameters."""
    return type("Stream", (Stream,), {"QPS": qps, "OPTIONS": options})


class Rounds:
    """Traffic of a stream, until it is finished."""

    WARM = 5
    STEP = 10       # rounds of each QP

    def __init__(self, user):
        self.user = user
        user.host.must(f"echo 1 >{user.FOLDER}/run")

    def counts(self):
        """Of both ends."""
        return each(self.user.nodes, self.user.counts)

    def right(self):
        """Insist that nothing was wrong so far."""
        found = self.user.violations()
        check(not found, f"{found}")

    def more(self, count=1, timeout=120):
        """Wait for some rounds more at both ends."""
        then = self.counts()
        wait_for(f"{count * self.STEP} rounds more", lambda: all(
            now["rounds"] >= before["rounds"] + count * self.STEP or now["violations"]
            for now, before in zip(self.counts(), then)), timeout)
        self.right()

    def finish(self):
        """End, and insist that what either end has told the other one has heard, once."""
        user = self.user
        for node in user.nodes:
            result = node.run(f"echo 0 >{user.FOLDER}/run", timeout=120)
            self.right()
            check(not result.status, f"{node.name}: {result.text}: {self.counts()}")
        sender, receiver = self.counts()
        check(sender["told"] == receiver["heard"] and receiver["told"] == sender["heard"] and
              sender["answered"] == receiver["answered"], f"{sender}, {receiver}")
        check(sender["adds"] == receiver["counter"], f"{sender}, {receiver}")
        check(bool(sender["adds"]) == bool(user.OPTIONS.get("atomics")), f"{sender}")
        keys = not user.OPTIONS.get("global_key")
        check(all(bool(sender[name]) == keys
                  for name in ("registered", "invalidated", "remotely")), f"{sender}")
