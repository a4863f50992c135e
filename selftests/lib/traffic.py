# SPDX-License-Identifier: GPL-2.0
"""Applications between two nodes: shift_verify and perftest."""

import re

from testbed import CONTROL_RAIL, Failure, check, wait_for

PERFTEST_PORT = 18515
# The default of 67 ms is shorter than an emulated processor may be late, and
# rxe does not survive retries of what was not lost.
QP_TIMEOUT = 18
# With as much under way as perftest has, an ACK takes a second on a busy machine.
BULK_TIMEOUT = 20


class Verify:
    """shift_verify, server on one node and client on another, on the devices of the test."""

    def __init__(self, client, server, *options, env=None, qps=1,
                 device=None, user="root", server_env=None, before=()):
        nics = client.cluster.nics
        env = nics.env if env is None else env
        device = device or nics.default
        self.client_node = client
        self.server_node = server
        self.qps = qps
        # rxe 6.12 raises the second for an SRQ's QP whose path fails
        self.raised = {"communication established"}
        if "--srq" in options and client.cluster.kernel != "6.1":
            self.raised.add("last WQE reached")
        words = [*before, "shift_verify", "--device", device, "--qps", str(qps),
                 *map(str, options)]
        # rxe 6.12 warns of a READ that is repeated after an operation of no bytes, and refuses it.
        if client.cluster.kernel == "6.12":
            words = [re.sub("^0-", "1-", word) for word in words]
        self.server = server.start(words, env=env if server_env is None else server_env,
                                   user=user)
        self.server.wait_line("^listening$")
        self.client = client.start(
            [*words, "--hold", server.address(CONTROL_RAIL)], env=env,
            user=user)
        self.client.wait_line("^connected$")
        self.server.wait_line("^connected$")

    def go(self):
        """Let the traffic begin."""
        self.client.send("go")
        self.client.wait_line("^started$")

    def progress(self):
        """Messages completed so far, as last reported."""
        for _, line in reversed(self.client.lines):
            if line.startswith("progress "):
                return int(line.split()[1])
        return 0

    def past(self, count, timeout=60):
        """Wait until that many messages were completed."""
        while True:
            seen = len(self.client.lines)
            if self.progress() >= count:
                return
            self.client.wait_line(r"^progress ", timeout, start=seen)

    def more(self, count=1, timeout=60):
        """Wait for that many further progress lines."""
        for _ in range(count):
            try:
                self.client.wait_line(r"^progress ", timeout,
                                      start=len(self.client.lines))
            except Failure as failure:
                raise Failure(f"{failure}\nthe other side:\n"
                              f"{self.server.tail()}") from None

    def finish(self, timeout=120):
        """Stop and insist that all was right on both sides."""
        self.client.send("stop")
        self.end(timeout)

    def end(self, timeout=120):
        """Insist that it ends by itself with all right on both sides."""
        self.client.expect(0, timeout)
        self.server.expect(0, timeout)
        self.client.wait_line(r"^done \d+ sent")
        self.server.wait_line(r"^done ")
        # one that only answers completes too little, one that an error stopped had no time to
        check(not ("resized 0" in self.client.text and "resized 0" in self.server.text) or
              re.search("^error qp", self.client.text + self.server.text, re.M),
              "nobody has resized a CQ")
        for process in (self.client, self.server):
            self.no_events(process)

    def no_events(self, process):
        """A switch raises no event of a QP, a CQ or an SRQ; stock rxe raises some itself."""
        if re.search("^error qp", process.text, re.M):
            return
        events = set(re.findall("^async (.*)$", process.text, re.M))
        check(events <= self.raised, f"{process.name()} had events: {events}")

    def fails(self, status="transport retry counter exceeded", timeout=120):
        """Insist on the application's own completion error.

        Whichever side's retries run out first gets it and tells the other.
        """
        self.client.expect(3, timeout)
        self.server.expect(3, timeout)
        errors = re.findall(r"^error qp \d+ wr \S+ (.*)$",
                            self.client.text + "\n" + self.server.text, re.M)
        check(errors, f"no error completion:\n{self.client.tail()}\n"
                      f"{self.server.tail()}")
        if status:
            # rxe of 6.12 may find at once that it cannot send: it flushes
            check(set(errors) <= {status, "Work Request Flushed Error",
                                  "local QP operation error"},
                  f"the errors are {errors}, not '{status}'")


SPOILT_RECEIVE = ["--ops", "send", "--allow-error", "--sabotage", "receive"]


def spoilt_receive(verify, nak_lost=False):
    """A bad receive was met: both ends tell, and each its own part of it.

    A client that hears nothing of it is told by the server's program, and flushes.
    """
    refused = ["remote operation error"]
    if nak_lost:
        refused += ["Work Request Flushed Error", "transport retry counter exceeded"]
    for process, says in ((verify.server, ["local QP operation error"]),
                          (verify.client, refused)):
        process.expect(0, 120)
        errors = re.findall(r"^error qp 0 wr \S+ (.*)$", process.text, re.M)
        check(errors and errors[0] in says, f"the errors are {errors}, not {says}")


def listening(node, port):
    """Whether somebody listens on a TCP port."""
    return any(re.search(rf":{port:04X} [0-9A-F:]* 0A", node.read(f"/proc/net/{kind}"))
               for kind in ("tcp", "tcp6"))


def perftest(client, server, program, *options, env=None, device=None):
    """Start packaged perftest: (server process, client process).

    Its own TCP connection runs on the control rail; RDMA on the device, by default that of
    the test.
    """
    nics = client.cluster.nics
    env = nics.env if env is None else env
    device = device or nics.default
    words = [program, "-d", device, "-F", "-u", str(BULK_TIMEOUT),
             *map(str, options)]
    serving = server.start(words, env=env)
    # Its greeting stays in a buffer until it ends.
    wait_for(f"{program} listens", lambda: serving.status is not None
             or listening(server, PERFTEST_PORT))
    return serving, client.start(
        [*words, server.address(CONTROL_RAIL)], env=env)
