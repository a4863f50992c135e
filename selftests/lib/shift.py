# SPDX-License-Identifier: GPL-2.0
"""rdma_shift on nodes: install, load, configure, look at."""

import json
import os
import subprocess

from testbed import PREFIX, Failure, LabError, check, each, run_lab, wait_for

MODULE = f"{PREFIX}/rdma_shift.ko"
WRONG_MODULE = f"{PREFIX}/rdma_shift-wrong.ko"
NEWER_MODULE = f"{PREFIX}/rdma_shift-newer.ko"
OLDER_MODULE = f"{PREFIX}/rdma_shift-older.ko"
DEADLINE_SCALE = 10
STEPS = "/sys/kernel/tracing/instances/steps"      # what the module does, for readers of failures
DEFAULT_RDMA_CORE = "56.1"
RDMA_CORE = os.environ.get("SHIFT_RDMA_CORE") or DEFAULT_RDMA_CORE


class Built:
    """Where the things to be tested lie on the host."""

    def __init__(self, top):
        self.top = top
        self.programs = top / "build" / "selftests"
        self.helper = top / "build" / "helper"
        end = "" if RDMA_CORE == DEFAULT_RDMA_CORE else f"-{RDMA_CORE}"
        self.provider = (top / "build" / f"rdma-core{end}").resolve()
        self.stock = (top / "build" / f"rdma-core-stock{end}").resolve()

    def module(self, kernel):
        """The module built for a kernel."""
        return self.top / "build" / f"kmod-{kernel}" / "rdma_shift.ko"


def rdma_core_build(*options):
    """The command that makes what Built has of rdma-core."""
    return ["rdma-core/build", "--release", RDMA_CORE, *options]


def stripped(module):
    """The module without what only debuggers read."""
    small = module.with_suffix(".stripped")
    subprocess.run(["strip", "--strip-debug", "-o", small, module], check=True)
    return small


def install(cluster, built, nodes=None):
    """Put module, helper, provider and test programs on all nodes, or those given.

    They lie in /opt/rdma_shift and /usr/local/bin; nothing of them is used yet.
    """
    module = built.module(cluster.kernel)
    specs = [f"{stripped(module)}:{MODULE}",
             f"{built.provider}/lib:{PREFIX}/lib"]
    for name, there in (("wrong", WRONG_MODULE), ("newer", NEWER_MODULE),
                        ("older", OLDER_MODULE)):
        variant = module.parent.with_name(f"{module.parent.name}-{name}") / module.name
        if variant.exists():
            specs.append(f"{stripped(variant)}:{there}")
    specs += [str(built.helper / name) for name in ("shiftctl", "shiftd")
              if (built.helper / name).exists()]
    unit = built.top / "build" / f"unit-{cluster.kernel}" / "kmod"
    specs += [f"{unit / name}:{PREFIX}/{name}" for name in (
        "shift_unit.ko", "dead_nic.ko", "interposer.ko", "odd_nic.ko",
        "rds_rdma.ko") if (unit / name).exists()]
    # the nodes' own one knows the default's libibverbs only
    if RDMA_CORE != DEFAULT_RDMA_CORE:
        specs.append(str(built.provider / "bin" / "ibv_devinfo"))
    # the demo needs none of them
    specs += [str(path) for path in sorted(built.programs.glob("*"))
              if path.is_file()]
    each(nodes or cluster.nodes, lambda node: node.push(*specs))


def loaded(node):
    """Whether the module is in the kernel."""
    return node.run("test -d /sys/module/rdma_shift").status == 0


def srq(node, allowed):
    """Whether QPs on shared receive queues made from now on may be protected."""
    node.must(f"echo {'YN'[not allowed]} > /sys/module/rdma_shift/parameters/srq")


def load(node, module=MODULE):
    """Load the module."""
    # Emulated processors are late by more than the deadlines allow for. Without the names of
    # processes the kernel patches no code that runs at each change of a task.
    node.must(f"insmod {module} deadline_scale={DEADLINE_SCALE} "
              f"{node.cluster.nics.parameters} && "
              f"echo 0 >/sys/kernel/tracing/options/record-cmd && mkdir -p {STEPS} && "
              f"echo 256 >{STEPS}/buffer_size_kb && echo 1 >{STEPS}/events/shift/enable",
              timeout=120)


def unload(node):
    """Remove the module; it must not be in use."""
    wait_for(f"{node.name}: no tracked object", lambda: not tracked(node))
    node.must("rmmod rdma_shift", timeout=120)


def ctl(node, *words, **options):
    """Run shiftctl whatever comes of it."""
    return node.run(["shiftctl", *words], **options)


def must(node, *words):
    """Run shiftctl, which has to succeed."""
    return node.must(["shiftctl", *words])


def refused(node, *words, says=None, status=1, **options):
    """Run shiftctl, which has to refuse and to say why."""
    result = ctl(node, *words, **options)
    check(result.status == status,
          f"shiftctl {' '.join(words)} ended with {result.status}, not "
          f"{status}: {result.text}")
    check(len(result.err.strip()) > 20, f"shiftctl {' '.join(words)}: no "
                                        f"reason given: '{result.text}'")
    if says:
        check(says.lower() in result.err.lower(),
              f"shiftctl {' '.join(words)}: '{says}' is not in "
              f"'{result.err.strip()}'")
    return result.err


def show(node, what):
    """What shiftctl -j OBJECT show prints."""
    return json.loads(must(node, "-j", what, "show"))


def stats(node):
    """The module's counters."""
    return {name: int(value) for name, value in
            node.read_folder("/sys/class/misc/shift/stats").items()}


def show_stats(node):
    """The same, as shiftctl shows them."""
    text = json.loads(must(node, "-j", "stat", "show"))
    if isinstance(text, list):
        merged = {}
        for row in text:
            merged.update({row["name"]: row["value"]} if "name" in row
                          else row)
        return merged
    return text


def qps(node):
    """The QPs the module tracks."""
    return [row for row in show(node, "qp") if row.get("reason") != "unlisted"]


def unlisted(node, device):
    """Whose QPs on a device it does not track and shows: the users' names, for each QP."""
    return [row["comm"] for row in show(node, "qp")
            if row.get("reason") == "unlisted" and row["dev"] == device]


def connected(node):
    """Those that can be protected: RDMA CM's users may have one of another type beside each."""
    return [row for row in qps(node) if row.get("reason") != "qp-type"]


def tracked(node):
    """Whether an application's QP is known."""
    return bool(qps(node))


def pair(node, both=True):
    """rxe0 and rxe1 stand in for each other, and so do the devices of the test."""
    must(node, "node", "set", node.name)
    must(node, "pair", "add", "rxe0", "rxe1")
    if both:
        must(node, "pair", "add", "rxe1", "rxe0")
    if node.cluster.nics.begin:
        node.cluster.nics.begin(node)


def nics_of(node):
    """A node's NICs as words of peer set."""
    return must(node, "node", "nics").split()


def used_by(node):
    """Who holds the pair of the default device, and with it the module."""
    return next(row["used_by"] for row in show(node, "pair")
                if row["dev"] == node.cluster.nics.default)


def bring_back(node):
    """The devices that were removed, and their pairs."""
    for rail in range(2):
        if node.run(f"rdma link show rxe{rail}/1").status:
            node.must(f"rdma link add rxe{rail} type rxe netdev rail{rail}")
    there = {row["dev"] for row in show(node, "pair")}
    for dev, backup in (("rxe0", "rxe1"), ("rxe1", "rxe0")):
        if dev not in there:
            must(node, "pair", "add", dev, backup)
    # those that stand on them went with them
    nics = node.cluster.nics
    if nics.begin and nics.default not in there:
        nics.begin(node)


def introduce(cluster, nodes=None):
    """Tell each node the others' NICs, as the directory would."""
    nodes = nodes or cluster.nodes
    nics = {node.name: nics_of(node) for node in nodes}
    for node in nodes:
        for name, words in nics.items():
            if name != node.name:
                must(node, "peer", "set", name, *words)


def links(node, device=None):
    """Links that lead to a peer, of one device or all; one may be left of a removed address."""
    return [row for row in show(node, "link")
            if row.get("node") and device in (None, row["dev"])]


def links_up(node, least=0):
    """Whether all links are up; there are only those that QPs ask for."""
    states = [link["state"] for link in links(node)]
    return len(states) >= least and all(state == "up" for state in states)


def settled(cluster):
    """Wait until links have an answer to what they sent while a cable was out, or have gone down.

    They outlive a short outage. One on which rxe has not repeated its packets yet could become
    silent a moment later, and QPs would leave a path that is good again.
    """
    def look(node):
        for link in show(node, "link"):
            if link["state"] == "up":
                ctl(node, "link", "probe", str(link["link"]))
    each(cluster.nodes, look)


def setup(cluster, module=MODULE):
    """Module, pairs and peers on all nodes."""
    def begin(node):
        load(node, module)
        pair(node)
    each(cluster.nodes, begin)
    introduce(cluster)


def wait_session(cluster, least=0):
    """Wait until the links there are, at least that many, are up."""
    for node in cluster.nodes:
        try:
            wait_for(f"{node.name}: session on all rails",
                     lambda node=node: links_up(node, least), timeout=90)
        except Failure as failure:
            links = "; ".join(" ".join(f"{key} {value}" for key, value in link.items())
                              for link in show(node, "link"))
            raise Failure(f"{failure}: {links}") from None


def forget(cluster):
    """Remove peers, pairs and module from nodes that have it."""
    def end(node):
        if loaded(node):
            unpair(node)
            unload(node)
    each(cluster.nodes, end)


def unpair(node):
    """No peers and no pairs."""
    for peer in show(node, "peer"):
        must(node, "peer", "del", peer["node"])
    for row in show(node, "pair"):
        must(node, "pair", "del", row["dev"])


def alike(cluster, state):
    """States that are as good: what is home may be given back to its application."""
    return ("returned", "default") if state == "returned" and cluster.nics.gives_back else (state,)


class Glance:
    """Whether it is worth to ask for the states of QPs: shiftctl takes an emulated node some 70 ms.

    What sysfs tells of the pair costs next to nothing, but says less: shiftctl has the last word,
    and is asked now and then in any case.
    """

    EVERY = 10

    def __init__(self, node, count, state):
        self.node = node
        self.count = count
        self.state = state if state == "fallback" else "default"
        self.looks = 0

    def worth(self):
        """Look."""
        self.looks += 1
        if self.looks % self.EVERY == 0:
            return True
        try:
            pair = self.node.read_folder(
                f"/sys/class/infiniband/{self.node.cluster.nics.default}/shift")
        except Failure:
            return True
        return int(pair["protected_qps"]) >= self.count and pair["state"] == self.state


def protected(node, count, state="default"):
    """Wait until that many QPs are protected."""
    glance = Glance(node, count, state)

    def enough():
        if not glance.worth():
            return False
        rows = connected(node)
        return len(rows) == count and all(row["state"] in alike(node.cluster, state)
                                          for row in rows)
    try:
        wait_for(f"{node.name}: {count} QPs in state {state}", enough, 150, .2)
    except Failure as failure:
        links = [f"{link['dev']} {link['state']}" for link in show(node, "link")]
        raise Failure(f"{failure}: links {links}, {json.dumps(qps(node))[:1500]}") from None


def home(cluster, count):
    """Move all QPs back to their default device and wait until they are there."""
    client = cluster.nodes[0]
    glances = [Glance(node, count, "default") for node in cluster.nodes[:2]]

    def arrived():
        if not all([glance.worth() for glance in glances]):
            return False
        rows = [row for node in cluster.nodes[:2] for row in connected(node)]
        if len(rows) == 2 * count and all(row["state"] in alike(cluster, "returned")
                                          for row in rows):
            return True
        # What was refused, or called off, is asked for again.
        ctl(client, "pair", "undrain", cluster.nics.default)
        return False
    must(client, "pair", "undrain", cluster.nics.default)
    wait_for("all QPs are home", arrived, 150, .2)


def wait_reason(node, reason, count=1):
    """Wait until that many QPs are unprotected for this reason."""
    def enough():
        rows = qps(node)
        return len(rows) == count and all(
            row["state"] == "unprotected" and row.get("reason") == reason
            for row in rows)
    try:
        wait_for(f"{node.name}: reason {reason}", enough, 60)
    except Failure as failure:
        raise Failure(f"{failure}: {json.dumps(qps(node))[:1500]}") from None
    text = qps(node)[0].get("reason_text", "")
    check(len(text) > 10, f"no text beside the reason {reason}")


def witness(cluster):
    """What a reader of a failure wants to see: what programs say, the nodes as they are now."""
    programs = []
    for process in cluster.processes:
        there = "is there" if process.status is None else f"ended with {process.status}"
        tail = process.tail()
        programs.append((f"{process.name()} {there}:\n{tail}", tail))
    for node in cluster.nodes:
        tail = steps(node)
        programs.append((f"{node.name}, the module's last steps:\n{tail}", tail))
    return programs, "".join(module_state(node) + device_state(node) for node in cluster.nodes)


def steps(node, count=20):
    """What the module has done last, by its tracepoints."""
    try:
        return node.run(f"grep -v '^#' {STEPS}/trace | sed 's/^.*\\] [^ ]* *//' | tail -n {count}",
                        timeout=20).text
    except (Failure, LabError, OSError) as error:
        return str(error)


def module_state(node):
    """What shiftctl tells, if it still can."""
    text = ""
    for what in ("qp", "link", "pair", "peer", "stat"):
        try:
            text += f"\n==== {node.name}: {what}\n{ctl(node, what, 'show', timeout=10).text}\n"
        except (Failure, LabError, OSError) as error:
            return text + f"\n==== {node.name}: {error}\n"
    return text


def device_state(node):
    """The devices' own counters, and where the software mlx5 device is in its rings."""
    try:
        result = node.run("rdma resource show qp; "
                          "cd /sys/class/infiniband && grep -rH . rxe*/ports/1/hw_counters; "
                          "cd /sys/kernel/debug/mlx5_soft && grep -H . */qps */stats")
    except (Failure, LabError, OSError) as error:
        return f"\n==== {node.name}: {error}\n"
    return f"\n==== {node.name}: devices\n{result.text}\n"


class Counters:
    """Counters of all nodes at one moment, to compare with later ones."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.before = each(cluster.nodes, stats)

    def deltas(self, *names):
        """How far counters have moved on each node: one look for all of them."""
        now = each(self.cluster.nodes, stats)
        return {name: [new[name] - old[name] for new, old in zip(now, self.before)]
                for name in names}

    def delta(self, name):
        """How far a counter has moved on each node."""
        return self.deltas(name)[name]

    def moved(self, name, least=1):
        """Insist that a counter moved on every node."""
        delta = self.delta(name)
        check(all(value >= least for value in delta),
              f"counter {name} moved by {delta}, expected at least {least}")

    def still(self, *names):
        """Insist that counters did not move on any node."""
        for name, delta in self.deltas(*names).items():
            check(not any(delta), f"counter {name} moved by {delta}")


def kernel_dir(kernel):
    """What the module for a kernel is built against."""
    return run_lab("kdir", kernel).strip()
