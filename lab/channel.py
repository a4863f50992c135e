# SPDX-License-Identifier: GPL-2.0
"""The host's end of the exec channel; agent.c describes the frames."""

import os
import select
import signal
import socket
import struct
import sys
import time

from common import LabError

TIMED_OUT = 124
CALL_SECONDS = 120
USERS = {"root": "0:0", "lab": "1000:1000"}
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root", "LANG": "C",
}


class Interrupted(Exception):
    """A signal asked us to stop."""


def frame(kind, data=b""):
    """One message of the channel."""
    return kind + struct.pack(">I", len(data)) + data


class Command:
    """A command running on a node."""

    def __init__(self, lab, node, words, env=(), user="root"):
        self.node = node
        self.buffer = b""
        self.status = None
        try:
            self.link = socket.create_connection(
                ("127.0.0.1", lab.state["ports"][node]), timeout=10)
        except (OSError, IndexError):
            raise LabError(f"node{node} cannot be reached: "
                           f"see lab console {node}") from None
        self.link.settimeout(None)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        environment = ENVIRONMENT | {"USER": user} | dict(env)
        request = b"".join(frame(b"a", os.fsencode(word)) for word in words)
        request += b"".join(frame(b"e", os.fsencode(f"{name}={value}"))
                            for name, value in environment.items())
        request += frame(b"u", USERS[user].encode()) + frame(b"r")
        self.link.sendall(request)

    def send(self, data):
        """Give bytes to the command's stdin; none at all mean end of file."""
        try:
            self.link.sendall(frame(b"i", data))
        except OSError:
            pass    # It has ended; its status says why.

    def stop(self):
        """Have the command killed; its exit is still reported."""
        try:
            self.link.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def receive(self):
        """Read what is there and return the complete messages in it."""
        try:
            data = self.link.recv(1 << 18)
        except OSError:
            data = b""
        if not data:
            raise LabError(f"node{self.node} went away: "
                           f"see lab console {self.node}")
        self.buffer += data
        messages = []
        while len(self.buffer) >= 5:
            kind = self.buffer[:1]
            end = 5 + struct.unpack(">I", self.buffer[1:5])[0]
            if len(self.buffer) < end:
                break
            messages.append((kind, self.buffer[5:end]))
            self.buffer = self.buffer[end:]
        return messages

    def handle(self, out, err):
        """Receive once: pass output on, note the exit status."""
        for kind, data in self.receive():
            if kind == b"o":
                out(data)
            elif kind == b"e":
                err(data)
            elif kind == b"x":
                self.status = int(data)
            elif kind == b"m":
                raise LabError(f"node{self.node}: {data.decode()}")


def writer(descriptor):
    """A function that writes all of its argument to a descriptor."""
    def write(data):
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view):]
    return write


def interact(command, timeout, read_stdin):
    """Join a command to our own stdin, stdout and stderr; its exit status."""
    def interrupted(number, _frame):
        raise Interrupted(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    out, err = writer(1), writer(2)
    deadline = time.monotonic() + timeout if timeout else None
    sources = [command.link]
    if read_stdin:
        sources.append(sys.stdin.fileno())
    else:
        command.send(b"")
    try:
        while command.status is None:
            left = None
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return finish(command, TIMED_OUT, out, err)
            ready = select.select(sources, [], [], left)[0]
            if command.link in ready:
                command.handle(out, err)
            elif ready:
                data = os.read(sources[1], 1 << 16)
                command.send(data)
                if not data:
                    sources.pop()
    except Interrupted as stop:
        return finish(command, 128 + stop.args[0], out, err)
    except BrokenPipeError:
        return finish(command, 128 + signal.SIGPIPE, None, None)
    return command.status


def finish(command, status, out, err):
    """Stop a command and stay until it is dead, so that nobody races it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    command.stop()
    command.link.settimeout(5)
    try:
        while command.status is None:
            command.handle(out or len, err or len)
    except (LabError, OSError):
        pass
    return status


def call(lab, node, words, stdin=b"", check=True):
    """Run a short command of the lab's own and return (status, stdout)."""
    command = Command(lab, node, words)
    command.link.settimeout(CALL_SECONDS)
    if stdin:
        for at in range(0, len(stdin), 1 << 16):
            command.send(stdin[at:at + (1 << 16)])
    command.send(b"")
    out, err = bytearray(), bytearray()
    while command.status is None:
        command.handle(out.extend, err.extend)
    if check and command.status:
        text = (err or out).decode(errors="replace").strip()
        raise LabError(f"node{node}: {words[0]} failed "
                       f"({command.status}): {text}")
    return command.status, bytes(out)
