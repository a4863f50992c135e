# SPDX-License-Identifier: GPL-2.0
"""Programs as packaged, other than perftest: a cable pulled, and in again.

In all of them sends and receives share a CQ, and rxe of 6.12 fails a QP the moment its
carrier goes: its flushes of the two are told apart by their wr_ids.
"""

from contextlib import contextmanager
from functools import partial

import shift
from registry import BARE, LOADED, STOCK, add, test
from testbed import check, each, wait_for
from traffic import PERFTEST_PORT, listening
from nodes.perftest import flowing


def cm_listens(node):
    """Whether a program listens by RDMA CM, beside the module itself."""
    return node.run("rdma resource show cm_id | grep LISTEN | grep -vq "
                    "'pid 0\\|kernel\\|rdma_shift'").status == 0


def survives(bed, server_words, client_words, listens, much=1 << 18, data=0, pull=0,
             meanwhile=None, back=True, serving_ends=True):
    """The program goes on over the backup and ends well, at home or not.

    data: which node sends it; pull: whose cable goes; meanwhile: called while it is out;
    back: it is in again before the program ends; serving_ends: the server ends with its client.
    """
    client, server = bed.nodes[:2]
    counters = shift.Counters(bed)
    serving = server.start(server_words, env=bed.nics.env)
    wait_for(f"{server_words[0]} listens", lambda: serving.status is not None
             or listens(server))
    running = client.start(client_words, env=bed.nics.env)
    sender = bed.nodes[data]
    flowing(sender, 0, much)
    for node in (client, server):
        shift.protected(node, 1)
    bed.nodes[pull].link(0, False)
    if meanwhile:
        meanwhile()
    flowing(sender, 1, much)
    check(running.status is None, f"too short:\n{running.tail()}")
    if back:
        bed.plug_all()
    running.expect(0, 240)
    if serving_ends:
        serving.expect(0, 120)
    serving.stop()
    counters.moved("switches")
    counters.still("failed", "illegal", "msg_bad")
    return running


def another_round(running):
    """Wait for rounds that were begun after now."""
    for _ in range(2):
        running.wait_line("^progress ", 90, start=len(running.lines))


def there_and_back(bed, running, pull=0):
    """A program that tells of its rounds loses a cable, and later its QPs go home.

    Except on 6.1 links are waited for, as failover.start() does.
    """
    client = bed.nodes[0]
    running.wait_line("^progress ", 90)
    for node in bed.nodes[:2]:
        shift.protected(node, 1)
    if bed.kernel != "6.1":
        shift.wait_session(bed)
    bed.nodes[pull].link(0, False)
    another_round(running)
    flowing(client, 1, 1 << 19)
    bed.plug_all()
    shift.wait_session(bed, 2)
    shift.home(bed, 1)
    another_round(running)
    flowing(client, 0, 1 << 19)


def pingpong(pull, options, bed):
    """rdma-core's example: SEND and receive in turn, data checked."""
    # Processes that poll leave little to the workqueues that newer rxe lives on.
    few = {"6.1": "1500"}.get(bed.kernel, "800")
    words = ["ibv_rc_pingpong", "-d", bed.nics.default, "-g", "1", "-s", "8192", "-n", few,
             "-c", *options]
    survives(bed, words, [*words, bed.nodes[1].address(2)],
             lambda node: listening(node, PERFTEST_PORT), pull=pull)


add("programs", "ibv_rc_pingpong", partial(pingpong, 0, ()), STOCK)
add("programs", "ibv_rc_pingpong, the server's cable", partial(pingpong, 1, ()), STOCK)
# Asleep in ibv_get_cq_event.
add("programs", "ibv_rc_pingpong -e", partial(pingpong, 0, ("-e",)), STOCK)


def rpings(bed, address, turns, **more):
    """rping, whose data is checked, survives what is done to it."""
    words = ["-a", address, "-V", "-S", "4096", "-C", str(turns)]
    survives(bed, ["rping", "-s", *words], ["rping", "-c", *words], cm_listens, **more)


@test("programs", "rping")
def rping(bed):
    """RDMA CM; SEND, READ and WRITE in turn, data checked."""
    address = bed.nodes[1].address(0)
    rpings(bed, address, 1000)


def neighbour_lost(bed, address=None):
    """The client asks for the MAC address of its peer on the dead path, and nobody answers."""
    client, server = bed.nodes[:2]
    before = shift.stats(client)["neighbours"]
    status = client.run(["ping", "-c", "1", "-W", "1", address or server.address(0)],
                        timeout=60).status
    check(status != 0, "the path is not dead")
    # The neighbour's state changes only when the kernel has asked three times.
    wait_for("a neighbour whose address is kept", lambda:
             shift.stats(client)["neighbours"] > before, 60)


@test("programs", "rping: the peer's MAC address is asked for on the dead path")
def rping_neighbour(bed):
    """RDMA CM does not end the connection (UNREACHABLE)."""
    address = bed.nodes[1].address(0)
    rpings(bed, address, 1000, meanwhile=partial(neighbour_lost, bed))


def v6_address(node, rail):
    """A global IPv6 address of a node, beside its IPv4 one."""
    return f"fd00:{rail}::{node.number + 1}"


@contextmanager
def ipv6(bed, tell=shift.introduce):
    """For a while all rails have an IPv6 address as well, and peers know the NICs by it, too."""
    nodes, rails = bed.nodes[:2], range(2)
    each(nodes, lambda node: [node.must(
        f"ip -6 addr add {v6_address(node, rail)}/64 dev rail{rail} nodad") for rail in rails])
    try:
        tell(bed)
        yield
    finally:
        bed.plug_all()
        each(nodes, lambda node: [node.run(
            f"ip -6 addr del {v6_address(node, rail)}/64 dev rail{rail}") for rail in rails])
        tell(bed)


@test("programs", "rping over IPv6, and the peer's MAC address is asked for on the dead path")
def rping_ipv6(bed):
    """The connection is made by IPv6 addresses; the backup path has IPv4."""
    address = v6_address(bed.nodes[1], 0)
    with ipv6(bed):
        rpings(bed, address, 1000, meanwhile=partial(neighbour_lost, bed, address))
    # one that has not noticed stays up
    wait_for("dead links of these addresses are not shown", lambda: not any(
        link["local_gid"].startswith("fd00:") and link["state"] != "up"
        for node in bed.nodes for link in shift.show(node, "link")))


def disconnected(bed):
    """RDMA CM's requests to disconnect that went over the living path."""
    return sum(shift.stats(node)["disconnects"] for node in bed.nodes[:2])


def rping_ends(pull, bed):
    """The cable stays out: the end of the connection reaches the peer all the same."""
    address = bed.nodes[1].address(0)
    before = disconnected(bed)
    rpings(bed, address, 1000, pull=pull, back=False)
    check(disconnected(bed) > before, "no request to disconnect went over another path")


# Not on 6.12: a QP that breaks with its carrier, and whose wr_ids are all the same, gets its error.
add("programs", "rping, the client's cable stays out", partial(rping_ends, 0))
add("programs", "rping, the server's cable stays out", partial(rping_ends, 1))


@test("programs", "rping is killed on the backup, and its server is told")
def rping_killed(bed):
    """The kernel ends the connection of a process that did not."""
    client, server = bed.nodes[:2]
    address = server.address(0)
    before = disconnected(bed)
    serving = server.start(["rping", "-s", "-a", address, "-S", "4096", "-C", "100000"],
                           env=bed.nics.env)
    wait_for("rping listens", lambda: serving.status is not None or cm_listens(server))
    running = client.start(["rping", "-c", "-a", address, "-S", "4096", "-C", "100000"],
                           env=bed.nics.env)
    flowing(client, 0, 1 << 16)
    for node in (client, server):
        shift.protected(node, 1)
    server.link(0, False)
    for node in (client, server):
        shift.protected(node, 1, "fallback")
    flowing(client, 1, 1 << 16)
    client.must("killall -KILL rping")
    running.wait(60)
    serving.wait_line("DISCONNECT", 120)
    serving.wait(60)
    check(disconnected(bed) > before, "no request to disconnect went over another path")
    bed.plug_all()


def timewait(pull, ending, bed):
    """One end disconnects over a dead path: both are told, and both leave timewait."""
    address = bed.nodes[1].address(0)
    serving = bed.nodes[1].start(["cm_edge", address], env=bed.nics.env)
    serving.wait_line("^listening$")
    running = bed.nodes[0].start(["cm_edge", address, "connect"], env=bed.nics.env)
    ends = running, serving
    for end in ends:
        end.wait_line("^connected$")
    for node in bed.nodes[:2]:
        shift.protected(node, 1)
    before = disconnected(bed)
    running.send("ping 10")
    running.wait_line("^ok$", 60)
    bed.nodes[pull].link(0, False)
    for node in bed.nodes[:2]:
        shift.protected(node, 1, "fallback")
    seen = len(running.lines)
    running.send("ping 10")
    running.wait_line("^ok$", 60, start=seen)
    ends[ending].send("end")
    for end in ends:
        # 0: the other end has answered; it is -ETIMEDOUT if it was never reached
        end.wait_line("^disconnected 0$", 180)
        end.wait_line("^timewait over$", 180)
        end.expect(0)
    check(disconnected(bed) > before, "no request to disconnect went over another path")
    bed.plug_all()


add("programs", "timewait of a connection: the client ends it, its cable is out",
    partial(timewait, 0, 0), STOCK)
add("programs", "timewait of a connection: the server ends it, the client's cable is out",
    partial(timewait, 0, 1))


def interface_down(bed):
    """The client's interface is taken down beside its cable, and both are back."""
    client = bed.nodes[0]
    client.must("ip link set rail0 down")
    client.link(0, True)
    client.must("ip link set rail0 up")
    client.link(0, False)


@test("programs", "rping: the interface goes down and comes up")
def rping_interface(bed):
    """The neighbour goes with the interface; the address stays."""
    address = bed.nodes[1].address(0)
    rpings(bed, address, 1000, meanwhile=partial(interface_down, bed))


def interface_down_ipv6(bed):
    """With the interface its IPv6 addresses are gone, until somebody gives them to it again."""
    client = bed.nodes[0]
    interface_down(bed)
    address = v6_address(client, 0)
    check(address not in client.must("ip -6 addr show dev rail0"), "the address has stayed")
    client.must(f"ip -6 addr add {address}/64 dev rail0 nodad")


@test("programs", "rping over IPv6: the interface goes down and comes up")
def rping_interface_ipv6(bed):
    """The neighbour and the address go with the interface.

    RDMA CM cannot say the end of a connection whose address has gone; the module does.  Without it
    the program does not get that far, and its server is not told: see the control.
    """
    address = v6_address(bed.nodes[1], 0)
    with ipv6(bed):
        rpings(bed, address, 1000, meanwhile=partial(interface_down_ipv6, bed))


@test("programs", "rping over IPv6, no module: an interface that goes down ends it", state=BARE)
def rping_interface_ipv6_bare(bed):
    """The control: an error at the client, and a server that is not told, on a path that works."""
    client, server = bed.nodes[:2]
    address = v6_address(server, 0)
    with ipv6(bed, tell=lambda bed: None):
        words = ["-a", address, "-S", "4096"]
        serving = server.start(["rping", "-s", *words, "-C", "100000"])
        wait_for("rping listens", lambda: serving.status is not None or cm_listens(server))
        running = client.start(["rping", "-c", *words, "-C", "100000"])
        flowing(client, 0, 1 << 16)
        client.link(0, False)
        interface_down_ipv6(bed)
        bed.plug_all()
        check(running.wait(120) != 0, "it has survived")
        # a connection that is made and ended later is a message that came after the first one's
        other = [*words, "-p", "7200", "-C", "10"]
        later = server.start(["rping", "-s", *other])
        wait_for("the second rping listens", lambda: later.status is not None
                 or server.run("rdma resource show cm_id | grep LISTEN | grep -q 7200").status == 0)
        client.start(["rping", "-c", *other]).expect(0, 60)
        later.expect(0, 60)
        check(serving.status is None, f"the server was told:\n{serving.tail()}")
        serving.stop()


@test("programs", "rping without a pair: RDMA CM tells of a lost neighbour", state=LOADED)
def rping_told(bed):
    """Nothing is kept: the control of the test before."""
    client, server = bed.nodes[:2]
    address = server.address(0)
    before = shift.stats(client)["neighbours"]
    serving = server.start(["rping", "-s", "-a", address, "-S", "4096", "-C", "100000"])
    wait_for("rping listens", lambda: serving.status is not None or cm_listens(server))
    running = client.start(["rping", "-c", "-a", address, "-S", "4096", "-C", "100000"])
    flowing(client, 0, 1 << 16)
    client.link(0, False)
    client.run(["ping", "-c", "1", "-W", "1", address], timeout=60)
    running.wait_line("UNREACHABLE", 120)
    running.stop()
    serving.stop()
    bed.plug_all()
    check(shift.stats(client)["neighbours"] == before, "the MAC address of a peer was kept")


@test("programs", "rping: the peer's MAC address changes on a working path: RDMA CM tells")
def rping_elsewhere(bed):
    """Only addresses that were lost are kept: this may be another host."""
    client, server = bed.nodes[:2]
    address = server.address(0)
    words = ["-a", address, "-S", "4096", "-C", "100000"]
    before = shift.stats(client)["neighbours"]
    mac = server.read("/sys/class/net/rail0/address").strip()

    def moves(to):
        server.must(f"ip link set rail0 address {to}")
        client.must(f"ip neigh replace {address} lladdr {to} nud reachable dev rail0")

    serving = server.start(["rping", "-s", *words], env=bed.nics.env)
    wait_for("rping listens", lambda: serving.status is not None or cm_listens(server))
    running = client.start(["rping", "-c", *words], env=bed.nics.env)
    flowing(client, 0, 1 << 16)
    for node in (client, server):
        shift.protected(node, 1)
    try:
        moves("52:54:00:00:99:99")
        running.wait_line("UNREACHABLE", 120)
    finally:
        running.stop()
        serving.stop()
        moves(mac)
    check(shift.stats(client)["neighbours"] == before, "the old MAC address of a peer was kept")


QPERF_PORT = 19765


def qperf(what, pull, bed):
    """One direction: the passive end has no send queue.

    What the two ends tell each other by TCP takes the same path, and waits for the cable.
    """
    address = bed.nodes[1].address(0)
    survives(bed, ["qperf"],
             ["qperf", address, "-cm1", "-m", "4096", "-t", "30", "-to", "180", what],
             lambda node: listening(node, QPERF_PORT), pull=pull,
             data=1 if what == "rc_rdma_read_bw" else 0, serving_ends=False)


for _what in ("rc_bw", "rc_bi_bw", "rc_rdma_write_bw", "rc_rdma_read_bw"):
    add("programs", f"qperf {_what}", partial(qperf, _what, 0))
add("programs", "qperf rc_bw, the server's cable", partial(qperf, "rc_bw", 1))


@test("programs", "ucmatose")
def ucmatose(bed):
    """RDMA CM; many messages posted at once, both ways."""
    address = bed.nodes[1].address(0)
    options = ["-C", "600", "-S", "65536"]
    survives(bed, ["ucmatose", *options], ["ucmatose", "-s", address, *options],
             cm_listens, much=1 << 20)


def rsockets(bed, program):
    """A program of librdmacm's that is not on the nodes."""
    each(bed.nodes[:2], lambda node: node.push(f"/usr/bin/{program}"))
    return bed.nodes[1].address(0)


@test("programs", "rcopy: a file by rsockets, the server's cable stays out")
def rcopy(bed):
    """WRITEs into memory that the server maps for it, asleep between; the copy is the file."""
    client, server = bed.nodes[:2]
    address = rsockets(bed, "rcopy")
    client.must("dd if=/dev/urandom of=/tmp/file bs=1M count=16 2>/dev/null")
    survives(bed, ["rcopy"], ["rcopy", "/tmp/file", f"{address}:/tmp/copy"], cm_listens,
             much=1 << 20, pull=1, back=False, serving_ends=False)
    bed.plug_all()
    sums = [node.must(f"md5sum <{path} && rm {path}") for node, path in (
        (client, "/tmp/file"), (server, "/tmp/copy"))]
    check(sums[0] == sums[1], "the copy is not the file")


@test("programs", "riostream")
def riostream(bed):
    """rsockets: WRITEs into a mapped buffer, data checked, both ways."""
    address = rsockets(bed, "riostream")
    words = ["riostream", "-T", "v", "-S", "16384", "-C", "20", "-I", "30"]
    survives(bed, words, [*words, "-s", address], cm_listens)
