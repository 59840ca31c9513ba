"""The routers in front of a fleet, whose configurations deploy/router makes: started, told of a new list of nodes, asked what they know, ended."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGURE = ROOT / "deploy" / "router" / "configure.py"


class Router:
    """`folder`: its configuration, log, and socket. `options`: of configure.py. reload() takes the list of nodes as it is then."""
    program = None
    tells_states = True  # /v1/nodes says which nodes are up

    def __init__(self, folder, options):
        self.folder, self.options = pathlib.Path(folder), [str(one) for one in options]
        self.socket = self.folder / "admin.sock"
        self.configure()
        self.log = open(self.folder / "router.log", "wb")
        self.process = subprocess.Popen(self.command(), stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)

    def made(self, *options):
        """What configure.py prints."""
        return subprocess.run([CONFIGURE, self.folder / "nodes", "--router", self.program, "--socket", self.socket, *self.options, *options], check=True,
                              capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}).stdout

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Haproxy(Router):
    program = "haproxy"

    def configure(self):
        (self.folder / "haproxy.cfg").write_text(self.made())
        subprocess.run(["haproxy", "-c", "-f", self.folder / "haproxy.cfg"], check=True, capture_output=True)

    def command(self):
        return ["haproxy", "-W", "-f", self.folder / "haproxy.cfg"]

    def reload(self):
        """By its own signal, as its service unit sends it."""
        self.configure()
        self.process.send_signal(signal.SIGUSR2)

    def states(self, client):
        answer = client.get("/v1/nodes")
        return {one["name"]: one["state"] for one in answer.json()["items"]} if answer.status == 200 else {}

    def remembered(self):
        """How many names and keys."""
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(60)
            asked.connect(str(self.socket))
            asked.sendall(b"show table remembered\n")
            return len([line for line in asked.makefile() if "key=" in line])


class OverSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Envoy(Router):
    program = "envoy"
    tells_states = False

    def configure(self):
        self.made("--output", self.folder / "envoy")

    def command(self):
        """Several may run on this machine: without what a new one of them takes over of an old one."""
        return ["envoy", "-c", self.folder / "envoy" / "envoy.json", "--disable-hot-restart", "--log-level", "warning", "--concurrency", "2"]

    def reload(self):
        """It watches its files."""
        self.configure()

    def states(self, client):
        asked = OverSocket(self.socket)
        try:
            asked.request("GET", "/clusters?format=json")
            found = json.loads(asked.getresponse().read())["cluster_statuses"]
        finally:
            asked.close()
        ports = {int(line.split()[1].rpartition(":")[2]): line.split()[0] for line in (self.folder / "nodes").read_text().splitlines()}
        hosts = [host for one in found if one["name"] == "any" for host in one.get("host_statuses", [])]
        return {ports[host["address"]["socket_address"]["port_value"]]: "down" if host["health_status"].get("failed_active_health_check") else "up"
                for host in hosts if host["address"]["socket_address"]["port_value"] in ports}


ROUTERS = {one.program: one for one in (Haproxy, Envoy)}


def missing(program):
    """What a test with this router needs and this machine has not; None: nothing."""
    return next((tool for tool in (program, "openssl") if not shutil.which(tool)), None)
