# SPDX-License-Identifier: GPL-2.0
"""Bringing a lab up: one QEMU process per node, a switch if there are many."""

import re
import signal
import subprocess
import time

import image
import kernel as kernels
from cluster import alive
from common import LabError

AGENT_PORT = 700
# Longer than it ever takes; the machine may be busy with other labs.
BOOT_SECONDS = 120
DEBUG_BOOT_SECONDS = 300
BOOT_TRIES = 3
# Left of the 108 bytes of a unix socket's path for the names in a lab's folder.
LONGEST_FOLDER = 90
# norandmaps: a program that lies where it lay before need not be translated anew by the
# emulator, which would take most of a short one's time.
COMMAND_LINE = """
    console=ttyS0 rdinit=/init panic=-1 mitigations=off nokaslr norandmaps net.ifnames=0
    tsc=reliable no_timer_check watchdog_thresh=60
    rcupdate.rcu_cpu_stall_timeout=60 random.trust_cpu=on
    cryptomgr.notests audit=0 printk.time=1
""".split()
# All that the emulator can do, but what costs it more than it gives the kernel: "rep movsb" is
# emulated byte by byte, and a fifth level of page tables is looked at in each walk of them.
PROCESSOR = "max,-erms,-la57"


# Where sessions are scheduled as groups (autogroup) a process' own priority counts within its
# session only, and each node has a session.
NICE = ["sh", "-c", "n=$1; shift; echo $n 2>/dev/null >/proc/self/autogroup; exec nice -n $n \"$@\"",
        "sh"]


def up(lab, kernel_name, nodes, rails, icount=False, processors=2, nice=0):
    """Boot a lab and return once every node is ready."""
    kernel = kernels.find(kernel_name)
    archive = image.initramfs(kernel)
    claim(lab)
    lab.state = {"name": lab.name, "kernel": kernel_name,
                 "release": kernel.release, "nodes": nodes, "rails": rails,
                 "icount": icount, "processors": processors, "nice": nice, "pids": [],
                 "ports": [], "helpers": []}
    try:
        lab.save()
        if nodes > 2:
            start_switch(lab)
        started = time.monotonic()
        for node in range(nodes):
            start_node(lab, node, kernel, archive)
        sound = []
        for node in range(nodes):
            sound.append(wait_ready(lab, node, kernel, started))
            lab.state["ports"].append(agent_port(lab, node))
        lab.save()
        for node in range(nodes):
            if not sound[node]:
                reset(lab, node)
    except BaseException:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        lab.down()
        raise


def claim(lab):
    """Make the state folder; making it is what reserves the name."""
    if len(str(lab.path)) > LONGEST_FOLDER:
        raise LabError(f"{lab.path}: too long for sockets in it")
    for _ in range(2):
        try:
            lab.path.mkdir(mode=0o700)
            return
        except FileExistsError:
            clear_stale(lab)
    raise LabError(f"lab '{lab.name}' is already up")


def clear_stale(lab):
    """Remove the remains of a lab none of whose processes lives."""
    try:
        lab.load()
    except LabError:
        # Claimed by another up a moment ago, or that one was killed early.
        if time.time() - lab.path.stat().st_mtime < 5:
            raise LabError(f"lab '{lab.name}' is being started") from None
    if lab.state and any(alive(pid, lab.path) for pid in lab.processes()):
        raise LabError(f"lab '{lab.name}' is already up")
    lab.down()


def spawn(lab, kind, log, *command):
    """Start a process that outlives us, its messages in a log file.

    A signal that ends us comes before or after: what is started is noted.
    """
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        with open(lab.path / log, "ab") as out:
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            lab.state[kind].append(subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True, cwd=lab.path,
                preexec_fn=lambda: signal.pthread_sigmask(
                    signal.SIG_SETMASK, before)).pid)
        lab.save()
    except FileNotFoundError:
        raise LabError(f"{command[0]} is not installed: "
                       "run scripts/deps") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_switch(lab):
    """More than two nodes meet at a switch, one process for all rails."""
    spawn(lab, "helpers", "switch.log", image.tool("switch"), lab.path,
          lab.state["rails"], lab.state["nodes"])


def cable(lab, node, rail):
    """The two ends of a node's cable: its own socket and the far one."""
    far = "switch" if lab.state["nodes"] > 2 else f"node{1 - node}"
    return f"{lab.path}/rail{rail}-node{node}", f"{lab.path}/rail{rail}-{far}"


def start_node(lab, node, kernel, archive):
    """Start the QEMU process of one node."""
    state = lab.state
    append = COMMAND_LINE + [f"lab.node={node}", f"lab.nodes={state['nodes']}",
                             f"lab.rails={state['rails']}"]
    # 2^3 ns per instruction: about as fast as these nodes are.
    processor = (["-accel", "tcg,thread=single", "-smp", "1", "-icount",
                  "shift=3"] if state["icount"] else
                 ["-accel", "tcg,thread=multi", "-smp", state["processors"]])
    memory = 1536 if kernel.name == "debug" else 768
    command = [
        *(NICE + [state["nice"]] if state["nice"] else []),
        "qemu-system-x86_64", "-name", f"{lab.name}-node{node}",
        # Devices nobody uses cost the debug kernel seconds of ACPI bytecode.
        "-machine", "q35,usb=off,vmport=off,sata=off,smbus=off,hpet=off,i8042=off,"
                    "smm=off", "-cpu", PROCESSOR,
        "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
        *processor, "-m", memory,
        "-nodefaults", "-no-user-config", "-display", "none",
        "-no-reboot", "-kernel", kernel.image, "-initrd", archive,
        "-append", " ".join(append),
        "-chardev", f"file,id=console,append=on,path={lab.console(node)}",
        "-serial", "chardev:console",
        "-qmp", f"unix:{lab.path}/node{node}-qmp,server=on,wait=off",
        # The host port is the system's choice: two labs cannot collide.
        "-netdev", f"user,id=ctl,hostfwd=tcp:127.0.0.1:0-:{AGENT_PORT}",
        "-device", "virtio-net-pci,netdev=ctl,romfile=,"
                   f"mac=52:54:00:00:ff:{node:02x}"]
    for rail in range(state["rails"]):
        near, far = cable(lab, node, rail)
        command += [
            "-netdev", f"dgram,id=rail{rail},local.type=unix,"
                       f"local.path={near},remote.type=unix,"
                       f"remote.path={far}",
            "-device", f"virtio-net-pci,id=nic{rail},netdev=rail{rail},"
                       f"mac=52:54:00:00:{rail:02x}:{node:02x},"
                       "romfile=,speed=10000,duplex=full,ioeventfd=off"]
    spawn(lab, "pids", f"node{node}-qemu.log", *command)


def reset(lab, node):
    """Power fails on a node and comes back: a new machine, nothing of the old one.

    A machine that its emulator resets takes minutes to boot, on some days.
    """
    kernel = kernels.find(lab.state["kernel"])
    archive = image.initramfs(kernel)
    for _ in range(BOOT_TRIES):
        said = len(read_if_there(lab.console(node)))
        lab.kill([lab.state["pids"][node]])
        started = time.monotonic()
        start_node(lab, node, kernel, archive)
        lab.state["pids"][node] = lab.state["pids"].pop()
        lab.save()
        sound = wait_ready(lab, node, kernel, started, said)
        lab.state["ports"][node] = agent_port(lab, node)
        lab.save()
        if sound:
            return
    raise LabError(f"node{node}: its clock runs too fast, after each of {BOOT_TRIES} boots")


def wait_ready(lab, node, kernel, started, start=0):
    """Watch a node's console, from a place on, until its init says it is ready.

    False: its clock has counted more seconds than have passed since the node was started. The
    kernel measures how fast the processor's counter runs; if the host puts the emulator off just
    then, seconds of the node may last 40 ms, and all its timeouts are over at once.
    """
    deadline = started + (DEBUG_BOOT_SECONDS if kernel.name == "debug" else BOOT_SECONDS)
    while True:
        # Asked first: what a machine printed before its end is in the log.
        running = lab.running(node)
        log = read_if_there(lab.console(node))[start:]
        ready = re.search(r"^\[ *([0-9.]+)\] lab: READY", log, re.M)
        if ready:
            return lab.state["icount"] or float(ready.group(1)) <= time.monotonic() - started
        failed = re.search(r"lab: FAILED (.*)", log)
        if failed:
            give_up(node, "failed: " + failed.group(1).strip(), log)
        if not running:
            messages = read_if_there(lab.path / f"node{node}-qemu.log")
            give_up(node, "ended: " + messages.strip()[-300:], log)
        if time.monotonic() > deadline:
            give_up(node, "is not ready in time", log)
        time.sleep(0.05)


def read_if_there(path):
    """The text of a file another process may be about to make."""
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def give_up(node, why, log):
    """Fail with the end of the console, which is about to go."""
    raise LabError("\n".join([f"node{node} {why}"] + log.splitlines()[-15:]))


def agent_port(lab, node):
    """The host port that leads to a node's exec agent."""
    table = lab.qmp(node, "human-monitor-command",
                    **{"command-line": "info usernet"})
    found = re.search(rf"HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+"
                      rf"\S+\s+{AGENT_PORT}\b", table)
    if not found:
        raise LabError(f"node{node} has no control port: {table}")
    return int(found.group(1))
