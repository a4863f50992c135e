# SPDX-License-Identifier: GPL-2.0
"""The life of pairs: several backups, devices that go, registrations that do not end."""

import shift
from registry import LOADED, MAIN, SHIFT, STOCK, Skip, test
from testbed import check, wait_for
from traffic import Verify


def pair_of(node, dev):
    """How PAIR_GET shows the pair of a device; None: it has none."""
    rows = [row for row in shift.show(node, "pair") if row["dev"] == dev]
    return rows[0] if rows else None


def backups(node, dev="rxe0"):
    """The backup in use, and all of them."""
    row = pair_of(node, dev)
    return (row["backup"], row["backups"]) if row else None


def sysfs(node, dev, name):
    """What a file of the pair's says."""
    return node.must(f"cat /sys/class/infiniband/{dev}/shift/{name}").strip()


def add_dummies(node, count):
    """RDMA devices that only tests of names and lists need."""
    for i in range(count):
        node.must(f"ip link add sparenet{i} type dummy && ip link set sparenet{i} up && "
                  f"rdma link add spare{i} type rxe netdev sparenet{i}")


def remove_dummies(node, count):
    """The reverse."""
    for i in range(count):
        node.run(f"rdma link delete spare{i}; ip link delete sparenet{i}")


@test("pair", "several backups, in order", STOCK, LOADED)
def several(bed):
    """A further one is appended; the list has an end; pair del takes them all."""
    node = bed.nodes[0]
    add_dummies(node, 4)
    try:
        shift.must(node, "pair", "add", "rxe0", "rxe1")
        for i in range(3):
            shift.must(node, "pair", "add", "rxe0", f"spare{i}")
            shift.refused(node, "pair", "add", "rxe0", f"spare{i}", says="already")
        names = ["rxe1", "spare0", "spare1", "spare2"]
        check(backups(node) == ("rxe1", names), f"{backups(node)}")
        shift.refused(node, "pair", "add", "rxe0", "spare3", says="maximum number of backups")
        check(backups(node) == ("rxe1", names), f"{backups(node)} after refusals")
        # one that is not in use goes, and makes room
        node.must("rdma link delete spare0")
        shift.must(node, "pair", "add", "rxe0", "spare3")
        names = ["rxe1", "spare1", "spare2", "spare3"]
        check(backups(node) == ("rxe1", names), f"{backups(node)}")
        shift.must(node, "pair", "del", "rxe0")
        check(backups(node) is None, "a pair is left")
    finally:
        remove_dummies(node, 4)


@test("pair", "the backup in use goes, and the next one stands in", MAIN, LOADED)
def next_backup(bed):
    """What was made before says why it is unprotected; policy and drain stay the operator's."""
    node = bed.nodes[0]
    shift.must(node, "pair", "add", "rxe0", "rxe1", "--policy", "at-least-once")
    shift.must(node, "pair", "add", "rxe0", "rxe2")
    shift.must(node, "pair", "drain", "rxe0")
    process = node.start(["shift_verify", "--device", "rxe0"], env=bed.nics.env)
    process.wait_line("^listening$")
    before = pair_of(node, "rxe0")
    node.must("rdma link delete rxe1")
    try:
        check(backups(node) == ("rxe2", ["rxe2"]), f"{backups(node)}")
        check(sysfs(node, "rxe0", "backup") == "rxe2", "sysfs shows another backup")
        after = pair_of(node, "rxe0")
        check(after["policy"] == before["policy"] and after.get("drained") ==
              before.get("drained"), f"{before} became {after}")
        # still tracked, by a pair that is not there any more
        shift.refused(node, "pair", "del", "rxe0", says="applications")
        check(shift.used_by(node) == "applications", f"used by {shift.used_by(node)}")
        process.stop()
        node.must("rdma link delete rxe2")
        check(backups(node) is None, f"{backups(node)}")
        check(node.run("test -e /sys/class/infiniband/rxe0/shift").status != 0,
              "sysfs files of no pair")
    finally:
        process.stop()
        for rail in (1, 2):
            if node.run(f"rdma link show rxe{rail}/1").status:
                node.must(f"rdma link add rxe{rail} type rxe netdev rail{rail}")
    shift.must(node, "pair", "add", "rxe0", "rxe1")
    check(shift.used_by(node) == "none", f"used by {shift.used_by(node)}")
    shift.must(node, "pair", "del", "rxe0")


def hang(node, *words):
    """A process whose registration of memory on rxe0 does not end."""
    process = node.start(["hang_edge", "rxe0", *words])
    process.wait_line("^opened$")
    return process


def hold(process):
    """Let it begin."""
    process.send("")
    found = process.wait_line("^(pinning|not registered: .*)$")
    # Where pages are pinned for long with mmap_lock held all the time, nobody may be waited for.
    if found.group(1) != "pinning" and process.node.cluster.kernel == "6.1":
        raise Skip("cannot run here: this kernel does not wait for a userfaultfd while it pins")
    check(found.group(1) == "pinning", found.group(1))


def let_go(process):
    """Let it end, which it must do well."""
    process.send("")
    process.wait_line("^registered$")
    process.send("")
    process.expect(0)


@test("pair", "a registration that hangs holds up its process only", MAIN, SHIFT)
def hanging(bed):
    """pair del says no at once; REGISTER, links, events and other pairs go on."""
    client, server = bed.nodes[:2]
    process = hang(client)
    try:
        hold(process)
        shift.refused(client, "pair", "del", "rxe0", says="being registered")
        shift.must(client, "pair", "add", "rxe2", "rxe1")
        shift.must(client, "pair", "del", "rxe2")
        verify = Verify(client, server, "--progress", 200)
        shift.protected(client, 1)
        shift.protected(server, 1)
        verify.go()
        verify.more(1)
        client.link(0, False)
        verify.more(2)
        shift.refused(client, "pair", "del", "rxe0", says="being registered")
        check(process.status is None and "registered" not in process.text.split(),
              f"it did not hang: {process.text}")
        bed.plug_all()
        verify.finish()
        let_go(process)
    finally:
        bed.stop_processes()


@test("pair", "a registration of older memory domains hangs", MAIN, LOADED)
def hanging_old(bed):
    """Nothing is tracked, and pair del still neither waits nor goes half way."""
    node = bed.nodes[0]
    process = hang(node)
    shift.must(node, "pair", "add", "rxe0", "rxe1")
    try:
        hold(process)
        shift.refused(node, "pair", "del", "rxe0", says="being registered")
        check(backups(node) == ("rxe1", ["rxe1"]), f"{backups(node)}")
        let_go(process)
    finally:
        bed.stop_processes()
        shift.must(node, "pair", "del", "rxe0")


@test("pair", "the backup goes while a mirror is being made", MAIN, LOADED)
def hanging_mirror(bed):
    """Its removal waits, and nobody else; a pair made meanwhile is another one."""
    node = bed.nodes[0]
    shift.must(node, "pair", "add", "rxe0", "rxe1")
    process = hang(node, "again")
    try:
        hold(process)
        removal = node.start(["rdma", "link", "delete", "rxe1"])
        wait_for("the pair is gone", lambda: backups(node) is None)
        shift.must(node, "pair", "add", "rxe0", "rxe2")
        shift.must(node, "pair", "add", "rxe2", "rxe0")
        shift.refused(node, "pair", "del", "rxe0", says="being registered")
        shift.must(node, "pair", "del", "rxe2")
        check(removal.status is None, f"the device did not wait: {removal.text}")
        let_go(process)
        removal.expect(0)
        check(backups(node) == ("rxe2", ["rxe2"]), f"{backups(node)}")
    finally:
        bed.stop_processes()
        shift.ctl(node, "pair", "del", "rxe0")
        if node.run("rdma link show rxe1/1").status:
            node.must("rdma link add rxe1 type rxe netdev rail1")


@test("pair", "a device is renamed", STOCK, LOADED)
def renamed(bed):
    """Its new name is what counts, in messages and in requests, and of links that were there."""
    client, server = bed.nodes[:2]
    for node in (client, server):
        shift.must(node, "pair", "add", "rxe0", "rxe1")
    shift.introduce(bed, (client, server))
    verify = Verify(client, server)
    try:
        for node in (client, server):
            shift.protected(node, 1)

        def places():
            """Each link with the name of its device."""
            return {row["link"]: row["dev"] for row in shift.show(client, "link")}

        before = places()
        check(sorted(before.values()) == ["rxe0", "rxe1"], f"links {before}")
        client.must("rdma dev set rxe0 name first0 && rdma dev set rxe1 name second0")
        try:
            check(backups(client, "first0") == ("second0", ["second0"]),
                  f"{shift.show(client, 'pair')}")
            check([row["dev"] for row in shift.qps(client)] == ["first0"],
                  f"{shift.qps(client)}")
            new = {"rxe0": "first0", "rxe1": "second0"}
            check(places() == {link: new[dev] for link, dev in before.items()},
                  f"links {before} became {places()}")
            verify.go()
            verify.finish()
            shift.refused(client, "pair", "add", "rxe0", "rxe2", says="no such")
            wait_for("no tracked object", lambda: not shift.tracked(client))
            shift.must(client, "pair", "del", "first0")
        finally:
            client.must("rdma dev set first0 name rxe0 && rdma dev set second0 name rxe1")
    finally:
        bed.stop_processes()
        for node in (client, server):
            wait_for("no tracked object", lambda node=node: not shift.tracked(node))
            shift.unpair(node)


@test("pair", "objects made while pair del is refused are tracked", MAIN, SHIFT)
def refused_meanwhile(bed):
    """Every QP of processes that come and go beside it becomes protected."""
    client, server = bed.nodes[:2]
    hang(client)
    noise = client.start("while :; do shiftctl pair del " + bed.nics.default +
                         " 2>/dev/null && exit 1; done")
    try:
        for _ in range(3):
            verify = Verify(client, server, "--progress", 200, qps=2)
            shift.protected(client, 2)
            verify.go()
            verify.more(1)
            verify.finish()
        check(noise.status is None, "pair del was not refused")
    finally:
        noise.stop()
        bed.stop_processes()


@test("pair", "pair show and sysfs count what qp show calls protected", STOCK, SHIFT)
def counted(bed):
    """Also of a QP whose way to the backup is cut: it is not protected."""
    client, server = bed.nodes[:2]
    dev = bed.nics.default
    verify = Verify(client, server, "--progress", 200, qps=2)

    def same(count):
        """All three say @count."""
        shown = sum(row["state"] not in ("unprotected", "failed") for row in shift.qps(client))
        return (shown == count and pair_of(client, dev)["protected_qps"] == count and
                sysfs(client, dev, "protected_qps") == str(count))

    shift.protected(client, 2)
    wait_for("two are protected", lambda: same(2))
    client.link(1, False)
    wait_for("none is protected", lambda: same(0), 90)
    bed.plug_all()
    wait_for("two are protected again", lambda: same(2), 90)
    verify.go()
    verify.more(1)
    verify.finish()
