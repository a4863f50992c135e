# SPDX-License-Identifier: GPL-2.0
"""UCX as packaged: tagged messages, puts and active messages, a cable pulled and back.

Over its transport rc_verbs: RC QPs on a shared receive queue, a CQ for sends and one for
receives, most sends unsignaled. Short messages are SENDs, puts are WRITEs, long messages are
asked for by a SEND and fetched by READs; a flush is a WRITE of no bytes with the key 0. They are
connected by UCX's client-server API: RDMA CM carries their addresses, and has a QP of its own
there (UD, of no use), so that its connection is not that of the QP.

Not on the software mlx5 device: it has no UD.
"""

from functools import partial
from pathlib import Path

import shift
from registry import BARE, STOCK, add
from testbed import TOP, check, each, wait_for
from nodes.programs import another_round, cm_listens, there_and_back

LIBRARIES = "/usr/lib/x86_64-linux-gnu/ucx"
MODULES = ("ib", "rdmacm")
ALL = "tag,put,am"


def install(bed):
    """The program, and what UCX loads by name."""
    found = [next(Path(LIBRARIES).glob(f"libuct_{name}.so.0.*")) for name in MODULES]
    modules = [f"{path}:{LIBRARIES}/libuct_{name}.so.0" for name, path in zip(MODULES, found)]
    each(bed.nodes[:2], lambda node: node.push(
        *modules, str(TOP / "build/selftests/ucx/ucx_verify")))


def environment(bed):
    """Reliable connections on the default device, connected by RDMA CM.

    rxe takes UCX's own retry count of 7 for "for ever": with and without the module it is 3.
    """
    return {**bed.nics.env, "UCX_TLS": "rc_verbs", "UCX_NET_DEVICES": f"{bed.nics.default}:1",
            "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm", "UCX_RNDV_THRESH": "16384",
            "UCX_RC_RETRY_COUNT": "3"}


def launch(bed, modes):
    """The two programs, connected; the client's and the server's."""
    client, server = bed.nodes[:2]
    env = environment(bed)
    serving = server.start(["ucx_verify", modes], env=env)
    wait_for("ucx_verify listens", lambda: serving.status is not None or cm_listens(server))
    return client.start(["ucx_verify", modes, server.address(0)], env=env), serving


def cable(pull, modes, bed):
    """One end loses its cable, later both go home; each round is checked."""
    install(bed)
    counters = shift.Counters(bed)
    running, serving = launch(bed, modes)
    there_and_back(bed, running, pull)
    end(running, serving)
    counters.moved("returns")
    counters.still("failed", "illegal", "msg_bad")


def stays_out(bed):
    """They disconnect over another path."""
    install(bed)
    counters = shift.Counters(bed)
    running, serving = launch(bed, ALL)
    running.wait_line("^progress ", 90)
    for node in bed.nodes[:2]:
        shift.protected(node, 1)
    bed.nodes[1].link(0, False)
    another_round(running)
    end(running, serving)
    counters.moved("switches")
    counters.still("failed", "illegal", "msg_bad")
    check(sum(counters.delta("disconnects")) > 0, "no request to disconnect went over another path")
    bed.plug_all()


def without(bed):
    """The negative control: the same programs and the same cable.

    Retries run out at one end at least; RDMA CM may be the first to tell the other one.
    """
    install(bed)
    running, serving = launch(bed, ALL)
    running.wait_line("^progress ", 90)
    check(running.status is None and serving.status is None, "one ended before the fault")
    bed.nodes[0].link(0, False)
    for program in (running, serving):
        program.expect(2)
        program.wait_line("^error: endpoint: ")
    said = running.text + serving.text
    check("Endpoint timeout" in said, said)


def end(running, serving):
    """The client is told to stop, and both close the connection."""
    running.send("stop")
    for program in (running, serving):
        program.expect(0, 120)
        program.wait_line("^done: ")


add("programs", "UCX: a cable is pulled, and is back", partial(cable, 0, ALL), STOCK)
add("programs", "UCX: the server's cable is pulled, and is back", partial(cable, 1, ALL))
add("programs", "UCX: the server's cable stays out", stays_out)
add("programs", "UCX: without the module a pulled cable ends it in an error", without, state=BARE)
for _mode in ALL.split(","):
    add("programs", f"UCX: {_mode} only", partial(cable, 0, _mode))
