# SPDX-License-Identifier: GPL-2.0
"""There and back: moves by an operator, and second failures."""

import itertools
import re
from functools import partial

import shift
from ends import Ends
from figures import Monitor
from registry import FULL, MAIN, STOCK, add, test
from testbed import Failure, check, wait_for
from nodes.failover import (SILENT_MS, beating, dropped, fall_back, patience, pull, shape,
                            start, survives)
from nodes.after_failover import MIXED

BIDIR = [*MIXED, "--bidir", "--signal-every", 4]

# What moves, by name: options, QPs, kernels.
KINDS = {
    "writes": (shape(4096, 1), 1, STOCK),
    "all, both directions": (BIDIR, 4, MAIN),
    "ibv_wr_*, inline, lists": (
        [*MIXED, "--bidir", "--post", "wr", "--inline", "--sge", 4], 2, FULL),
    "asleep": ([*MIXED, "--bidir", "--events"], 2, FULL),
    "one CQ for all": ([*MIXED, "--bidir", "--shared-cq"], 4, FULL),
    "ibv_start_poll": ([*MIXED, "--bidir", "--poll", "start"], 2, FULL),
    "64 KiB": (shape(65536, 2), 2, FULL),
}


def telling(verify, wait):
    """Wait for something; a failure says how the programs are."""
    try:
        wait()
    except Failure as failure:
        raise Failure(f"{failure}\nclient:\n{verify.client.tail()}\n"
                      f"server:\n{verify.server.tail()}") from None


def everywhere(bed, verify, state):
    """All QPs of both nodes are in that state."""
    for node in bed.nodes[:2]:
        telling(verify, lambda node=node: shift.protected(node, verify.qps, state))


def home(bed, verify):
    """All QPs are back on their default device."""
    telling(verify, lambda: shift.home(bed, verify.qps))


def there_and_back(options, qps, bed):
    """A healthy pair is drained and taken back, three times, under traffic."""
    client = bed.nodes[0]
    verify = start(bed, *options, qps=qps)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    for _ in range(3):
        shift.must(client, "pair", "drain", bed.nics.default)
        everywhere(bed, verify, "fallback")
        verify.more(2)
        home(bed, verify)
        verify.more(2)
    verify.finish()
    counters.moved("returns", 3 * qps)
    counters.moved("switches", 6 * qps)
    counters.still("faults", "failed", "illegal", "msg_bad")


def plugged(options, qps, side, bed):
    """After a pulled cable is in again: home, and a second pull."""
    verify = start(bed, *options, qps=qps)
    survives(bed, verify, side, qps, finish=False)
    counters = shift.Counters(bed)
    bed.plug_all()
    shift.wait_session(bed, 2)
    home(bed, verify)
    verify.more(2)
    survives_again(bed, verify, side, qps)
    counters.moved("returns", qps)
    counters.still("failed", "illegal", "msg_bad")


def survives_again(bed, verify, side, qps):
    """The same fault once more."""
    counters = shift.Counters(bed)
    pull(bed, side)
    wait_for("failover on both nodes", lambda: all(
        n >= qps for n in counters.delta("switches")), 60)
    verify.more(3)
    verify.finish()


def second(options, qps, side, bed):
    """The backup's cable goes while the default's is in again: back at once."""
    verify = start(bed, *options, qps=qps)
    survives(bed, verify, side, qps, finish=False)
    counters = shift.Counters(bed)
    bed.plug_all()
    shift.wait_session(bed, 2)
    bed.nodes[0 if side == "local" else 1].link(1, False)
    everywhere(bed, verify, "returned")
    verify.more(3)
    verify.finish()
    counters.moved("returns", qps)
    counters.still("failed", "illegal", "msg_bad")


def shown(monitor):
    """What a QP has shown that was not the moment of the switch itself."""
    states = [event["state"] for _, event in monitor.events()]
    return [state for state, _ in itertools.groupby(states) if state != "switching"]


@test("failback", "a move shows what it waits for", STOCK)
def shows(bed):
    """The paper's four states, there and back; the end that is asked waits for its own only."""
    client, server = bed.nodes[:2]
    verify = start(bed, *shape(4096, 1))
    shift.wait_session(bed, 2)
    verify.go()
    verify.more(1)
    asking, asked = [Monitor(node) for node in (client, server)]
    for verb, state in (("drain", "fallback"), ("undrain", "returned")):
        asking.begin()
        asked.begin()
        shift.must(client, "pair", verb, bed.nics.default)
        everywhere(bed, verify, state)
        # one that had to be called off has begun again
        for monitor, ways in ((asking, ["wait-signaled", "wait-sinked", state]),
                              (asked, ["wait-signaled", state])):
            wait_for(f"{verb}: {ways}",
                     lambda monitor=monitor, ways=ways: shown(monitor)[-len(ways):] == ways)
        verify.more(1)
    verify.finish()
    for monitor in (asking, asked):
        monitor.process.stop()


@test("failback", "work that stands still without an error leaves its path")
def stalled(bed):
    """Writes are lost, the link is answered, and retries would take an hour to say so."""
    nodes = bed.nodes[:2]
    verify = start(bed, *shape(4096, 2), timeout=27, qps=2)
    survives(bed, verify, "local", 2, finish=False)
    bed.plug_all()
    shift.wait_session(bed, 2)
    counters = shift.Counters(bed)
    with patience(bed, SILENT_MS * shift.DEADLINE_SCALE // 3, 3):
        bed.drop(nodes[0], 1, direction="out", opcode="RC_WRITE_*")
        telling(verify, lambda: wait_for("all QPs are home", lambda: all(
            row["state"] == "returned" for node in nodes for row in shift.qps(node)), 180))
    check(counters.delta("stalled")[0] >= 2, f"stalled: {counters.delta('stalled')}")
    check(dropped(bed, 1) > 0, "no packet was lost")
    verify.more(3)
    verify.finish()
    counters.moved("returns", 2)
    counters.still("failed", "illegal", "msg_bad")


@test("failback", "QPs that are connected on a drained pair")
def drained_before(bed):
    """A NIC is taken out of use first: later ones leave it as well, and come back with it."""
    client = bed.nodes[0]
    shift.must(client, "pair", "drain", bed.nics.default)
    try:
        verify = start(bed, *BIDIR, qps=2, state="fallback")
        counters = shift.Counters(bed)
        verify.go()
        verify.more(2)
    finally:
        shift.must(client, "pair", "undrain", bed.nics.default)
    home(bed, verify)
    verify.more(2)
    verify.finish()
    counters.moved("returns", 2)
    counters.still("failed", "illegal", "msg_bad")


@test("failback", "a drain while the backup's cable is out")
def waiting(bed):
    """Nothing moves while it is out; then all does, without being told again."""
    client, server = bed.nodes[:2]
    verify = start(bed, *BIDIR, qps=2)
    counters = shift.Counters(bed)
    verify.go()
    verify.more(1)
    server.link(1, False)
    # links are soft-RoCE's on every kind of device
    wait_for("the backup's link is down", lambda: [
        link["state"] != "up" for link in shift.links(client, "rxe1")] == [True], 60)
    # what is done once and not tried again is refused
    number = str(shift.qps(client)[0]["qpn"])
    shift.refused(client, "qp", "move", bed.nics.default, number, "backup", says="does not work")
    link, = (row["link"] for row in shift.links(client, "rxe0"))
    shift.refused(client, "link", "switch", str(link), says="does not work")
    shift.must(client, "pair", "drain", bed.nics.default)
    verify.more(2)
    counters.still("switches")
    bed.plug_all()
    everywhere(bed, verify, "fallback")
    verify.more(1)
    home(bed, verify)
    verify.finish()
    counters.still("failed", "illegal", "msg_bad")


@test("failback", "an idle application", STOCK)
def idle(bed):
    """An application that polls nothing has no part in it."""
    verify = start(bed, *shape(4096, 2), qps=2)
    counters = shift.Counters(bed)
    shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
    everywhere(bed, verify, "fallback")
    home(bed, verify)
    verify.go()
    verify.more(2)
    verify.finish()
    counters.moved("returns", 2)
    counters.still("failed", "illegal", "msg_bad")


class Sleepers:
    """Both ends asleep in ibv_get_cq_event(), and what they are woken for."""

    def __init__(self, bed):
        self.bed = bed
        self.ends = Ends(bed, "sleep_edge")
        self.done = {end: [0, 0] for end in (self.ends.client, self.ends.server)}
        for node in bed.nodes[:2]:
            shift.protected(node, 1)

    def count(self, end):
        """Sends completed, messages received, wake-ups."""
        seen = len(end.lines)
        end.send("count")
        return [int(word) for word in self.ends.said(end, seen).split()[::2]]

    def send(self, sender, receiver, number=1):
        """Messages by one end."""
        self.ends.do(sender, f"send {number}")
        self.done[sender][0] += number
        self.done[receiver][1] += number

    def arrived(self):
        """All that was sent, and no more."""
        for end, want in self.done.items():
            wait_for(f"{end.name()}: {want}", lambda end=end, want=want:
                     self.count(end)[:2] == want, 60)

    def both_send(self):
        """Each end is woken by the other's message, and by its own send."""
        self.send(self.ends.client, self.ends.server, 3)
        self.arrived()
        self.send(self.ends.server, self.ends.client, 3)
        self.arrived()

    def moved(self, move, state):
        """A move wakes an end that has nothing to do once at most."""
        before = {end: self.count(end)[2] for end in self.done}
        move()
        for node in self.bed.nodes[:2]:
            shift.protected(node, 1, state)
        for end, woken in before.items():
            now = self.count(end)
            check(now[:2] == self.done[end], f"{end.name()}: {now}, not {self.done[end]}")
            check(now[2] <= woken + 1, f"{end.name()}: woken {now[2] - woken} times")

    def moved_at_work(self, rail, move, state):
        """A message is lost on its way, and goes with the move; nothing else is sent there."""
        with beating(self.bed, 0):
            self.bed.drop(self.bed.nodes[1], rail, direction="in", opcode="RC_SEND_*")
            self.send(self.ends.client, self.ends.server)
            wait_for("a message is lost", lambda: dropped(self.bed, rail) > 0)
            move()
            for node in self.bed.nodes[:2]:
                shift.protected(node, 1, state)
        row, = shift.qps(self.bed.nodes[0])
        check(row["cause"] == "operator", f"it moved for: {row['cause']}")
        self.arrived()
        self.bed.undrop()


@test("failback", "both ends asleep, there and back", STOCK)
def both_asleep(bed):
    """With nothing to do, by a cable and home; and with a message under way, by an operator."""
    def undrained():
        shift.home(bed, 1)

    def drained():
        shift.must(bed.nodes[0], "pair", "drain", bed.nics.default)
    both = Sleepers(bed)
    counters = shift.Counters(bed)
    both.both_send()
    both.moved(partial(fall_back, bed), "fallback")
    both.both_send()
    bed.plug_all()
    shift.wait_session(bed, 2)
    both.moved(undrained, "returned")
    both.both_send()
    both.moved_at_work(0, drained, "fallback")
    both.moved_at_work(1, undrained, "returned")
    both.both_send()
    both.ends.close()
    counters.moved("switches", 4)
    counters.moved("returns", 2)
    counters.still("failed", "illegal", "msg_bad")


@test("failback", "link switch, qp move")
def by_link(bed):
    """Away from one link, and one QP back."""
    client = bed.nodes[0]
    verify = start(bed, *shape(4096, 2), qps=2)
    shift.wait_session(bed, 2)      # a QP is protected before its default path has a link
    counters = shift.Counters(bed)
    verify.go()
    verify.more(2)
    shift.refused(client, "link", "switch", "9999", says="link")
    shift.refused(client, "qp", "move", bed.nics.default, "1", "backup",
                  says="no protected QP")
    shift.refused(client, "pair", "drain", "eth0", says="no such")
    link = [row["link"] for row in shift.links(client, "rxe0")]
    shift.must(client, "link", "switch", str(link[0]))
    everywhere(bed, verify, "fallback")
    qpn = shift.qps(client)[0]["qpn"]
    shift.must(client, "qp", "move", bed.nics.default, str(qpn), "default")
    wait_for("one QP is home", lambda: sorted(
        row["state"] for row in shift.qps(client)) == ["fallback", "returned"], 60)
    verify.more(2)
    home(bed, verify)
    verify.more(2)
    shift.must(client, "link", "switch", str(link[0]))
    everywhere(bed, verify, "fallback")
    # and away from the backup's
    link = [row["link"] for row in shift.links(client, "rxe1")]
    shift.must(client, "link", "switch", str(link[0]))
    everywhere(bed, verify, "returned")
    verify.more(2)
    verify.finish()
    counters.moved("returns", 4)
    counters.moved("switches", 8)
    counters.still("faults", "failed", "illegal", "msg_bad")


@test("failback", "link probe", STOCK)
def probed(bed):
    """An answer; or none, which takes the link down."""
    client, server = bed.nodes[:2]

    def link():
        return shift.links(client, "rxe0")[0]
    start(bed, *shape(4096, 1))
    shift.wait_session(bed, 2)
    number = str(link()["link"])
    shift.refused(client, "link", "probe", "9999", says="no such link")
    with beating(bed, 0):
        before = link()["acked"]
        says = shift.must(client, "link", "probe", number).strip()
        check(re.fullmatch(rf"link {number}: answered in \d+ ms", says), says)
        check(link()["acked"] > before, "nothing was sent")
        bed.drop(server, 0, direction="in")
        shift.refused(client, "link", "probe", number, says="no answer")
        check(dropped(bed) > 0, "no packet was lost")
        shift.refused(client, "link", "probe", number, says="not up")
        for node in bed.nodes[:2]:
            shift.protected(node, 1, "fallback")


def gid_indices(node, address):
    """Where the GIDs of an address are in the table of the default device."""
    last = "".join(f"{int(part):02x}" for part in address.split("."))
    gids = f"/sys/class/infiniband/{node.cluster.nics.default}/ports/1/gids"
    return node.must(f"cd {gids} && grep -li "
                     f"'{last[:4]}:{last[4:]}$' *").split()


@test("failback", "the address has another GID index by then")
def another_index(bed):
    """It is looked up by value: on the way home, and for a second fault."""
    client = bed.nodes[0]
    verify = start(bed, *BIDIR, qps=2)
    # A datagram of RDMA CM's that rxe repeats after its address has gone ends RDMA CM's QP
    # for good, without the module, too: no link may be in the middle of connecting.
    shift.wait_session(bed, 2)
    survives(bed, verify, "local", 2, finish=False)
    address = client.address(0)
    before = gid_indices(client, address)
    try:
        # the old entry stays taken while a QP refers to it
        client.must(f"ip addr del {address}/24 dev rail0 && ip addr add 192.0.2.1/24 dev rail0 "
                    f"&& ip addr add {address}/24 dev rail0")
        wait_for("an index that it did not have",
                 lambda: set(gid_indices(client, address)) - set(before))
        bed.plug_all()
        shift.wait_session(bed, 2)
        home(bed, verify)
        verify.more(2)
        counters = shift.Counters(bed)
        pull(bed, "local")
        everywhere(bed, verify, "fallback")
        verify.more(2)
        verify.finish()
        counters.still("failed", "illegal", "msg_bad")
    finally:
        bed.stop_processes()
        # to the first index that is free: the one it had
        client.must("ip addr del 192.0.2.1/24 dev rail0; ip addr del {0}/24 dev rail0; "
                    "ip addr add {0}/24 dev rail0".format(address))
        wait_for("the index of before", lambda: gid_indices(client, address) == before)


def register():
    """Those on every kernel first."""
    for name, (options, qps, kernels) in KINDS.items():
        add("failback", f"drain and undrain: {name}",
            partial(there_and_back, options, qps), kernels)
    for side in ("local", "remote"):
        add("failback", f"{side} cable, plugged again, pulled again",
            partial(plugged, BIDIR, 2, side), STOCK if side == "local" else FULL)
        add("failback", f"{side} cable, then the backup's",
            partial(second, BIDIR, 2, side), STOCK if side == "local" else FULL)


register()
