"""What the benchmark driver starts and speaks to: a gpurestd of its own, nginx, a plain client with little cost of its own. Each server
is a context manager, ends with it, and keeps its files in a folder of its own."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

START_DEADLINE_S = 60


class Client:
    """One kept connection, HTTP/1.1 with Content-Length both ways. One thread."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.address = address
        self.socket = socket.create_connection((host, int(port)), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.left = b""

    def request(self, method, path, body=b"", kind="application/json"):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.address}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.socket.sendall(head.encode() + body)
        return self._answer()

    def must(self, *arguments, **more):
        status, body = self.request(*arguments, **more)
        if not 200 <= status < 300:
            raise RuntimeError(f"{arguments[:2]}: {status} {body[:500]!r}")
        return body

    def _answer(self):
        data = self.left
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, data = data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        length = int(fields.get("content-length", 0))
        while len(data) < length:
            data += self._more()
        self.left = data[length:]
        return int(lines[0].split(" ")[1]), data[:length]

    def _more(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise ConnectionError("the server closed the connection")
        return piece

    def close(self):
        self.socket.close()


def end(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for(condition, process, what):
    deadline = time.monotonic() + START_DEADLINE_S
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{what} does not start")
        time.sleep(0.02)


@contextlib.contextmanager
def gpurestd(executable, backends, *options):
    """(address, process id) of the front-end."""
    with tempfile.TemporaryDirectory() as folder:
        ports = pathlib.Path(folder, "port")
        command = [executable, "--listen", "127.0.0.1:0", "--port-file", str(ports), "--backends", backends, "--cache",
                   str(pathlib.Path(folder, "cache")), "--drain-timeout", "1", "--log-level", "error", *options]
        with open(pathlib.Path(folder, "log"), "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_for(lambda: ports.exists() and ports.read_text().strip(), process, "gpurestd")
            yield ports.read_text().split()[0], process.pid
        finally:
            end(process)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


NGINX = """{user}
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log crit;
events {{ worker_connections 1024; }}
http {{
    access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; tcp_nodelay on; sendfile on; open_file_cache max=100;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port}; root {folder}/www; }}
}}
"""


@contextlib.contextmanager
def nginx(body):
    """(address, process id) of one nginx process that serves /file with `body`; None when nginx is not installed."""
    executable = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not executable:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        pathlib.Path(folder, "www").mkdir()
        pathlib.Path(folder, "www", "file").write_bytes(body)
        user = "user root;" if os.geteuid() == 0 else ""
        pathlib.Path(folder, "nginx.conf").write_text(NGINX.format(folder=folder, port=port, user=user))
        process = subprocess.Popen([executable, "-c", f"{folder}/nginx.conf", "-p", folder], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: reachable(port), process, "nginx")
            yield f"127.0.0.1:{port}", process.pid
        finally:
            end(process)


def reachable(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def cpu_seconds(pid):
    """User and system time of that process alone so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_kib(pid):
    """{"VmRSS", "RssAnon", "RssFile", "RssShmem"} in KiB."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: int(value.split()[0]) for name, value in (line.split(":", 1) for line in lines) if name.startswith(("VmRSS", "Rss"))}
