#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The netlink spec and shiftctl's words against uapi/linux/shift.h."""

import re
import sys
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parents[2]
HEADER = (TOP / "uapi/linux/shift.h").read_text(encoding="utf-8")
NAMES = (TOP / "helper/lib/names.c").read_text(encoding="utf-8")
SPEC = yaml.safe_load((TOP / "Documentation/netlink/specs/shift.yaml")
                      .read_text(encoding="utf-8"))


def members(enum, prefix):
    """Members of an enum of the header, as the spec writes them."""
    body = re.search(rf"enum {enum} \{{(.*?)\}};", HEADER, re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return [name.lower().replace("_", "-")
            for name in re.findall(rf"\b{prefix}(\w+)", body)
            if not name.startswith("_") and name != "MAX"]


def entries(name):
    """Entries of an enum of the spec."""
    found = next(d for d in SPEC["definitions"] if d["name"] == name)
    return [e["name"] if isinstance(e, dict) else e for e in found["entries"]]


def attributes(name):
    """Attributes of a set of the spec."""
    found = next(s for s in SPEC["attribute-sets"] if s["name"] == name)
    return [a["name"] for a in found["attributes"]]


def words(array):
    """Words of a table of names.c."""
    body = re.search(rf"\b{array}\[\w*\] = \{{(.*?)\}};", NAMES, re.S).group(1)
    return re.findall(r'"([^"]+)"', body)


def listed():
    """Attributes that some operation names."""
    found = set()
    for operation in SPEC["operations"]["list"]:
        for kind in ("do", "dump"):
            for way in operation.get(kind, {}).values():
                found |= set(way["attributes"])
        found |= set(operation.get("event", {}).get("attributes", []))
    return found


ENUMS = (("link_state", "SHIFT_LINK_"), ("qp_state", "SHIFT_QP_"),
         ("reason", "SHIFT_REASON_"), ("cause", "SHIFT_CAUSE_"),
         ("qp_event", "SHIFT_QP_EV_"), ("policy", "SHIFT_POLICY_"))


def pairs():
    """What has to be equal, with a name."""
    for enum, prefix in ENUMS:
        want = members(f"shift_{enum}", prefix)
        yield f"enum {enum} in the spec", entries(enum.replace("_", "-")), want
        yield f"enum {enum} in shiftctl", words(enum), want
    yield ("attributes", attributes("shift"),
           members("shift_attr", "SHIFT_A_")[1:])
    yield ("attributes of a NIC", attributes("nic"),
           members("shift_nic_attr", "SHIFT_NIC_A_")[1:])
    yield ("commands", [o["name"] for o in SPEC["operations"]["list"]],
           members("shift_cmd", "SHIFT_CMD_")[1:])
    yield ("attributes nobody uses",
           sorted(set(attributes("shift")) - listed()),
           ["pad", "stat-name", "stat-value"])


def main():
    """KTAP."""
    tests = list(pairs())
    failed = 0
    print(f"KTAP version 1\n1..{len(tests)}")
    for number, (name, have, want) in enumerate(tests, 1):
        if have != want:
            print(f"# only in one: {sorted(set(have) ^ set(want))}")
            failed += 1
        print(f"{'ok' if have == want else 'not ok'} {number} {name}")
    return bool(failed)


sys.exit(main())
