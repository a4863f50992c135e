# SPDX-License-Identifier: GPL-2.0
"""A NIC proves itself when it is paired; the software device breaks one assumption at a time.

The assumptions have numbers (internals/mlx5.md).
"""

from functools import partial
from itertools import zip_longest

from registry import FULL, STOCK, add
from testbed import check, wait_for
from nodes.failover import pull, start
from nodes.mlx5 import SMALL, failover, not_covered, on_mlx5
from nodes.mlx5_handback import stays_returned
from nodes.pair_life import pair_of

# Those that kernel QPs can try.  Without 16 a QP is protected, but not handed back; without one of
# the second kind only those on SRQs are not.
SRQ_CLAIMS = {17, 18, 21}
CLAIMS = {1, 2, 3, 4, 5, 7, 10, 11, 16, 20} | SRQ_CLAIMS
# What does not hold either if one is broken, as it is tried by the same completions, data or PSNs,
# or with a QP that was reset.
WITH_IT = {1: {2, 4}, 2: {4, 21}, 3: {17}, 7: {16}, 10: {16}, 11: {2, 16, 17, 18, 21}, 16: {17, 21},
           18: {17, 21}}
# So do these, or not: that depends on how far messages are when a QP is stopped.
MAY_GO = {1: {3, 17}, 11: {4}}
FAULTS = "/sys/kernel/debug/mlx5_soft/{}/breaks"
# What a device says of the register ROCE_ACCL, and whether that leaves it in order.  Bit 5 is forced
# adaptive routing, 6 selective repeat; with 8 no bit is valid, with 9 it has no such register, and
# with 10 it does not answer.
ROCE_ACCL = {0x00: True, 0x1f: True, 0x20: False, 0x40: False, 0x60: False, 0x160: True,
             0x260: True, 0x400: False}


def paired_anew(node, dev="mls0", number=None):
    """Pair mls0 once more, while a device breaks an assumption: its pair, as shiftctl shows it."""
    mask = 0 if number is None else 1 << number
    node.must(f"shiftctl pair del mls0 && echo {mask:#x} >{FAULTS.format(dev)} && "
              "shiftctl pair add mls0 mls1")
    return pair_of(node, "mls0")


def whole(row):
    """Both devices have shown all that they can."""
    return (set(row["proof_held"]) == set(row["backup_proof_held"]) == CLAIMS and
            not row["proof_failed"] and not row["backup_proof_failed"])


def found(row, device, number):
    """What is wrong with the proof of a device that breaks an assumption, or none; None: nothing."""
    held, failed = (set(row[f"{device}proof_{what}"]) for what in ("held", "failed"))
    either = MAY_GO.get(number, set())
    expected = CLAIMS - {number} - WITH_IT.get(number, set()) - either
    if held - either == expected and not held & failed and (number is None or number in failed):
        return None
    return f"{device}{number} is broken: held but for {CLAIMS - held}, failed {failed}"


def assumptions(bed):
    """Devices do not do what is assumed of them, each one thing after the other, and are found.

    All that does not depend on it holds.
    """
    node = bed.nodes[0]
    check(whole(pair_of(node, "mls0")), f"sound devices: {pair_of(node, 'mls0')}")
    numbers = sorted(CLAIMS)
    wrong = []
    # with the last one the backup is sound
    for number, other in zip_longest(numbers[::2], numbers[1::2]):
        node.must(f"echo {1 << other if other else 0:#x} >{FAULTS.format('mls1')}")
        row = paired_anew(node, number=number)
        wrong += [found(row, "", number), found(row, "backup_", other)]
    check(not any(wrong), "\n".join(filter(None, wrong)))
    row = paired_anew(node)
    check(whole(row), f"sound again: {row}")


def in_order(bed):
    """Adaptive routing or selective repeat is forced on all QPs of a NIC, or it does not tell."""
    node = bed.nodes[0]
    register = FAULTS.format("mls0").replace("breaks", "roce_accl")
    for value, holds in ROCE_ACCL.items():
        node.must(f"echo {value:#x} >{register}")
        row = paired_anew(node)
        check(whole(row) if holds else row["proof_failed"] == [20],
              f"ROCE_ACCL {value:#x}: {row}")
        log = node.must("dmesg | grep -c 'ROCE_ACCL' || true").strip()
        check(bool(int(log)) >= (not holds), "the kernel's log says why")
    node.must(f"echo 0x40 >{register}")
    paired_anew(node)
    not_covered("unproven", [], bed)
    node.must(f"echo 0 >{register}")
    check(whole(paired_anew(node)), "in order again")
    failover("local", SMALL, bed)


def unproven(bed):
    """QPs of a NIC that failed, or whose backup did, run as without the module."""
    client = bed.nodes[0]
    for dev in ("mls0", "mls1"):
        paired_anew(client, dev, 3)
        not_covered("unproven", [], bed)
        paired_anew(client, dev)


def unproven_srq(bed):
    """What a NIC does wrong with SRQs is no matter to QPs that are on none."""
    client = bed.nodes[0]
    for number, dev in ((18, "mls0"), (21, "mls1")):
        paired_anew(client, dev, number)
        not_covered("unproven", ["--ops", "send", "--srq"], bed)
        client.must(f"echo 0 >{FAULTS.format(dev)}")    # nobody has tried it since
    failover("local", SMALL, bed)


def untried(bed):
    """A NIC without a cable cannot be tried; it is as soon as it has one."""
    client = bed.nodes[0]
    pull(bed, "local")
    wait_for("the port is down",
             lambda: pair_of(client, "mls0")["port_state"] != "active")
    row = paired_anew(client)
    check(not row["proof_held"] and not row["proof_failed"], f"without a cable: {row}")
    check(set(row["backup_proof_held"]) == CLAIMS, f"the backup has one: {row}")
    bed.plug_all()
    wait_for("it was tried", lambda: whole(pair_of(client, "mls0")))
    failover("local", SMALL, bed)


def kept_home(bed):
    """A NIC that does not work again after a RESET: what is home stays on the kernel's QPs."""
    client = bed.nodes[0]
    paired_anew(client, number=16)
    client.must(f"echo 0 >{FAULTS.format('mls0')}")     # nobody has tried it since
    stays_returned(start(bed, "--bidir", *SMALL), bed)
    check(whole(paired_anew(client)), "sound again")


for _name, _function, _kernels in (
        ("an assumption does not hold", assumptions, STOCK),
        ("unprotected: an assumption does not hold", unproven, FULL),
        ("unprotected: an assumption about SRQs does not hold", unproven_srq, FULL),
        ("unprotected: adaptive routing or selective repeat is forced", in_order, FULL),
        ("not handed back: a NIC that does not work again after RESET", kept_home, FULL),
        ("a NIC without a cable is tried when it has one", untried, FULL)):
    add("mlx5", _name, partial(on_mlx5, _function), _kernels)
