# SPDX-License-Identifier: GPL-2.0
"""What tests there are and what each needs."""

# Every kernel, or only the one with the full matrix.
MAIN = ("6.1", "6.12", "debug")
FULL = ("6.1",)
DEBUG = "debug"
# Only if asked for: every test that the full matrix has.
NEWER = ("7.2", "7.3")
# Both kernels of Debian: what the debug kernel would take minutes for.
STOCK = ("6.1", "6.12")

# What a test finds on the nodes.
BARE = "bare"           # no module
LOADED = "loaded"       # module loaded, no pair
SHIFT = "shift"         # mutual pairs, peers known


class Skip(Exception):
    """A test that cannot be run here, with the reason."""


class Test:
    """One test: a function of a Testbed."""

    def __init__(self, suite, name, function, kernels, state, leaves):
        self.suite = suite
        self.name = name
        self.function = function
        self.kernels = kernels
        self.state = state
        self.leaves = leaves


TESTS = []


def add(suite, name, function, kernels=FULL, state=SHIFT, leaves=None):
    """Declare a test.

    state: what it finds on the nodes; leaves: what they are in when it has passed, if that is
    something else.
    """
    TESTS.append(Test(suite, name, function, kernels, state, leaves or state))


def test(suite, name, kernels=FULL, state=SHIFT, leaves=None):
    """Decorate a function of a Testbed as a test."""
    def register(function):
        add(suite, name, function, kernels, state, leaves)
        return function
    return register
