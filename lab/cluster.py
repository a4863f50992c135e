# SPDX-License-Identifier: GPL-2.0
"""A lab that is up: its state on disk, its machines, and its end."""

import json
import os
import re
import signal
import socket
import time
from pathlib import Path

from common import LabError, UsageError


def state_root():
    """The folder that holds one folder per lab."""
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")


def all_labs():
    """Names of all labs of this user, running or stale."""
    prefix = "rdma_shift-lab-"
    return sorted(path.name[len(prefix):]
                  for path in state_root().glob(prefix + "*") if ours(path))


def ours(path):
    """Whether a file belongs to this user: others may use /tmp, too."""
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False


def address(node, rail):
    """The IPv4 address of a node on a rail; Documentation/testing/lab.md has it."""
    return f"10.{10 + rail}.0.{1 + node}"


def alive(pid, marker):
    """Whether pid still is the process that was started with marker."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return False
    # A process has no command line yet for a moment while it starts.
    return status.split()[0] != "Z" and (not line or
                                         str(marker).encode() in line)


class Lab:
    """A lab by name; what is known about it comes from lab.json."""

    def __init__(self, name):
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,32}", name):
            raise UsageError(f"bad lab name '{name}': use up to 32 letters, "
                             "digits and _.-")
        self.name = name
        self.path = state_root() / f"rdma_shift-lab-{name}"
        self.state = None

    def load(self):
        """Read the state of a lab that is up."""
        if self.path.exists() and not ours(self.path):
            raise LabError(f"{self.path} belongs to another user")
        try:
            self.state = json.loads((self.path / "lab.json").read_text())
        except (OSError, ValueError):
            raise LabError(f"lab '{self.name}' is not up") from None
        return self

    def node(self, text):
        """Turn 'N' or 'nodeN' into a number, checked."""
        found = re.fullmatch(r"(?:node)?(\d+)", text)
        if not found or int(found.group(1)) >= self.state["nodes"]:
            raise UsageError(f"no node '{text}': lab '{self.name}' has node0 "
                             f"to node{self.state['nodes'] - 1}")
        return int(found.group(1))

    def rail(self, text):
        """Turn 'N' or 'railN' into a number, checked."""
        found = re.fullmatch(r"(?:rail)?(\d+)", text)
        if not found or int(found.group(1)) >= self.state["rails"]:
            raise UsageError(f"no rail '{text}': lab '{self.name}' has rail0 "
                             f"to rail{self.state['rails'] - 1}")
        return int(found.group(1))

    def console(self, node):
        """The file with a node's serial output."""
        return self.path / f"node{node}-console.log"

    def running(self, node):
        """Whether a node's machine still runs."""
        return alive(self.state["pids"][node], self.path)

    def processes(self):
        """All process ids the lab has started."""
        return self.state["pids"] + self.state["helpers"]

    def processor(self):
        """Seconds for which processors of the host have worked for its nodes so far."""
        ticks = 0
        for pid in self.state["pids"]:
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def save(self):
        """Write lab.json in one step."""
        partial = self.path / "lab.json.tmp"
        partial.write_text(json.dumps(self.state))
        os.rename(partial, self.path / "lab.json")

    def qmp(self, node, command, **arguments):
        """Run one QMP command on a node's machine."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(30)
            try:
                link.connect(f"{self.path}/node{node}-qmp")
                stream = link.makefile("rw")
                stream.readline()
                self.qmp_call(stream, "qmp_capabilities", {})
                return self.qmp_call(stream, command, arguments)
            except OSError as error:
                raise LabError(f"node{node} does not answer: "
                               f"{error}") from None

    @staticmethod
    def qmp_call(stream, command, arguments):
        """Send a command and read on to its answer, past events."""
        request = {"execute": command, "arguments": arguments}
        stream.write(json.dumps(request) + "\n")
        stream.flush()
        for line in stream:
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise LabError(f"{command}: {answer['error']['desc']}")
        raise LabError(f"{command}: the machine is gone")

    def set_link(self, node, rail, is_up):
        """Plug or pull a node's cable."""
        self.qmp(node, "set_link", name=f"nic{rail}", up=is_up)

    def down(self):
        """End every process of the lab and remove its folder."""
        import shutil   # Costs more to load than an exec takes.
        if self.path.exists() and not ours(self.path):
            raise LabError(f"{self.path} belongs to another user")
        if self.state is None:
            try:
                self.load()
            except LabError:
                self.state = {"pids": [], "helpers": []}
        self.kill(self.processes())
        shutil.rmtree(self.path, ignore_errors=True)

    def kill(self, pids):
        """End processes of the lab and wait until they have."""
        for pid in pids:
            if alive(pid, self.path):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while any(alive(pid, self.path) for pid in pids):
            if time.monotonic() > deadline:
                raise LabError(f"lab '{self.name}': processes do not end")
            time.sleep(0.01)
