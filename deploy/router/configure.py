#!/usr/bin/env python3
"""Writes the configuration of a router in front of several gpurestd, from a list of nodes.

The list has a line for each node: its name (gpurestd --node), its address, and, if clients may go around the router for long transfers, what they
reach it at (gpurestd --endpoint):

    n1  10.0.0.11:8080
    n2  10.0.0.12:8080  https://n2.example.org:8080

Empty lines, and what follows a "#", count for nothing. The list may be a folder: then its files' lines are the list, in the order of their names.

HAProxy's configuration goes to standard output or a file (--output); haproxy -c -f FILE checks it. Envoy's is a folder of files (--output):
envoy -c FOLDER/envoy.json begins with them, and takes up the others whenever they are written anew. --watch stays and does it again whenever the list
changes; a list with an error, or without nodes, changes nothing."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import to_envoy
import to_haproxy

NAME = re.compile("[a-z0-9][a-z0-9-]{0,47}")
ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")
WATCH_S = 1
ENDPOINT = re.compile(r"https?://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")


def lines_of(path):
    """(where, text) of every line."""
    path = pathlib.Path(path)
    files = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith(".")) if path.is_dir() else [path]
    for file in files:
        for number, text in enumerate(file.read_text().splitlines(), 1):
            yield f"{file}:{number}", text


def nodes_of(path):
    """[(name, address, endpoint or "")]."""
    found = []
    for where, line in lines_of(path):
        words = line.partition("#")[0].split()
        if not words:
            continue
        name, address, endpoint = (words + ["", ""])[:3]
        if len(words) > 3 or not NAME.fullmatch(name) or not ADDRESS.fullmatch(address) or (endpoint and not ENDPOINT.fullmatch(endpoint)):
            raise SystemExit(f"{where}: a line is a name of a-z, 0-9 and '-', HOST:PORT and, perhaps, http(s)://HOST:PORT")
        if name in [one[0] for one in found]:
            raise SystemExit(f"{where}: {name} stands in the list twice")
        found.append((name, address, endpoint))
    if not found:
        raise SystemExit(f"{path}: no nodes")
    return found


def files_of(arguments):
    """{path: text} of the router's configuration, in the order in which they are to be written. Without --output, of HAProxy: {None: text}."""
    nodes = nodes_of(arguments.nodes)
    if arguments.router == "haproxy":
        return {arguments.output and pathlib.Path(arguments.output): to_haproxy.configuration(arguments, nodes)}
    return {pathlib.Path(arguments.output) / name: json.dumps(document, indent=1) + "\n" for name, document in to_envoy.configuration(arguments, nodes).items()}


def write(path, text):
    """By one rename, so that a router that watches the file sees it whole. Whether it was another before."""
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    os.replace(fresh, path)
    return True


def write_all(arguments, owed=False):
    """Whether the command has failed, as a reload does before the router has started: it is owed then."""
    changed = [write(path, text) for path, text in files_of(arguments).items()]
    if not arguments.then or not (any(changed) or owed):
        return False
    return subprocess.run(arguments.then, shell=True, check=False).returncode != 0


def watch(arguments):
    told, owed = None, False
    while True:
        try:
            owed = write_all(arguments, owed)
            told = None
        except (SystemExit, OSError) as error:
            if str(error) != told:
                told = str(error)
                print(f"{told}; the configuration stays as it is", file=sys.stderr, flush=True)
        time.sleep(WATCH_S)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", help="file, or folder of files, with the list of nodes")
    parser.add_argument("--router", choices=("haproxy", "envoy"), default="haproxy", help="whose configuration (default: %(default)s)")
    parser.add_argument("--output", metavar="PATH", help="the file that HAProxy's configuration goes to; the folder that Envoy's files go to")
    parser.add_argument("--installed-at", metavar="FOLDER", help="where Envoy finds these files, if they are brought to another place than PATH")
    parser.add_argument("--watch", action="store_true", help="stay, and write again whenever the list changes")
    parser.add_argument("--then", metavar="COMMAND", help="run it when a file has changed, as: systemctl reload haproxy; "
                        "with --watch again each second until it succeeds")
    parser.add_argument("--bind", default="127.0.0.1:8080", help="address to serve at (default: %(default)s)")
    parser.add_argument("--cert", help="file of the router's certificate and key, PEM; without it, it serves in the clear")
    parser.add_argument("--node-ca", help="file of the authorities of the nodes' certificates; without it, nodes are asked in the clear")
    parser.add_argument("--node-name", help="the name in all nodes' certificates (default: each node's own)")
    parser.add_argument("--no-proxy-protocol", action="store_true", help="nodes do not trust the router to name its clients (gpurestd --trusted-proxy)")
    parser.add_argument("--peer", action="append", metavar="NAME=HOST:PORT",
                        help="where HAProxy's routers tell each other what they remember, this one first (default: router=127.0.0.1:10000)")
    parser.add_argument("--socket", help="Unix socket of the router's own interface (default: /run/haproxy/admin.sock, /run/envoy/admin.sock)")
    arguments = parser.parse_args()
    arguments.peer = arguments.peer or ["router=127.0.0.1:10000"]
    arguments.socket = arguments.socket or f"/run/{arguments.router}/admin.sock"
    if not arguments.output and (arguments.router == "envoy" or arguments.watch or arguments.then):
        parser.error("--router envoy, --watch and --then need --output PATH")
    if arguments.watch:
        watch(arguments)
    elif arguments.output:
        sys.exit("the command of --then has failed" if write_all(arguments) else 0)
    else:
        sys.stdout.write(files_of(arguments)[None])


if __name__ == "__main__":
    main()
