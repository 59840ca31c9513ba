#!/usr/bin/env python3
"""Writes the configuration of a HAProxy in front of several gpurestd, from a list of nodes, to standard output.

The list has a line for each node: its name (gpurestd --node), its address, and, if clients may go around the router for long transfers, what they
reach it at (gpurestd --endpoint):

    n1  10.0.0.11:8080
    n2  10.0.0.12:8080  https://n2.example.org:8080

Empty lines, and what follows a "#", count for nothing. haproxy -c -f FILE checks what comes out."""
import argparse
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
NAME = re.compile("[a-z0-9][a-z0-9-]{0,47}")
ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")
ENDPOINT = re.compile(r"https?://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")
NODES_BYTES_MAX = 16 * 1024  # the list in a header field, which nodes take up to 24 KiB of


def nodes_of(path):
    """[(name, address, endpoint or "")]."""
    found = []
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        name, address, endpoint = (words + ["", ""])[:3]
        if len(words) > 3 or not NAME.fullmatch(name) or not ADDRESS.fullmatch(address) or (endpoint and not ENDPOINT.fullmatch(endpoint)):
            raise SystemExit(f"{path}:{number}: a line is a name of a-z, 0-9 and '-', HOST:PORT and, perhaps, http(s)://HOST:PORT")
        if name in [one[0] for one in found]:
            raise SystemExit(f"{path}:{number}: {name} stands in the list twice")
        found.append((name, address, endpoint))
    if not found:
        raise SystemExit(f"{path}: no nodes")
    return found


def problem(match):
    """A problem document as a log-format string. What a client sent is escaped."""
    status, code, retryable, detail = match.group(1).split(",", 3)
    document = {"type": "/problems/" + code, "title": detail, "status": int(status), "detail": detail, "instance": "@path", "code": code,
                "request_id": "@id", "retryable": retryable == "true", "retry_after_ms": 2000 if status == "503" else None, "errors": [], "cuda": None,
                "compile": None, "limit": None}
    text = json.dumps(document, separators=(",", ":")).replace("@path", "%[var(txn.path),json(utf8s)]").replace("@id", "%[var(txn.request_id),json(utf8s)]")
    return "'" + text.replace("'", "'\\''") + "'"


def server_options(arguments, name):
    words = [] if arguments.no_proxy_protocol else ["send-proxy-v2"]
    if arguments.node_ca:
        words += ["ssl", "verify", "required", "ca-file", arguments.node_ca, "sni", f"str({arguments.node_name or name})", "verifyhost", arguments.node_name or name]
    return " ".join(words)


def configuration(arguments, nodes):
    def servers(more):
        return "\n".join(f"  server {name} {address} {server_options(arguments, name)} {more(name)}".rstrip() for name, address, _ in nodes)

    bind = arguments.bind + (f" ssl crt {arguments.cert} alpn http/1.1" if arguments.cert else "")
    told = ", ".join(f"{name} %[srv_is_up(any/{name}),iif(up,down)]" + (f" {endpoint}" if endpoint else "") for name, _, endpoint in nodes)
    if len(told) > NODES_BYTES_MAX:
        raise SystemExit(f"{len(nodes)} nodes are too many for one router")
    values = {"LOCAL": arguments.peer[0].partition("=")[0], "SOCKET": arguments.socket, "BIND": bind, "LIST": told,
              "NAMES": " ".join(name for name, _, _ in nodes), "PLAIN": "pool-purge-delay 20s",
              "PEERS": "\n".join("  peer " + " ".join(one.partition("=")[::2]) for one in arguments.peer) + "\n",
              "CHECK": "check inter 1s fastinter 200ms downinter 1s fall 2 rise 2 observe layer4 error-limit 5 on-error fastinter pool-purge-delay 20s",
              "SERVERS_CHECKED": servers(lambda name: ""), "SERVERS_TRACKED": servers(lambda name: f"track any/{name}")}
    text = re.sub(r"@PROBLEM\(([^@]*)\)@", problem, (HERE / "haproxy.cfg.in").read_text())
    return re.sub(r"@([A-Z_]+)@", lambda match: values[match.group(1)], text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", help="file with the list of nodes")
    parser.add_argument("--bind", default="127.0.0.1:8080", help="address to serve at (default: %(default)s)")
    parser.add_argument("--cert", help="file of the router's certificate and key, PEM; without it, it serves in the clear")
    parser.add_argument("--node-ca", help="file of the authorities of the nodes' certificates; without it, nodes are asked in the clear")
    parser.add_argument("--node-name", help="the name in all nodes' certificates (default: each node's own)")
    parser.add_argument("--no-proxy-protocol", action="store_true", help="nodes do not trust the router to name its clients (gpurestd --trusted-proxy)")
    parser.add_argument("--peer", action="append", metavar="NAME=HOST:PORT",
                        help="where the routers tell each other what they remember, this one first (default: router=127.0.0.1:10000)")
    parser.add_argument("--socket", default="/run/haproxy/admin.sock", help="Unix socket of the runtime interface (default: %(default)s)")
    arguments = parser.parse_args()
    arguments.peer = arguments.peer or ["router=127.0.0.1:10000"]
    sys.stdout.write(configuration(arguments, nodes_of(arguments.nodes)))


if __name__ == "__main__":
    main()
