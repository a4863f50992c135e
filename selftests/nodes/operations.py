# SPDX-License-Identifier: GPL-2.0
"""Every RC operation without a fault, and proof that each check can fail.

With the module nothing may be different: after_failover.py is about faults.
"""

import re
from functools import partial

import shift
from registry import BARE, FULL, MAIN, SHIFT, STOCK, add
from testbed import PATCHED, check
from traffic import SPOILT_RECEIVE, Verify, spoilt_receive

OPERATIONS = ("write", "write_imm", "send", "send_imm", "send_inv", "read",
              "fadd", "cas", "mw")
# A seed that is not given is drawn, and printed by both sides. No fault, so no
# reason to retransmit but a machine that stood still: rxe would then execute
# BIND_MW and LOCAL_INV once more, and fail them.
FINITE = ["--iters", 400, "--size", "0-5000", "--guard", "--timeout", 60,
          "--qp-timeout", 21]
MIXED = ["--ops", "all", "--mix", *FINITE]
# Where a failure is looked for, windows would only be a second reason for one.
WINDOWLESS = ["--ops", "write,write_imm,send,send_imm,read,fadd,cas", "--mix",
              *FINITE]
BIDIR = [*MIXED, "--bidir", "--signal-every", 8, "--chain", 8]

# What is mixed, by name: options and QPs. The first runs on every kernel.
MIXES = {
    "both directions, unsignaled": (BIDIR, 4),
    "one direction": (MIXED, 1),
    "ibv_wr_*, inline, lists": (
        [*BIDIR, "--post", "wr", "--inline", "--sge", 4], 4),
    "ibv_post_send, inline, lists": ([*BIDIR, "--inline", "--sge", 5], 4),
    "events, CQ resized": ([*BIDIR, "--events", "--resize-cq"], 2),
    "solicited events": ([*BIDIR, "--events", "--solicited"], 2),
    "SRQ, one CQ, resized": (
        [*BIDIR, "--srq", "--shared-cq", "--resize-cq"], 4),
    "SRQ, solicited events": ([*BIDIR, "--srq", "--events", "--solicited"], 2),
    "messages of 64 KiB": (
        ["--ops", "write_imm,send,read", "--mix", "--bidir", "--size",
         "1-65536", "--iters", 60, "--depth", 8, "--guard", "--qp-timeout", 21], 2),
}

# ibv_start_poll of the rxe provider in rdma-core 44 returns entries that are not
# there; 56.1, on which ours is based, does not.
POLLS = {
    "ibv_start_poll": ([*BIDIR, "--poll", "start"], 4),
    "ibv_start_poll, events, one CQ, resized": (
        [*BIDIR, "--poll", "start", "--events", "--shared-cq", "--resize-cq"], 4),
}

# What is done wrong, the options beside it, and what one of the sides must say.
SABOTAGE = {
    "corrupt": ([], r"byte \d+ is "),
    # The receives after it are one too many or too few: what is looked at first
    # may be the memory of one.
    "double-send": ([], r"VIOLATION: qp 0: .* (has|arrived|byte \d+ is)"),
    "skip": ([], r"VIOLATION: qp 0: .* (has|arrived|byte \d+ is)"),
    "late-write": ([], "was written again after it was delivered"),
    # The second answer may hit memory that is in use again.
    "double-add": ([], r"(nobody posted|FETCH_ADD \d+ returned|byte \d+)"),
    "double-swap": ([], r"(CMP_SWAP \d+ returned|byte \d+ is |answer to \d+ written twice)"),
    "imm": ([], "has imm"),
    "length": ([], "has length"),
    "signal": (["--signal-every", 4], "of an unsignaled WR"),
    "unsignal": ([], ", expected 0x"),
    "stale-read": ([], r"READ \d+ byte"),
    # In lists, so that something is behind the error.
    "revive": (["--allow-error", "--chain", 8], "after an error"),
}


def run(bed, options, qps, env=None):
    """From beginning to end; what both sides printed."""
    client, server = bed.nodes[:2]
    # The debug kernel is slow: less of the same.
    shorter = ["--iters", 80] if bed.kernel == "debug" else []
    verify = Verify(client, server, *options, *shorter, qps=qps, env=env)
    verify.go()
    ended = (verify.client.wait(), verify.server.wait())
    text = f"{verify.client.text}\n{verify.server.text}"
    check(ended == (0, 0), f"client and server ended with {ended}:\n{text}")
    if "--resize-cq" in options:
        check(not re.search("^resized 0$", text, re.M), "no CQ was resized")
    return text


def bare(options, qps, stock, bed):
    """No module: with the patched library, and with the distribution's."""
    run(bed, options, qps, PATCHED)
    if stock:
        run(bed, options, qps, {})


def possible(nics, options):
    """Without what the devices do not have."""
    def operations(names):
        every = OPERATIONS if names == "all" else names.split(",")
        return ",".join(name for name in every if name not in nics.cannot)

    if not nics.cannot:
        return options
    return [operations(word) if before == "--ops" else word
            for before, word in zip([None, *options], options) if word not in nics.cannot]


def undisturbed(options, qps, bed):
    """With the module and no fault: it must not be noticed."""
    counters = shift.Counters(bed)
    run(bed, possible(bed.nics, options), qps)
    counters.still("faults", "switches", "failed", "swallowed", "illegal")


def sabotaged(kind, options, says, bed):
    """Something is done wrong: one side finds it, says it and ends with 1."""
    client, server = bed.nodes[:2]
    verify = Verify(client, server, "--seed", 11, *WINDOWLESS, "--size",
                    "1-3000",
                    *options, "--sabotage", kind)
    verify.go()
    ended = {verify.client.wait(), verify.server.wait()}
    text = f"{verify.client.text}\n{verify.server.text}"
    check(1 in ended and ended <= {1, 3}, f"they ended with {ended}:\n{text}")
    check(re.search(f"^VIOLATION: .*{says}|^{says}", text, re.M),
          f"nobody said '{says}':\n{text}")


def error(bed):
    """An operation that is refused: reported, and a failure of the program."""
    client, server = bed.nodes[:2]
    verify = Verify(client, server, *WINDOWLESS, "--sabotage", "rkey")
    verify.go()
    verify.fails("remote access error")


def bad_receive(bed):
    """One of the receives has a key that is none: an error at both ends."""
    client, server = bed.nodes[:2]
    verify = Verify(client, server, *SPOILT_RECEIVE)
    if shift.loaded(client):
        for node in (client, server):
            shift.protected(node, 1)
    verify.go()
    spoilt_receive(verify)


def allowed_error(bed):
    """The same allowed: the other QPs go on, atomics are counted right."""
    text = run(bed, [*BIDIR, "--allow-error", "--sabotage", "rkey"], 3, PATCHED)
    check(re.search("^error qp 0 wr 0x", text, re.M), f"no error:\n{text}")
    check(len(re.findall("^failed 1$", text, re.M)) == 2,
          f"not one QP has failed on either side:\n{text}")


def register():
    """All of them, those on every kernel first."""
    for number, (name, (options, qps)) in enumerate(MIXES.items()):
        kernels = FULL if number else MAIN
        add("operations", f"no module: mix: {name}",
            partial(bare, options, qps, True), FULL if number else STOCK, BARE)
        add("operations", f"module: mix: {name}",
            partial(undisturbed, options, qps), kernels, SHIFT)
    for name, (options, qps) in POLLS.items():
        add("operations", f"no module: mix: {name}",
            partial(bare, options, qps, False), FULL, BARE)
        add("operations", f"module: mix: {name}",
            partial(undisturbed, options, qps), FULL, SHIFT)
    for name in OPERATIONS:
        options = ["--ops", name, *FINITE]
        add("operations", f"no module: {name}",
            partial(bare, options, 2, True), FULL, BARE)
        add("operations", f"module: {name}",
            partial(undisturbed, options, 2), FULL, SHIFT)
    for kind, (options, says) in SABOTAGE.items():
        add("operations", f"sabotage is found: {kind}",
            partial(sabotaged, kind, options, says), FULL, BARE)
    add("operations", "an error completion is reported", error, FULL, BARE)
    for state, how in ((BARE, "no module"), (SHIFT, "module")):
        add("operations", f"{how}: a bad receive is reported at both ends", bad_receive, FULL,
            state)
    add("operations", "an allowed error: nothing else goes wrong", allowed_error,
        FULL, BARE)


register()
