# SPDX-License-Identifier: GPL-2.0
"""Whom the module believes: programs that say they are the kernel of a node."""

import shift
from nodes.failover import on_backup, pull, shape, start
from registry import BARE, STOCK, test
from testbed import check, each, wait_for

BELIEVED, REFUSED = 0, 3


def strangers(node):
    """Connections and messages that a node has refused."""
    return shift.stats(node)["strangers"]


def pretend(bed, *port, user="root"):
    """A program on node0 says to node1 that it is node0's kernel; how it ended."""
    liar, victim = bed.nodes[:2]
    boot_id = shift.show(liar, "node")["boot_id"]
    result = liar.run(["impostor", liar.address(0), victim.address(0), boot_id, *port],
                      user=user, env=bed.nics.env, timeout=120)
    check(result.status in (BELIEVED, REFUSED), f"impostor could not try: {result.text}")
    return result.status


@test("trust", "an ordinary user is not taken for his kernel", STOCK)
def ordinary_user(bed):
    """The link stays as it is, traffic goes on, and a failover finds its peer."""
    victim = bed.nodes[1]
    verify = start(bed, *shape(4096, 1))
    shift.wait_session(bed, 2)
    verify.go()
    verify.more(2)
    before = strangers(victim)
    connects = each(bed.nodes[:2], lambda node: [
        row["connects"] for row in shift.show(node, "link")])
    check(pretend(bed, user="lab") == REFUSED, "a user was taken for the kernel of his node")
    check(strangers(victim) == before + 1, "the refusal was not counted")
    verify.more(2)
    check(connects == each(bed.nodes[:2], lambda node: [
        row["connects"] for row in shift.show(node, "link")]), "a link was replaced")
    counters = shift.Counters(bed)
    pull(bed, "local")
    on_backup(bed, 1)
    verify.more(2)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad", "strangers")


@test("trust", "what an ordinary user says would be believed of a privileged one")
def privileged_user(bed):
    """The control of the test before: all but the port is as a kernel says it."""
    verify = start(bed, *shape(4096, 1))
    shift.wait_session(bed, 2)
    before = strangers(bed.nodes[1])
    check(pretend(bed, "1000") == BELIEVED, "the program does not speak as a kernel does")
    check(strangers(bed.nodes[1]) == before, "it was counted")
    wait_for("the link of the kernel is back", lambda: all(
        shift.links_up(node, 2) for node in bed.nodes[:2]), 90)
    verify.go()
    verify.more(2)
    verify.finish()


@test("trust", "a port that any user may have is refused at load", STOCK, state=BARE)
def user_port(bed):
    """Any user could listen on it."""
    node = bed.nodes[0]
    for port in 0, 1024, 18999:
        result = node.run(f"insmod {shift.MODULE} port={port}")
        check(result.status and not shift.loaded(node), f"port {port} was taken")
