# SPDX-License-Identifier: GPL-2.0
"""A program on two nodes that does what lines say, one by one."""

from testbed import CONTROL_RAIL, check


class Ends:
    """One end on the server, one on the client: what each is told to do, and what it says."""

    def __init__(self, bed, program, **more):
        client, server = bed.nodes[:2]
        words = [program, bed.nics.default]
        env = {**bed.nics.env, **more}
        self.server = server.start(words, env=env)
        self.server.wait_line("^listening$")
        self.client = client.start([*words, server.address(CONTROL_RAIL)],
                                   env=env)
        for end in (self.client, self.server):
            end.wait_line("^connected$")

    @staticmethod
    def said(end, seen, timeout=60):
        """The line that follows the first @seen ones."""
        end.wait_line("", timeout, start=seen)
        return end.lines[seen][1]

    def do(self, end, order, says="ok", timeout=60):
        """One order, and the one line that answers it."""
        seen = len(end.lines)
        end.send(order)
        got = self.said(end, seen, timeout)
        check(got == says, f"'{order}': '{got}', not '{says}'")

    def both(self, order):
        """One order that needs both ends to be done."""
        ends = [(end, len(end.lines)) for end in (self.server, self.client)]
        for end, _ in ends:
            end.send(order)
        for end, seen in ends:
            got = self.said(end, seen)
            check(got == "ok", f"'{order}': '{got}'")

    def close(self):
        """Nothing is left that a destroy verb would refuse."""
        for end in (self.client, self.server):
            end.send("end")
            end.wait_line("^closed$", 60)
            end.expect(0)
