# SPDX-License-Identifier: GPL-2.0
"""shiftd and a real etcd: they configure, and are not missed afterwards."""

import time
from functools import partial

import shift
from directory import AS_SERVICE, KEYS, USER, Etcd, start_shiftd
from figures import Monitor
from registry import FULL, LOADED, MAIN, STOCK, add, test
from testbed import Failure, Unready, check, wait_for
from traffic import QP_TIMEOUT
from nodes.failover import (beating, dropped, fall_back, on_backup, pull, shape, start,
                            survives)
from nodes.failback import everywhere
from nodes.after_failover import MIXED

PAIRS = ["rxe0 rxe1", "rxe1 rxe0"]


class Directory:
    """etcd, and shiftd on every node, for the length of a test."""

    def __init__(self, bed, more="", pairs=None, service=False):
        self.bed = bed
        self.more = more
        self.service = service
        self.pairs = pairs or [PAIRS] * len(bed.nodes)
        self.etcd = Etcd()
        self.daemons = []

    def __enter__(self):
        try:
            self.etcd.start()
            self.daemons = [start_shiftd(node, self.etcd.guest_url, pairs, self.more,
                                         self.service)
                            for node, pairs in zip(self.bed.nodes, self.pairs)]
            if self.service:
                self.load_keys()
            self.wait_peers()
            try:
                shift.wait_session(self.bed)
            except Failure as failure:
                self.bed.found = shift.witness(self.bed)    # all of it is about to go
                raise Unready(str(failure)) from None
        except BaseException:
            self.__exit__()
            raise
        return self

    def load_keys(self):
        """Root does it, as another service. Until then no peer is set."""
        for node, daemon in zip(self.bed.nodes, self.daemons):
            daemon.wait_line(f"the kernel has no key of {KEYS}")
            check(not shift.show(node, "peer"), "there is a peer, although there is no key")
            give_keys(node, "old")

    def wait_peers(self):
        """Every node knows every other."""
        for node in self.bed.nodes:
            wait_for(f"{node.name}: peers from the directory",
                     lambda node=node: len(shift.show(node, "peer"))
                     == len(self.bed.nodes) - 1, 60)

    def kill_daemons(self):
        """As kill -9 does it: nobody says good-bye."""
        for node in self.bed.nodes:
            node.must("killall -9 shiftd")
        for daemon in self.daemons:
            daemon.wait(30)

    def __exit__(self, *_):
        self.bed.stop_processes()
        self.etcd.stop()
        for node in self.bed.nodes:
            if shift.loaded(node):
                shift.unpair(node)
                if self.service:
                    node.must("shiftctl key clear")


def give_keys(node, *names):
    """Write the file of keys, which is root's alone, and have the kernel read it."""
    words = "\n".join(f"the-{name}-key-of-the-cluster" for name in names)
    node.must(f"umask 077; rm -f {KEYS}; echo '{words}' >{KEYS} && shiftd --load-keys")
    check(shift.show(node, "node")["keys"] == len(names), "keys are not counted")


@test("directory", "pairs from the config, peers from etcd, a failover", STOCK,
      LOADED)
def by_directory(bed):
    """The whole way of an operator."""
    with Directory(bed):
        for node in bed.nodes:
            check(len(shift.show(node, "pair")) == 2, "not two pairs")
        verify = start(bed, *shape(4096, 1))
        survives(bed, verify, "local")


@test("directory", "shiftd is an ordinary user with one capability", STOCK, LOADED)
def unprivileged(bed):
    """Pairs, peers, proofs, failback and a change of keys, without a right to the keys."""
    with Directory(bed, "[failback]\nhold = 2\nmax_hold = 4\n", service=True) as directory:
        for node in bed.nodes:
            pid = node.must("pidof shiftd").strip()
            status = node.read(f"/proc/{pid}/status")
            check(f"Uid:\t{USER}\t{USER}\t{USER}\t{USER}\n" in status and
                  all(f"{which}:\t0000000000001000\n" in status
                      for which in ("CapPrm", "CapEff", "CapBnd")), f"it is not: {status}")
            for words in (["cat", KEYS], ["shiftd", "--load-keys"], ["shiftctl", "key", "clear"]):
                check(node.run([*AS_SERVICE, *words]).status, f"it can do this: {words}")
        verify = start(bed, *shape(4096, 2), qps=2)
        shift.wait_session(bed)
        for node in bed.nodes[:2]:
            proofs = [row.get("proven") for row in shift.links(node)]
            check(proofs and all(proofs), f"links are not proven: {proofs}")
        counters = survives(bed, verify, "local", 2, finish=False)
        bed.plug_all()
        for node in bed.nodes[:2]:
            shift.protected(node, 2, "returned")
        for names in (["old", "new"], ["new", "old"], ["new"]):
            for node in bed.nodes:
                give_keys(node, *names)
            verify.more(1)
        verify.finish()
        counters.moved("returns", 2)
        counters.still("failed", "illegal", "msg_bad", "strangers")
        for node, daemon in zip(bed.nodes, directory.daemons):
            found = node.run(["shiftctl", "check"]).text
            check("shiftd: etcd http" in found and "may write entries of other nodes" in found,
                  f"shiftctl check does not tell what shiftd has found:\n{found}")
            check(daemon.status is None, f"shiftd ended:\n{daemon.tail()}")


def one_first(monitors):
    """Each node sends one ahead; the others moved when one had arrived."""
    for monitor in monitors:
        events = [(event["qpn"], event["event"]) for _, event in monitor.events()]
        moved = list(dict.fromkeys(qpn for qpn, name in events if name == "agreed"))
        check(len(moved) == 4, f"moves: {events}")
        check(events.index((moved[0], "replayed")) < events.index((moved[2], "agreed")),
              f"no canary: {events}")
        monitor.process.stop()


@test("directory", "back home when the path is good again", MAIN, LOADED)
def failback(bed):
    """Nobody gives a command; order and data are as ever."""
    with Directory(bed, "[failback]\nhold = 2\nmax_hold = 4\n"):
        verify = start(bed, *MIXED, "--bidir", qps=4)
        counters = shift.Counters(bed)
        verify.go()
        verify.more(2)
        sides = ("local", "remote")
        for side in sides[:1] if bed.kernel == "debug" else sides:
            before = shift.Counters(bed)
            pull(bed, side)
            wait_for("failover on both nodes",
                     lambda before=before: min(before.delta("switches")) >= 4, 60)
            verify.more(2)
            monitors = [Monitor(node) for node in bed.nodes]
            bed.plug_all()
            for node in bed.nodes:
                shift.protected(node, 4, "returned")
            verify.more(2)
            one_first(monitors)
        verify.finish()
        counters.moved("returns", 4)
        counters.still("failed", "illegal", "msg_bad")


@test("directory", "a path that only looks good gets nobody back", state=LOADED)
def deaf(bed):
    """With no heartbeats a link stays up on it, until shiftd has it probed."""
    # long enough for a slow machine to lose the packets before it is over
    with Directory(bed, "[failback]\nhold = 20\n"), beating(bed, 0):
        verify = start(bed, *MIXED, "--bidir", qps=2)
        verify.go()
        verify.more(2)
        fall_back(bed)
        everywhere(bed, verify, "fallback")
        bed.plug_all()
        shift.wait_session(bed, 2)
        counters = shift.Counters(bed)
        bed.drop(bed.nodes[1], 0, direction="in")
        wait_for("a link is down", lambda: not all(map(shift.links_up, bed.nodes)), 60)
        check(dropped(bed, 0) > 0, "no packet was lost")
        counters.still("abandoned", "returns")
        bed.undrop()
        everywhere(bed, verify, "returned")
        verify.more(2)
        verify.finish()
        counters.still("failed", "illegal", "msg_bad")


def until(moment):
    """The fault's own rhythm, not a wait for anything."""
    time.sleep(max(0, moment - time.monotonic()))


def ports_down(bed):
    """How often kernels have seen a cable of rail 0 go; they look once a second at most."""
    return sum(node.console.count("infiniband rxe0: set down") for node in bed.nodes)


def flapping(turns, pace, seen, bed):
    """Down and up again and again, while shiftd tries to go back; each for so many seconds.

    Kernels have to see so many of them.

    QPs that are on their own NIC retry what was lost: without fences, as stock rxe may wait
    for ever with a fenced operation and a READ behind it, with no error and no timer.
    """
    with Directory(bed, "[failback]\nhold = 1\nmax_hold = 2\n"):
        verify = start(bed, *MIXED, "--bidir", "--fence", 0, qps=2,
                       timeout=QP_TIMEOUT)
        counters = shift.Counters(bed)
        verify.go()
        verify.more(2)
        downs = ports_down(bed)
        began = time.monotonic()
        for turn in range(turns):
            node = bed.nodes[turn // 25 % 2]
            node.link(0, False)
            # others may be over before a kernel has seen them
            if not turn:
                wait_for("a port down", lambda node=node: "ACTIVE" not in node.read(
                    "/sys/class/infiniband/rxe0/ports/1/state"))
            until(began + pace * (2 * turn + 1))
            node.link(0, True)
            until(began + pace * (2 * turn + 2))
            if turn % 10 == 9:
                verify.more(1)
        for node in bed.nodes[:2]:
            wait_for("all QPs run", lambda node=node: all(
                row["state"] in ("default", "fallback", "returned")
                for row in shift.qps(node)), 60)
        verify.more(2)
        verify.finish()
        counters.still("failed", "illegal", "msg_bad")
        downs = ports_down(bed) - downs
        check(downs >= seen, f"ports went down {downs} times, not {seen}")
        check(sum(counters.delta("faults")) > 0, "no fault was counted")


add("directory", "a cable that flaps every 100 ms for half a minute", partial(flapping, 150, .1, 10),
    state=LOADED)
add("directory", "a cable that flaps as fast as it can", partial(flapping, 100, 0, 1),
    FULL, state=LOADED)


@test("directory", "a device is renamed while its QPs are away: they come home",
      FULL, LOADED)
def renamed(bed):
    """At both ends, as either shiftd brings a QP home; the configuration has the old name."""
    nodes = bed.nodes[:2]
    with Directory(bed, "[failback]\nhold = 2\nmax_hold = 4\n"):
        verify = start(bed, *shape(4096, 2), qps=2)
        counters = survives(bed, verify, "local", 2, finish=False)
        try:
            for node in nodes:
                node.must("rdma dev set rxe0 name first0")
            bed.plug_all()
            for node in nodes:
                shift.protected(node, 2, "returned")
                check({row["dev"] for row in shift.qps(node)} == {"first0"}, f"{shift.qps(node)}")
            verify.more(2)
            verify.finish()
            counters.moved("returns", 2)
            counters.still("failed", "illegal", "msg_bad")
        finally:
            bed.stop_processes()
            for node in nodes:
                node.run("rdma dev set first0 name rxe0")


@test("directory", "failback is off", state=LOADED)
def no_failback(bed):
    """Then the operator decides."""
    with Directory(bed, "[failback]\nenabled = no\nhold = 1\n"):
        verify = start(bed, *shape(4096, 2), qps=2)
        survives(bed, verify, "local", 2, finish=False)
        bed.plug_all()
        shift.wait_session(bed, 2)
        verify.more(20)
        on_backup(bed, 2)
        verify.finish()


@test("directory", "shiftd killed under traffic, then a failover", STOCK,
      LOADED)
def without_shiftd(bed):
    """What was possible stays possible."""
    with Directory(bed) as directory:
        verify = start(bed, *shape(4096, 2), qps=2)
        verify.go()
        verify.more(2)
        directory.kill_daemons()
        verify.more(2)
        gone_on(bed, verify, 2)


@test("directory", "a node is expelled, and let in again", FULL, LOADED)
def expelled(bed):
    """Whatever etcd and the node's own shiftd say."""
    client, server = bed.nodes[:2]

    def configure(change):
        client.must(f"sed -i '{change}' /etc/shiftd.conf && killall -HUP shiftd")

    with Directory(bed):
        verify = start(bed, *shape(4096, 1))
        verify.go()
        verify.more(1)
        configure(f"s/^name.*/&\\nexpelled = {server.name}/")
        wait_for("it is no peer", lambda: not shift.show(client, "peer"), 30)
        for node in bed.nodes[:2]:
            wait_for(f"{node.name}: no link is up", lambda node=node: not any(
                row["state"] == "up" for row in shift.show(node, "link")), 60)
            shift.wait_reason(node, "no-session")
        verify.more(2)
        configure("/^expelled/d")
        for node in bed.nodes[:2]:
            shift.protected(node, 1)
        gone_on(bed, verify, 1)


@test("directory", "etcd stopped under traffic, then a failover", state=LOADED)
def without_etcd(bed):
    """The directory is not in the failure path."""
    with Directory(bed) as directory:
        verify = start(bed, *shape(4096, 2), qps=2)
        verify.go()
        verify.more(2)
        directory.etcd.kill()
        verify.more(2)
        gone_on(bed, verify, 2)
        for daemon in directory.daemons:
            check(daemon.status is None, f"shiftd ended:\n{daemon.tail()}")
        directory.etcd.start()
        directory.wait_peers()


def gone_on(bed, verify, qps):
    """A cable pulled with helpers gone: as ever."""
    counters = shift.Counters(bed)
    pull(bed, "local")
    wait_for("failover on both nodes",
             lambda: min(counters.delta("switches")) >= qps, 60)
    verify.more(2)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


@test("directory", "etcd comes later than shiftd", state=LOADED)
def late_etcd(bed):
    """Back-off, then all as if it had been there."""
    directory = Directory(bed)
    etcd = directory.etcd
    try:
        directory.daemons = [start_shiftd(node, etcd.guest_url, PAIRS)
                             for node in bed.nodes]
        for node in bed.nodes:
            wait_for(f"{node.name}: pairs without a directory",
                     lambda node=node: len(shift.show(node, "pair")) == 2, 60)
            check(shift.show(node, "peer") == [], "a peer from nowhere")
        etcd.start()
        directory.wait_peers()
        shift.wait_session(bed)
    finally:
        directory.__exit__()


def told_of(node, address):
    """The first backup that a node is told of for a peer's NIC, or None."""
    nics = [nic for peer in shift.show(node, "peer") for nic in peer["nics"]
            if nic["gid"] == f"::ffff:{address}"]
    return nics[0]["backups"][0] if nics and nics[0]["backups"] else None


@test("directory", "the backup in use goes, and peers connect to the next one", state=LOADED)
def next_backup(bed):
    """So do QPs made before that is known; one that comes back is the last."""
    client, server = bed.nodes[:2]
    ends = ((client, server), (server, client))

    def told(rail):
        """Each end is told that the other one's NIC on that rail stands in."""
        return all((told_of(peer, node.address(0)) or "").endswith(node.address(rail))
                   for node, peer in ends)

    def restored(node):
        """The one that was taken away."""
        if node.run("rdma link show rxe1/1").status:
            node.must("rdma link add rxe1 type rxe netdev rail1")

    with Directory(bed, pairs=[["rxe0 rxe1,rxe2"]] * len(bed.nodes)):
        wait_for("the first backup is known", lambda: told(1), 60)
        try:
            # what is left joins the nodes on another rail
            for node in bed.nodes[:2]:
                node.must("rdma link delete rxe1")
            early = start(bed, *shape(4096, 1))
            wait_for("the next backup is known", lambda: told(2), 60)
            early.go()
            early.finish()
            verify = start(bed, *shape(4096, 1))
            survives(bed, verify, "local", finish=False)
            check({row["dev"] for row in shift.links(client)} == {"rxe0", "rxe2"},
                  f"{shift.links(client)}")
            for node in bed.nodes[:2]:
                restored(node)
                wait_for("the first one is back", lambda node=node:
                         shift.show(node, "pair")[0]["backups"] == ["rxe2", "rxe1"], 60)
            check(told(2), f"{shift.show(server, 'peer')}")
            verify.finish()
            wait_for("the order is as configured", lambda: told(1), 90)
        finally:
            bed.stop_processes()
            for node in bed.nodes[:2]:
                restored(node)
