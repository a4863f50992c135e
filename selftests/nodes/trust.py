# SPDX-License-Identifier: GPL-2.0
"""Whom the module believes: programs that say they are the kernel of a node."""

import shift
from nodes.failover import dropped, on_backup, pull, shape, start
from nodes.interposer import hold_ends, interposer, put_in
from registry import BARE, MAIN, STOCK, test
from testbed import check, each, wait_for
from traffic import QP_TIMEOUT

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


KEYS = {"old": "0123456789abcdef0123456789abcdef", "new": "a-key-of-the-next-month"}


def give_keys(nodes, *names):
    """Load these keys on some nodes, the first of them to prove with."""
    words = "\n".join(KEYS[name] for name in names)
    for node in nodes:
        node.must(f"umask 077; rm -f /tmp/keys; printf '# ours\n{words}\n' >/tmp/keys && "
                  "shiftctl key load /tmp/keys")
        check(shift.show(node, "node")["keys"] == len(names), "keys are not counted")


def up(node):
    """Links that are up."""
    return [row for row in shift.show(node, "link") if row["state"] == "up"]


def established(node):
    """How often each link that is up was established."""
    return {row["link"]: row["connects"] for row in up(node)}


def reconnect(bed):
    """All links end, and are connected again if nodes believe each other; QPs go on meanwhile."""
    for node, other in (bed.nodes[:2], bed.nodes[1::-1]):
        shift.must(node, "peer", "del", other.name)
    for node in bed.nodes[:2]:
        wait_for(f"{node.name}: no link is up", lambda node=node: not up(node), 90)
    shift.introduce(bed)


def proven(bed):
    """Both links are up, and both ends have proved who they are."""
    for node in bed.nodes[:2]:
        wait_for(f"{node.name}: links are up and proven", lambda node=node: [
            row.get("proven") for row in up(node)] == [True, True], 90)


def refused(node):
    """It has a key, and refuses its peer: that is counted, and it has no link."""
    before = strangers(node)
    wait_for(f"{node.name}: its peer is refused", lambda: strangers(node) > before, 120)
    check(not up(node), f"{node.name}: a link is up")


@test("trust", "nodes prove that they know the key", MAIN)
def keys(bed):
    """Traffic goes on while links come up with proofs; who knows no key is refused."""
    nodes = bed.nodes[:2]
    try:
        verify = start(bed, *shape(4096, 1))
        shift.wait_session(bed, 2)
        # a test before this one may have left links that were proven
        before = [row.get("proven") for row in up(nodes[0])]
        give_keys(nodes, "old")
        check(before == [row.get("proven") for row in up(nodes[0])],
              "links that were up before have proved nothing since")
        reconnect(bed)
        proven(bed)
        before = strangers(nodes[1])
        connects = [row["connects"] for row in shift.show(nodes[1], "link")]
        pretend(bed, "1000")
        wait_for("a program without the key is refused", lambda: strangers(nodes[1]) > before, 60)
        check(connects == [row["connects"] for row in shift.show(nodes[1], "link")],
              "a link was replaced")
        proven(bed)
        shift.wait_session(bed, 2)
        verify.go()
        verify.more(2)
        counters = shift.Counters(bed)
        pull(bed, "local")
        on_backup(bed, 1)
        verify.more(2)
        verify.finish()
        counters.still("failed", "illegal", "msg_bad")
    finally:
        for node in nodes:
            node.must("shiftctl key clear")
        check(all(shift.show(node, "node")["keys"] == 0 for node in nodes), "keys are left")


@test("trust", "keys are changed node by node; nodes with other keys, or none, stay apart")
def other_keys(bed):
    """No link without a common key, and no outage while keys are changed."""
    first, second = nodes = bed.nodes[:2]
    verify = start(bed, *shape(4096, 1))
    try:
        for names in (["new"], []):
            give_keys([first], "old")
            second.must("shiftctl key clear")
            if names:
                give_keys([second], *names)
            reconnect(bed)
            # the other one believes it, for a moment each time, if it has no key
            refused(first)
        for mine, others in ((["old"], ["old"]), (["old", "new"], ["old"]),
                             (["old", "new"], ["new", "old"]), (["new"], ["new", "old"])):
            give_keys([first], *mine)
            give_keys([second], *others)
            reconnect(bed)
            proven(bed)
        first.must("printf 'short\n' >/tmp/bad; chmod 600 /tmp/bad; "
                   "! shiftctl key load /tmp/bad 2>/tmp/why && grep -q 'has 16 to' /tmp/why && "
                   "chmod 644 /tmp/keys && ! shiftctl key load /tmp/keys 2>/tmp/why && "
                   "grep -q 'chmod 600' /tmp/why")
        check(shift.show(first, "node")["keys"] == 1, "a bad file has changed the keys")
        result = first.run(["shiftctl", "key", "clear"], user="lab")
        check(result.status, "an ordinary user has taken the keys away")
        verify.go()
        verify.finish()
    finally:
        for node in nodes:
            node.must("shiftctl key clear")


def objects(node):
    """Kernel's and applications' QPs on the device of links."""
    return node.must("rdma resource show qp link rxe0/1").count("lqpn")


@test("trust", "connections that prove nothing do not pile up")
def unproven(bed):
    """A link has one that is not established, however many are begun; that is counted."""
    liar, victim = bed.nodes[:2]
    count = 8
    before, links = objects(victim), established(victim)
    try:
        give_keys([victim], "old")
        refusals = strangers(victim)
        boot_id = shift.show(liar, "node")["boot_id"]
        program = liar.start(["impostor", liar.address(0), victim.address(0), boot_id, "1000",
                              liar.address(0), str(count)], env=bed.nics.stock)
        wait_for("all are connected", lambda: program.text.count("believed") == count, 60)
        # far sooner than the deadline of the last one, with which all would go
        wait_for("the others have gone", lambda: objects(victim) <= before + 1, 10)
        check(strangers(victim) > refusals, "they were not counted")
        # one from before the key may still be up
        check(established(victim).items() <= links.items(), "a link has come up without a proof")
    finally:
        victim.must("shiftctl key clear")
        bed.stop_processes()


MOST = 16                   # kmod/link/link_priv.h: SHIFT_LINK_CONNS


@test("trust", "connections that cannot be taken apart are bounded")
def not_gone(bed):
    """The device takes long with their ends: a link has sixteen with these, and again one after."""
    liar, victim = bed.nodes[:2]
    before = objects(victim)
    crowded = shift.stats(victim)["crowded"]
    boot_id = shift.show(liar, "node")["boot_id"]
    with interposer(victim):
        put_in(victim)
        hold_ends(victim)
        program = liar.start(["impostor", liar.address(0), victim.address(0), boot_id, "1000",
                              liar.address(0), str(2 * MOST)], env=bed.nics.stock)
        program.expect(REFUSED)
        believed = program.text.count("believed")
        # the real kernel of that node may have one that works, and one on its way
        check(MOST - 2 <= believed <= MOST, f"not {MOST} connections:\n{program.text}")
        # the real kernel of that node may have tried meanwhile
        check(shift.stats(victim)["crowded"] > crowded, "the refusal was not counted")
        found = objects(victim) - before
        check(believed <= found <= MOST, f"{found} queue pairs are left of {believed} connections")
        hold_ends(victim, False)
        # the real kernel may have one more than before, or none
        wait_for("all have gone", lambda: objects(victim) <= before + 1, 60)
        check(pretend(bed, "1000") == BELIEVED, "it cannot connect any more")


@test("trust", "a peer that is removed has no link, whoever connects, until it is there again", STOCK)
def removed(bed):
    """Its QPs go on without protection; one node is enough to end it."""
    nodes = bed.nodes[:2]
    for one, other in (nodes, nodes[::-1]):
        verify = start(bed, *shape(4096, 1))
        shift.wait_session(bed, 2)
        verify.go()
        verify.more(1)
        counters = shift.Counters(bed)
        shift.must(one, "peer", "del", other.name)
        for node in nodes:
            wait_for(f"{node.name}: no link is up", lambda node=node: not up(node), 60)
            shift.wait_reason(node, "no-session")
        # the side that connects tries again after a second at most, as its directory has the peer
        if other.address(0) < one.address(0):
            refused(one)
        verify.more(2)
        check(not up(one), "there is a link again")
        shift.introduce(bed)
        shift.wait_session(bed, 2)
        for node in nodes:
            shift.protected(node, 1)
        pull(bed, "local")
        on_backup(bed, 1)
        verify.more(2)
        verify.finish()
        counters.still("failed", "illegal", "msg_bad")
        bed.plug_all()


@test("trust", "an error that a QP does not have begins no failover", STOCK)
def false_error(bed):
    """A program says as a provider does that its QP has run out of retries: that QP fails, and no
    other. If nothing is outstanding just then, its error is that of no request, and the program
    complains."""
    verify = start(bed, "--ops", "send", *shape(4096, 2), "--shared-cq", "--allow-error",
                   "--sabotage", "claim", qps=2)
    counters = shift.Counters(bed)
    verify.go()
    verify.client.wait_line("^claim kept")
    verify.client.wait_line("^(error qp 0 wr |VIOLATION: qp 0: completion 0(,| where none) )")
    counted = counters.deltas("disbelieved", "failed")
    check(counted["disbelieved"] == [1, 0] and counted["failed"][0] == 1, f"counters: {counted}")
    counters.still("switches", "illegal", "msg_bad")
    bed.stop_processes()


@test("trust", "a process that causes failovers has an allowance")
def allowance(bed):
    """Without one an error is shown, of a path that only the process calls broken."""
    client = bed.nodes[0]
    where = "/sys/module/rdma_shift/parameters/claims"
    usual = client.read(where).strip()
    for most in ("0", usual):
        verify = start(bed, *shape(4096, 1), "--ops", "write", "--allow-error",
                       timeout=QP_TIMEOUT)
        shift.wait_session(bed, 2)
        counters = shift.Counters(bed)
        client.must(f"echo {most} > {where}")
        try:
            verify.go()
            verify.more(2)
            bed.drop(client, 0, direction="out", opcode="RC_WRITE_*")
            if most == usual:
                wait_for("it has moved", lambda: min(counters.delta("switches")) >= 1, 120)
                verify.more(2)
                verify.finish()
            else:
                verify.client.wait_line("^error qp 0 wr ", 120)
                for process in (verify.client, verify.server):
                    process.expect(0, 120)
        finally:
            client.must(f"echo {usual} > {where}")
        check(dropped(bed), "no packet was lost")
        bed.plug_all()
        check(counters.delta("disbelieved") == [most != usual, 0], "disbelieved is not counted")
        counters.still("illegal", "msg_bad", "switches" if most != usual else "failed")


@test("trust", "a port that any user may have is refused at load", STOCK, state=BARE)
def user_port(bed):
    """Any user could listen on it."""
    node = bed.nodes[0]
    for port in 0, 1024, 18999:
        result = node.run(f"insmod {shift.MODULE} port={port}")
        check(result.status and not shift.loaded(node), f"port {port} was taken")
