# SPDX-License-Identifier: GPL-2.0
"""Pairs and peers over netlink: what is refused, and that it changes nothing."""

import json
import os

import shift
from registry import LOADED, MAIN, SHIFT, STOCK, test
from testbed import PREFIX, check, wait_for
from traffic import Verify

BOOT_ID = "/sys/class/misc/shift/boot_id"


def unchanged(node, function):
    """Run something that must not change pairs and peers."""
    before = (shift.show(node, "pair"), shift.show(node, "peer"))
    function()
    after = (shift.show(node, "pair"), shift.show(node, "peer"))
    check(before == after, f"it changed {before} to {after}")


@test("pair", "with itself, unknown, twice, deleted twice", MAIN, LOADED)
def refusals(bed):
    """Each refusal has a text and no effect."""
    node = bed.nodes[0]

    def bad_ones():
        shift.refused(node, "pair", "add", "rxe0", "rxe0")
        shift.refused(node, "pair", "add", "rxe0", "nosuch0")
        shift.refused(node, "pair", "add", "nosuch0", "rxe0")
        shift.refused(node, "pair", "del", "rxe0")
        shift.refused(node, "pair", "del", "nosuch0")
        shift.refused(node, "peer", "del", "nobody")

    unchanged(node, bad_ones)
    shift.must(node, "pair", "add", "rxe0", "rxe1")
    unchanged(node, bad_ones_of_a_pair(node))
    shift.must(node, "pair", "del", "rxe0")
    shift.refused(node, "pair", "del", "rxe0")
    check(shift.show(node, "pair") == [], "a pair is left")


def bad_ones_of_a_pair(node):
    """What is refused beside an existing pair."""
    def function():
        shift.refused(node, "pair", "add", "rxe0", "rxe1")
        shift.refused(node, "pair", "add", "rxe0", "rxe0")
        shift.refused(node, "pair", "add", "rxe1", "rxe1")
    return function


# enum rdma_driver_id, number of ports, and why such a device cannot be paired with one of rxe's
ODD = ((2, 1, "only devices of rxe and mlx5"), (1, 1, "different drivers"),
       (14, 2, "more than one port"))


@test("pair", "a device of an unknown driver, or with two ports", state=LOADED)
def odd(bed):
    """It gets no backup and is none; the reasons differ, so each is found by its own look."""
    node = bed.nodes[0]
    for driver, ports, reason in ODD:
        node.must(f"insmod {PREFIX}/odd_nic.ko driver={driver} ports={ports}", timeout=120)
        try:
            check(node.run("test -d /sys/class/infiniband/odd0").status == 0, "no odd0")
            shift.refused(node, "pair", "add", "rxe0", "odd0", says=reason)
            shift.refused(node, "pair", "add", "odd0", "rxe0", says=reason)
            check(shift.show(node, "pair") == [], "a pair is left")
        finally:
            node.must("rmmod odd_nic", timeout=120)


@test("pair", "mutual pairs and a third device", MAIN, LOADED)
def mutual(bed):
    """a for b, b for a; removed in either order."""
    node = bed.nodes[0]
    for first, second in (("rxe0", "rxe1"), ("rxe1", "rxe0")):
        shift.must(node, "pair", "add", "rxe0", "rxe1")
        shift.must(node, "pair", "add", "rxe1", "rxe0")
        shift.must(node, "pair", "add", "rxe2", "rxe1")
        check(len(shift.show(node, "pair")) == 3, "not three pairs")
        shift.must(node, "pair", "del", first)
        shift.must(node, "pair", "del", second)
        shift.must(node, "pair", "del", "rxe2")


@test("pair", "many add and del", state=LOADED)
def churn(bed):
    """Nothing is left of them."""
    node = bed.nodes[0]
    node.must("for i in $(seq 20); do shiftctl pair add rxe0 rxe1 && "
              "shiftctl pair add rxe1 rxe0 && shiftctl pair del rxe0 && "
              "shiftctl pair del rxe1 || exit 1; done", timeout=120)
    check(shift.show(node, "pair") == [], "a pair is left")


@test("pair", "pair del refused while objects exist", MAIN, LOADED)
def in_use(bed):
    """An application of the paired device, protected or not."""
    node = bed.nodes[0]
    shift.must(node, "pair", "add", "rxe0", "rxe1")
    server = node.start(["shift_verify"])
    server.wait_line("^listening$")
    shift.refused(node, "pair", "del", "rxe0")
    check(node.run("rmmod rdma_shift").status != 0, "rmmod was not refused")
    server.stop()
    wait_for("no QP left", lambda: not shift.qps(node))
    shift.must(node, "pair", "del", "rxe0")


@test("netlink", "an ordinary user may look and not touch", MAIN)
def unprivileged(bed):
    """EPERM for every change, with nothing changed."""
    node = bed.nodes[0]

    def tries():
        for words in (["pair", "add", "rxe2", "rxe1"], ["pair", "del", "rxe0"],
                      ["peer", "del", "node1"], ["node", "set", "other"]):
            shift.refused(node, *words, user="lab")

    unchanged(node, tries)
    check(shift.ctl(node, "pair", "show", user="lab").status == 0,
          "an ordinary user may not look")


def seen(node, what, user):
    """What shiftctl shows a user, as text."""
    return node.must(["shiftctl", "--json", what, "show"], user=user)


@test("netlink", "an ordinary user sees what is his", STOCK)
def own_only(bed):
    """QPs of his own processes; no boot ids and addresses, to speak in a node's name."""
    node = bed.nodes[0]
    verify = [Verify(*bed.nodes[:2], "--size", 4096, "--depth", 8, "--progress", 8,
                     "--pace", 3, "--port", 18600 + i, user=user)
              for i, user in enumerate(("root", "lab"))]
    shift.wait_session(bed, 2)
    for what in "node", "link":
        check("boot_id" in seen(node, what, "root"), f"no boot id in {what} show")
        check("boot_id" not in seen(node, what, "lab"), f"an ordinary user sees the boot id: {what}")
    for what, key in ("link", "local_gid"), ("link", "remote_gid"), ("peer", "nics"):
        rows = {user: json.loads(seen(node, what, user)) for user in ("root", "lab")}
        check(rows["root"] and rows["lab"], f"{what} show: {rows}")
        check(all(key in row for row in rows["root"]), f"no {key} in {what} show: {rows}")
        check(not any(key in row for row in rows["lab"]), f"an ordinary user sees {key}: {rows}")
        check("(hidden)" in node.must(["shiftctl", what, "show"], user="lab"),
              f"{what} show does not say that something is hidden")
    node.must(f"cat {BOOT_ID}")
    check(node.run(f"cat {BOOT_ID}", user="lab").status, f"an ordinary user may read {BOOT_ID}")
    mine = {row["qpn"] for row in json.loads(seen(node, "qp", "lab"))}
    everybodys = {row["qpn"]: row["comm"] for row in shift.qps(node)}
    check(len(mine) == 1 and len(everybodys) == 2, f"of {everybodys} a user sees {mine}")
    shift.refused(node, "monitor", user="lab", says="not permitted", timeout=20)
    for each_one in verify:
        each_one.go()
        each_one.more(1)
        each_one.finish()


@test("netlink", "random attributes in thousands of messages", MAIN)
def random_messages(bed):
    """The family takes wrong types, lengths and nests without a splat."""
    node = bed.nodes[0]
    # on the debug kernel a message takes some fifty times as long
    short = bed.kernel == "debug" and not os.environ.get("SHIFT_LONG")
    count = 1000 if short else 10000
    before = shift.show(node, "peer")
    text = node.must(["netlink_fuzz", "1", str(count)], timeout=180)
    check(f"sent {count}" in text, text)
    # Random words may be a valid command: a peer goes, a pair gets one more backup. All stays
    # readable, and the tests behind this one find what they count on.
    check(isinstance(shift.show(node, "pair"), list), "pairs unreadable")
    check(before is not None, "peers unreadable")
    shift.unpair(node)
    shift.must(node, "node", "set", node.name)
    shift.pair(node)
    shift.introduce(bed)


@test("netlink", "long and empty names, bad GIDs", state=LOADED)
def bad_words(bed):
    """shiftctl or the kernel refuses; both say why."""
    node = bed.nodes[0]

    def tries():
        long = "x" * 64
        for words in (["node", "set", long], ["node", "set", ""],
                      ["pair", "add", long, "rxe1"], ["pair", "add", "", "rxe1"],
                      ["peer", "set", "p", "nic", "nonsense", "backup",
                       "::ffff:10.11.0.2"],
                      ["peer", "set", "p", "nic", "::ffff:10.10.0.2"],
                      ["peer", "set", "p"]):
            result = shift.ctl(node, *words)
            check(result.status in (1, 2), f"{words} was taken")
            check(result.err.strip(), f"{words}: no reason given")

    unchanged(node, tries)


@test("session", "both rails up, down and up again with the cable", MAIN, SHIFT)
def session_follows(bed):
    """Link states follow what is true, within seconds."""
    client, server = bed.nodes[:2]
    verify = Verify(client, server)
    for node in bed.nodes:
        shift.protected(node, 1)
    shift.wait_session(bed, 2)
    client.link(1, False)
    for node in bed.nodes:
        wait_for(f"{node.name}: rail 1 gone",
                 lambda node=node: not shift.links_up(node), 60)
    client.link(1, True)
    shift.wait_session(bed, 2)
    verify.go()
    verify.finish()
