# SPDX-License-Identifier: GPL-2.0
"""The directory: an etcd of our own on the host, and shiftd on nodes."""

import json
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request

from testbed import Failure, wait_for

HOST_SEEN_BY_GUESTS = "10.0.2.2"


def free_ports(count):
    """TCP ports nobody listens on at the moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


class Etcd:
    """One etcd on the loopback, with its data in a temporary folder."""

    def __init__(self):
        self.client_port, self.peer_port = free_ports(2)
        self.url = f"http://127.0.0.1:{self.client_port}"
        self.guest_url = f"http://{HOST_SEEN_BY_GUESTS}:{self.client_port}"
        self.folder = None
        self.process = None
        self.log = None

    def start(self):
        """Start it, or start it again with the data it had."""
        if self.folder is None:
            self.folder = tempfile.mkdtemp(prefix="rdma_shift-etcd-")
        peer = f"http://127.0.0.1:{self.peer_port}"
        # pylint: disable=consider-using-with
        self.log = open(f"{self.folder}/log", "ab")
        self.process = subprocess.Popen(
            ["etcd", "--name", "lab", "--data-dir", f"{self.folder}/data",
             "--listen-client-urls", self.url, "--advertise-client-urls",
             self.url, "--listen-peer-urls", peer,
             "--initial-advertise-peer-urls", peer, "--initial-cluster",
             f"lab={peer}"], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, start_new_session=True)
        wait_for("etcd", self.healthy, 60)

    def healthy(self):
        """Whether it answers."""
        if self.process.poll() is not None:
            with open(f"{self.folder}/log", encoding="utf-8",
                      errors="replace") as log:
                raise Failure("etcd ended: " + log.read()[-1000:])
        try:
            with urllib.request.urlopen(f"{self.url}/health",
                                        timeout=2) as answer:
                return json.load(answer).get("health") == "true"
        except (urllib.error.URLError, OSError, ValueError):
            return False

    def kill(self):
        """Take it away; its data stay for another start."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.log.close()
            self.process = None

    def stop(self):
        """End it and remove its data."""
        self.kill()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


# As its unit starts it: an ordinary user with one capability, and no way to another.
KEYS = "/etc/shiftd.keys"
RUNTIME = "/run/shiftd"
USER = 1000
AS_SERVICE = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
              "--inh-caps=-all,+net_admin", "--ambient-caps=-all,+net_admin",
              "--bounding-set=-all,+net_admin", "--no-new-privs"]


def start_shiftd(node, url, pairs, more="", service=False):
    """Configure and start shiftd in the foreground; its process.

    As a service it has a file of keys that only root can read, which nobody has loaded yet.
    """
    text = f"[node]\nname = {node.name}\n"
    if service:
        text += f"auth_file = {KEYS}\n"
    for pair in pairs:
        default, backup = pair.split()
        text += f"[pair]\ndefault = {default}\nbackup = {backup}\n"
    text += f"[etcd]\nendpoints = {url}\n{more}"
    node.must("umask 077; cat >/etc/shiftd.conf", stdin=text.encode())
    words = ["shiftd", "-c", "/etc/shiftd.conf"]
    if not service:
        return node.start(words)
    node.must(f"chgrp {USER} /etc/shiftd.conf && chmod 640 /etc/shiftd.conf && "
              f"mkdir -p {RUNTIME} && chown {USER} {RUNTIME}")
    return node.start([*AS_SERVICE, *words], {"RUNTIME_DIRECTORY": RUNTIME})
