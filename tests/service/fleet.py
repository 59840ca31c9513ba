"""Several services behind a router, whose configuration deploy/router makes: with TLS in front and behind, and tokens."""
import hashlib
import http.client
import json
import pathlib
import signal
import socket
import ssl
import subprocess

from fixtures import NO_LIBRARIES
from routers import ROUTERS
from service_under_test import Client, Service, until

SCOPES = ["read", "write", "compile", "launch"]


def free_ports(count):
    """Ports of which nobody listens now; the kernel gives them out to others last."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def make_certificate(folder, cert, key):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=fleet",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert], cwd=folder, check=True, capture_output=True)


class TlsClient(Client):
    """`source`: the address that it comes from."""

    def __init__(self, port, context, token, source="127.0.0.1"):
        super().__init__("127.0.0.1", port, {"Authorization": "Bearer " + token})
        self.context, self.source = context, source

    def connect(self):
        return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self.context, source_address=(self.source, 0))


class Fleet:
    """Nodes n1, n2, ... of callers "alice", "bob" and, with the scope admin, "root"."""

    def __init__(self, executable, folder, count, spare=1):
        self.executable, self.folder = executable, pathlib.Path(folder)
        self.names = [f"n{i + 1}" for i in range(count)]
        every = [f"n{i + 1}" for i in range(count + spare)]
        ports = free_ports(len(every) + 4)
        self.ports = dict(zip(every, ports))
        self.port, self.second_port, *peers = ports[-4:]
        self.peers = [f"r{i + 1}=127.0.0.1:{port}" for i, port in enumerate(peers)]
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
        make_certificate(self.folder, "cert.pem", "key.pem")
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
                                      "--state", str(self.folder / f"{name}-state"),
                                      "--tls-cert", str(self.folder / "cert.pem"), "--tls-key", str(self.folder / "key.pem"),
                                      "--endpoint", f"https://127.0.0.1:{self.ports[name]}", "--access-log", listen=f"127.0.0.1:{self.ports[name]}",
                                      variables=NO_LIBRARIES)

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

    def _write_nodes(self):
        (self.folder / "nodes").write_text("".join(f"{name} 127.0.0.1:{self.ports[name]} https://127.0.0.1:{self.ports[name]}\n" for name in self.names))

    def route(self, program="haproxy"):
        """Starts the router; returns when it knows all nodes to be up."""
        self._write_nodes()
        self.router = self._router(program, self.folder, self.port, self.peers)
        self.await_state({name: "up" for name in self.names})

    def _router(self, program, folder, port, peers):
        return ROUTERS[program](folder, ["--bind", f"127.0.0.1:{port}", "--cert", self.folder / "both.pem", "--node-ca", self.folder / "cert.pem",
                                         "--node-name", "localhost", "--peer", peers[0], "--peer", peers[1]])

    def second_router(self):
        """Beside the first, with a folder of its own; the caller stops it. With its client."""
        folder = self.folder / "second"
        folder.mkdir()
        (folder / "nodes").write_text((self.folder / "nodes").read_text())
        return self._router(self.router.program, folder, self.second_port, self.peers[::-1]), TlsClient(self.second_port, self.context, "alice-secret")

    def reload(self):
        """With the list of nodes as it is now."""
        self._write_nodes()
        self.router.reload()

    def states(self):
        """What the router knows of the nodes; {} while it does not answer."""
        client = self.client()
        try:
            return self.router.states(client)
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
            self.router.stop()
        for service in self.services.values():
            service.stop()

