"""HAProxy's configuration: haproxy.cfg.in with the nodes put in."""
import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
NODES_BYTES_MAX = 16 * 1024  # the list in a header field, which nodes take up to 24 KiB of


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
