#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""An endpoint that answers like etcd, now and then, and otherwise nonsense."""

import base64
import http.server
import json
import random
import sys

RANDOM = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)


def text(size):
    """Base64 of random bytes below the prefix, or no base64 at all."""
    raw = b"/shift/v1/nics/" + RANDOM.choice([b"", b"a/"]) + RANDOM.randbytes(RANDOM.randrange(size))
    return RANDOM.choice([base64.b64encode(raw).decode(), "!" * 7, "", "A"])


def value():
    """Any JSON value."""
    return RANDOM.choice([None, True, -1, 2 ** 70, 1.5e300, "", "9" * 40, [],
                          {}, [[]], {"a": {}}, text(40), "\0\x1b[2J"])


def kv():
    """A key and value, each part of it good or not."""
    made = {"key": text(60), "value": text(9000), "create_revision": "5",
            "mod_revision": "6", "lease": "7"}
    for key in list(made):
        if RANDOM.random() < 0.3:
            made[key] = value()
    return RANDOM.choice([made, value()]) if RANDOM.random() < 0.3 else made


def answer(path):
    """What etcd might say, with parts replaced."""
    kvs = [kv() for _ in range(RANDOM.randrange(40))]
    events = [RANDOM.choice([{"kv": k}, {"type": "DELETE", "kv": k}, value(),
                             {"kv": value()}]) for k in kvs]
    good = {
        "lease/grant": {"ID": "7587", "TTL": "5"},
        "lease/keepalive": {"result": {"ID": "7587", "TTL": "5"}},
        "lease/revoke": {},
        "kv/put": {"header": {"revision": "9"}},
        "kv/deleterange": {},
        "kv/range": {"header": {"revision": "9"}, "kvs": kvs,
                     "more": RANDOM.random() < 0.3},
        "watch": {"result": {"created": True, "events": events}},
    }.get(path, {})
    if RANDOM.random() < 0.15:
        return value()
    for key in list(good):
        if RANDOM.random() < 0.1:
            good[key] = value()
    return good


class Handler(http.server.BaseHTTPRequestHandler):
    """One request."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):                              # pylint: disable=C0103
        """Any of them."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.removeprefix("/v3/")
        lines = RANDOM.randrange(1, 6) if path == "watch" else 1
        body = b"".join(json.dumps(answer(path)).encode() + b"\n"
                        for _ in range(lines))
        chance = RANDOM.random()
        if chance < 0.1:
            body = body[:RANDOM.randrange(len(body))]
        elif chance < 0.15:
            body = RANDOM.randbytes(3000)
        elif chance < 0.17:
            body = b"[" * 100000
        status = 200 if RANDOM.random() < 0.9 else RANDOM.choice(
            [400, 401, 503, 204, 302])
        self.send_response(status)
        self.send_header("Location", "file:///etc/passwd")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 204:
            self.wfile.write(body)

    def log_message(self, *_args):                  # pylint: disable=W0221
        """Nothing."""


http.server.ThreadingHTTPServer.request_queue_size = 32
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])),
                                Handler).serve_forever()
