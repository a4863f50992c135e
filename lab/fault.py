# SPDX-License-Identifier: GPL-2.0
"""Silent loss of chosen RoCE v2 packets, by nftables rules inside a node.

Incoming packets are dropped in the ingress hook of the rail, before IP. On the
way out a drop would not be silent: the sender is told and rxe sends again. So
the egress hook forwards them to a dummy device, which swallows them.

Counting is exact: numgen numbers the packets that match, from 0, and a rule
acts on the numbers from skip to skip + count - 1.
"""

import fnmatch
import json
import re

from channel import call
from common import UsageError

PORT = 4791
NUMBERS = 2147483647
SINK = "lab-null"

RC = """
    SEND_FIRST SEND_MIDDLE SEND_LAST SEND_LAST_IMM SEND_ONLY SEND_ONLY_IMM
    WRITE_FIRST WRITE_MIDDLE WRITE_LAST WRITE_LAST_IMM WRITE_ONLY
    WRITE_ONLY_IMM READ_REQ READ_RESP_FIRST READ_RESP_MIDDLE READ_RESP_LAST
    READ_RESP_ONLY ACK ATOMIC_ACK CMP_SWAP FETCH_ADD - SEND_LAST_INV
    SEND_ONLY_INV
""".split()
UC = RC[:12]

OPCODES = {f"RC_{name}": code for code, name in enumerate(RC) if name != "-"}
OPCODES |= {f"UC_{name}": 0x20 + code for code, name in enumerate(UC)}
OPCODES |= {"UD_SEND_ONLY": 0x64, "UD_SEND_ONLY_IMM": 0x65, "CNP": 0x81}


def opcodes(pattern):
    """Opcode values of a name, a pattern with * or a number; None for all."""
    if pattern.lower() == "all":
        return None
    if re.fullmatch(r"0x[0-9a-fA-F]{1,2}|\d{1,3}", pattern):
        value = int(pattern, 0)
        if value > 255:
            raise UsageError(f"opcode {pattern} does not fit a byte")
        return [value]
    found = [code for name, code in OPCODES.items()
             if fnmatch.fnmatchcase(name, pattern.upper())]
    if not found:
        raise UsageError(f"no opcode '{pattern}': use all, a number or one of "
                         + " ".join(OPCODES))
    return found


def matches(pattern, qpn):
    """The nft expressions that recognize a packet by its BTH."""
    values = opcodes(pattern)
    text = f"udp dport {PORT}"
    if values is not None:
        text += f" @th,64,8 {{ {', '.join(map(str, values))} }}"
    if qpn is not None:
        text += f" @th,104,24 {qpn}"
    return text


def numbers(skip, count):
    """The nft expressions that choose packets by their number."""
    if count:
        return f"numgen inc mod {NUMBERS} {skip}-{skip + count - 1}"
    if skip:
        return f"numgen inc mod {NUMBERS} >= {skip}"
    return ""


def table(rail):
    """Each rail has a table, so that clearing one leaves the others alone."""
    return f"lab_rail{rail}"


def drop(lab, node, rail, pattern, count, skip, direction, qpn):
    """Add a rule; from its arrival on packets count."""
    comment = f"{pattern.upper() if pattern != 'all' else 'all'}" \
              f" skip {skip} count {count or 'all'}"
    if qpn is not None:
        comment += f" qpn {qpn}"
    hook, action = "ingress", "drop"
    if direction == "out":
        hook, action = "egress", f"fwd to {SINK}"
        call(lab, node, ["sh", "-c", f"ip link show {SINK} >/dev/null 2>&1 || "
                         f"{{ ip link add {SINK} type dummy && "
                         f"ip link set {SINK} up; }}"])
    rules = (
        f"add table netdev {table(rail)}\n"
        f"add chain netdev {table(rail)} {direction} {{ type filter hook "
        f"{hook} device rail{rail} priority 0; policy accept; }}\n"
        f"add rule netdev {table(rail)} {direction} {matches(pattern, qpn)} "
        f"counter {numbers(skip, count)} counter {action} "
        f"comment \"{comment}\"\n")
    call(lab, node, ["nft", "-f", "-"], rules.encode())


def clear(lab, node, rail):
    """Remove all rules of a rail."""
    call(lab, node, ["sh", "-c", f"nft delete table netdev {table(rail)} "
                     "2>/dev/null || true"])


def show(lab, node, rail):
    """All rules of a rail in the order they are tried, with their counters."""
    status, text = call(lab, node, ["nft", "-j", "list", "table", "netdev",
                                    table(rail)], check=False)
    if status:
        return []
    found = []
    for item in json.loads(text)["nftables"]:
        if "rule" not in item:
            continue
        rule = item["rule"]
        counters = [part["counter"]["packets"] for part in rule["expr"]
                    if "counter" in part]
        found.append({"dir": rule["chain"], "rule": rule["comment"],
                      "matched": counters[0], "dropped": counters[1]})
    return found
