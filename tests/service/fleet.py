"""Several services behind a HAProxy, whose configuration deploy/haproxy makes: with TLS in front and behind, and tokens."""
import hashlib
import http.client
import json
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess

from service_under_test import Client, Service, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGURE = ROOT / "deploy" / "haproxy" / "configure.py"
SCOPES = ["read", "write", "compile", "launch"]


def free_ports(count):
    """Ports of which nobody listens now; the kernel gives them out to others last."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class TlsClient(Client):
    def __init__(self, port, context, token):
        super().__init__("127.0.0.1", port, {"Authorization": "Bearer " + token})
        self.context = context

    def connect(self):
        return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self.context)


class Fleet:
    """Nodes n1, n2, ... of callers "alice", "bob" and, with the scope admin, "root"."""

    def __init__(self, executable, folder, count, spare=1):
        self.executable, self.folder = executable, pathlib.Path(folder)
        self.names = [f"n{i + 1}" for i in range(count)]
        every = [f"n{i + 1}" for i in range(count + spare)]
        ports = free_ports(len(every) + 2)
        self.ports = dict(zip(every, ports))
        self.port, self.peer_port = ports[-2:]
        self.services, self.generations = {}, dict.fromkeys(every, 0)
        self._make_secrets()
        self.context = ssl.create_default_context(cafile=str(self.folder / "cert.pem"))
        self.router = None
        try:
            for name in self.names:
                self.start(name)
        except BaseException:
            self.kill_all()
            raise

    def _make_secrets(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=fleet",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
                       cwd=self.folder, check=True, capture_output=True)
        (self.folder / "both.pem").write_text((self.folder / "cert.pem").read_text() + (self.folder / "key.pem").read_text())
        callers = {"alice": SCOPES, "bob": SCOPES, "root": SCOPES + ["admin", "metrics"]}
        rows = [{"name": name, "sha256": hashlib.sha256((name + "-secret").encode()).hexdigest(), "scopes": scopes, "sessions_max": 64}
                for name, scopes in callers.items()]
        (self.folder / "tokens.json").write_text(json.dumps({"tokens": rows}))
        (self.folder / "tokens.json").chmod(0o600)

    # ---- nodes ----

    def start(self, name):
        """A node, or a killed one anew at the same address."""
        self.generations[name] += 1
        folder = self.folder / f"{name}-{self.generations[name]}"
        folder.mkdir()
        self.services[name] = Service(self.executable, folder, "--node", name, "--tokens", str(self.folder / "tokens.json"), "--trusted-proxy", "127.0.0.1",
                                      "--tls-cert", str(self.folder / "cert.pem"), "--tls-key", str(self.folder / "key.pem"),
                                      "--endpoint", f"https://127.0.0.1:{self.ports[name]}", "--access-log", listen=f"127.0.0.1:{self.ports[name]}")

    def kill(self, name):
        """As when the power goes."""
        process = self.services[name].process
        process.send_signal(signal.SIGKILL)
        process.wait()

    def node(self, name, caller="alice"):
        """A client of the node itself."""
        return TlsClient(self.ports[name], self.context, caller + "-secret")

    # ---- the router ----

    def client(self, caller="alice"):
        return TlsClient(self.port, self.context, caller + "-secret")

    def _configure(self):
        (self.folder / "nodes").write_text("".join(f"{name} 127.0.0.1:{self.ports[name]} https://127.0.0.1:{self.ports[name]}\n" for name in self.names))
        made = subprocess.run([CONFIGURE, self.folder / "nodes", "--bind", f"127.0.0.1:{self.port}", "--cert", self.folder / "both.pem", "--node-ca",
                               self.folder / "cert.pem", "--node-name", "localhost", "--peer", f"r1=127.0.0.1:{self.peer_port}",
                               "--socket", self.folder / "admin.sock"], check=True, capture_output=True, text=True)
        (self.folder / "haproxy.cfg").write_text(made.stdout)
        subprocess.run(["haproxy", "-c", "-f", self.folder / "haproxy.cfg"], check=True, capture_output=True)

    def route(self):
        """Starts the router; returns when it knows all nodes to be up."""
        self._configure()
        self.log = open(self.folder / "haproxy.log", "wb")
        self.router = subprocess.Popen(["haproxy", "-W", "-f", self.folder / "haproxy.cfg"], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        self.await_state({name: "up" for name in self.names})

    def reload(self):
        """With the list of nodes as it is now. HAProxy's own signal, as its service unit sends it."""
        self._configure()
        self.router.send_signal(signal.SIGUSR2)

    def states(self):
        """What the router says of the nodes; {} while it does not."""
        client = self.client()
        try:
            answer = client.get("/v1/nodes")
            return {one["name"]: one["state"] for one in answer.json()["items"]} if answer.status == 200 else {}
        except OSError:
            return {}
        finally:
            client.close()

    def await_state(self, wanted):
        until(lambda: wanted.items() <= self.states().items(), lambda: f"the router says {self.states()}, not {wanted}")

    def kill_all(self):
        for service in self.services.values():
            service.process.kill()
            service.process.wait()

    def stop(self):
        """All of it, in order; what went wrong with one is told when all have ended."""
        try:
            self._stop()
        finally:
            self.kill_all()

    def _stop(self):
        if self.router:
            self.router.send_signal(signal.SIGTERM)
            try:
                self.router.wait(30)
            except subprocess.TimeoutExpired:
                self.router.kill()
                self.router.wait()
            self.log.close()
        for service in self.services.values():
            service.stop()


def missing():
    """What the fleet's tests need and this machine has not; None: nothing."""
    return next((tool for tool in ("haproxy", "openssl") if not shutil.which(tool)), None)
