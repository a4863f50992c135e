# SPDX-License-Identifier: GPL-2.0
"""Open MPI as packaged: collectives with every value checked, a cable pulled and back.

Over libfabric (its providers verbs and ofi_rxm): RC QPs with receive queues of their own,
connected by RDMA CM; short messages are SENDs, long ones are asked for by a SEND and
fetched by READs. Open MPI over UCX does not run here: its connections are made over UD, which
ends in "Endpoint timeout" on rxe without any module (UCX itself: ucx.py). The openib BTL cannot be
tried: Debian builds it without RDMA CM.
"""

from pathlib import Path

import shift
from registry import test
from testbed import CONTROL_RAIL, PATCHED, TOP, check, wait_for
from nodes.programs import there_and_back

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
COMPONENTS = """
    allocator_b* coll_basic coll_libnbc coll_self
    coll_tuned ess_env ess_hnp ess_pmi errmgr_default_* grpcomm_* iof_* mpool_* odls_default
    oob_tcp plm_rsh pmix_ext3x mtl_ofi pml_cm rcache_* reachable_weighted regx_* rmaps_round_robin
    rml_oob routed_* schizo_ompi schizo_orte shmem_* state_*
""".split()
PROGRAMS = ["/usr/bin/orterun", "/usr/bin/orted"]
FOLDERS = ["/etc/openmpi", f"{LIBRARIES}/pmix2/lib/pmix"]
# Instead of ssh: what the other node is to run.
AGENT = "/usr/local/bin/lab-rsh"
ORDER = "/run/lab-rsh.order"
ENVIRONMENT = {**PATCHED, "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "FI_PROVIDER": "verbs,ofi_rxm",
               "FI_VERBS_IFACE": "rail0", "FI_OFI_RXM_USE_SRX": "0",
               # For 256 peers, the default, it wants larger CQs than rxe has.
               "FI_UNIVERSE_SIZE": "16"}
SETTINGS = {
    "pml": "cm", "mtl": "ofi", "mtl_ofi_provider_include": "verbs;ofi_rxm",
    "plm_rsh_agent": AGENT, "orte_leave_session_attached": 1,
    "oob_tcp_if_include": f"rail{CONTROL_RAIL}", "hwloc_base_binding_policy": "none",
}


def install(bed):
    """The parts of it that are needed, and the program."""
    parts = [*PROGRAMS, *FOLDERS]
    for name in COMPONENTS:
        found = Path(f"{LIBRARIES}/openmpi/lib/openmpi3").glob(f"mca_{name}.so")
        parts += map(str, found)
    specs = [f"{part}:{part}" for part in parts]
    for node in bed.nodes:
        node.push(*specs, str(TOP / "build/selftests/mpi/mpi_verify"))
        node.must(f"printf '#!/bin/sh\\nshift\\necho \"$*\" >{ORDER}\\n' >{AGENT} && "
                  f"chmod 755 {AGENT} && rm -f {ORDER}")


def launch(bed, *words):
    """orterun on the first node; what it asks of the other is started there."""
    first, second = bed.nodes[:2]
    settings = [word for name, value in SETTINGS.items()
                for word in ("--mca", name, str(value))]
    hosts = ",".join(node.address(CONTROL_RAIL) for node in (first, second))
    passed = [word for name in ENVIRONMENT for word in ("-x", name)]
    running = first.start(["orterun", "--host", hosts, "-n", "2", *settings, *passed,
                           *words], env=ENVIRONMENT)
    order = wait_for("orterun: an order for the other node", lambda:
                     running.status is not None or first.run(["cat", ORDER]).out, 60)
    check(running.status is None, f"orterun ended:\n{running.tail()}")
    second.start(order, env=ENVIRONMENT)
    return running


@test("programs", "Open MPI: collectives over a pulled cable and back")
def collectives(bed):
    """One end loses its cable, later all go home; each round is checked."""
    install(bed)
    counters = shift.Counters(bed)
    running = launch(bed, "mpi_verify")
    there_and_back(bed, running)
    running.send("stop")
    running.expect(0, 120)
    running.wait_line("^done: rank 0")
    running.wait_line("^done: rank 1")
    counters.moved("returns")
    counters.still("failed", "illegal", "msg_bad")
