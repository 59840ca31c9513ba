"""Starts a gpurestd, speaks HTTP to it with the standard library alone, and checks how it ended."""
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

SANITIZER_WORDS = ("AddressSanitizer", "LeakSanitizer", "UndefinedBehaviorSanitizer", "ThreadSanitizer", "runtime error:")
START_DEADLINE_S = 180  # on a busy machine
STAGING_MIB = 16  # The minimum: each session's worker clears it at the start. Larger bodies pass in pieces, so that more waits are tested.
STOP_DEADLINE_S = 60
KEPT_VARIABLES = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS", "GPUREST_NVRTC", "GPUREST_CUDA_INCLUDE", "GPUREST_LIBCUDA",
                  "CUDA_VISIBLE_DEVICES")


def until(condition, what="it does not come to that", seconds=120):
    """The first value of it that counts as true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.02)
    return found


def in_threads(work, arguments):
    """work(argument) for each of them, all at once."""
    threads = [threading.Thread(target=work, args=(one,)) for one in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The code of a problem document, whose form is checked."""
        assert self.headers["Content-Type"] == "application/problem+json", (self.status, self.headers["Content-Type"], self.body[:200])
        problem = self.json()
        assert problem["type"] == "/problems/" + problem["code"]
        assert problem["status"] == self.status
        # A connection that is refused before it asks has no request to name.
        assert problem["request_id"] == self.headers.get("X-Request-Id", "")
        return problem["code"]

    def expect(self, status, code=None):
        """This answer, which must have that status, and be the problem of that code."""
        assert self.status == status, self
        assert code is None or self.code == code, self
        return self

    def __repr__(self):
        return f"<{self.status} {self.body[:400]!r}>"


class Client:
    """One keep-alive connection, reopened when the server has closed it."""

    def __init__(self, host, port, headers=None, timeout=60):
        self.host, self.port, self.headers, self.timeout = host, port, dict(headers or {}), timeout
        self.connection = None

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)

    def request(self, method, path, body=None, headers=None, **more):
        sent = {**self.headers, **(headers or {})}
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        for attempt in (0, 1):
            fresh = self.connection is None
            if fresh:
                self.connection = self.connect()
            try:
                try:
                    self.connection.request(method, path, body, sent, **more)
                except (BrokenPipeError, ConnectionResetError):
                    if not fresh:
                        raise
                    # The body was refused before all of it was sent; the answer has arrived nevertheless.
                response = self.connection.getresponse()
                answer = Answer(response, response.read())
                if response.will_close:
                    self.close()
                return answer
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.close()
                if fresh or attempt:
                    raise
        raise AssertionError("unreachable")

    def get(self, path, **headers):
        return self.request("GET", path, headers=_dashed(headers))

    def head(self, path, **headers):
        return self.request("HEAD", path, headers=_dashed(headers))

    def delete(self, path, **headers):
        return self.request("DELETE", path, headers=_dashed(headers))

    def post(self, path, body=None, **headers):
        return self.request("POST", path, body, _dashed(headers))

    def put(self, path, body=None, **headers):
        return self.request("PUT", path, body, _dashed(headers))

    def patch(self, path, body=None, **headers):
        return self.request("PATCH", path, body, _dashed(headers))

    def put_octets(self, path, body, **headers):
        return self.put(path, body, Content_Type="application/octet-stream", **headers)

    def post_octets(self, path, body, **headers):
        return self.post(path, body, Content_Type="application/octet-stream", **headers)

    def put_cuda(self, path, source, **headers):
        return self.put(path, source.encode(), Content_Type="text/x-cuda", **headers)

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None


def _dashed(headers):
    return {name.replace("_", "-"): value for name, value in headers.items()}


def environment(folder):
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), **kept}


def children_of(pid):
    """Process ids; threads and processes may end during the search."""
    found = set()
    try:
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return found
    for task in tasks:
        try:
            found |= {int(child) for child in (task / "children").read_text().split()}
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def role_of(pid):
    """The argument that names the executable's role; b"" if it has none yet, or is gone."""
    try:
        return (pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") + [b""])[1]
    except (FileNotFoundError, ProcessLookupError):
        return b""


class Service:
    """`arguments` are added to those of every test service; with `listen` None they include the addresses; `variables` extend its
    environment. Most tests leave sessions behind, so only tests of draining let the end wait for sessions, and say how long. A warm
    compiler has loaded its library and compiled something: `warm_compiler` is for services that many tests share and stress."""

    def __init__(self, executable, folder, *arguments, listen="127.0.0.1:0", variables=None, warm_compiler=False):
        self.folder = pathlib.Path(folder)
        self.port_file = self.folder / "ports"
        self.stderr_path = self.folder / "stderr"
        command = [executable, "--port-file", str(self.port_file), "--backends", os.environ.get("GPUREST_TEST_BACKENDS", "cpu"),
                   "--drain-timeout", "0", "--staging-mib", str(STAGING_MIB)]
        if listen:
            command += ["--listen", listen]
        if not warm_compiler:
            command.append("--no-warm-compiler")
        with open(self.stderr_path, "wb") as stderr, open(self.folder / "stdout", "wb") as stdout:
            self.process = subprocess.Popen(command + list(arguments), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                                            env={**environment(self.folder), **(variables or {})}, cwd=self.folder)
        try:
            self._wait_until_serving()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _wait_until_serving(self):
        deadline = time.monotonic() + START_DEADLINE_S
        while not self.port_file.exists():
            assert self.process.poll() is None, f"ended at once: {self.stderr()}"
            assert time.monotonic() < deadline, f"does not serve: {self.stderr()}"
            time.sleep(0.01)
        self.addresses = self.port_file.read_text().split()
        tcp = [address for address in self.addresses if not address.startswith("unix:")]
        self.host, self.port = "127.0.0.1", int(tcp[0].rsplit(":", 1)[1]) if tcp else None

    def client(self, **headers):
        return Client(self.host, self.port, _dashed(headers))

    def client_in(self, session):
        """A client, which has made that session."""
        one = self.client()
        assert one.put("/v1/sessions/" + session).status == 201
        return one

    def raw(self, data, timeout=20):
        """Sends `data` and reads until the server closes; returns (bytes, closed)."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as s:
            s.sendall(data)
            got = b""
            try:
                while piece := s.recv(65536):
                    got += piece
                return got, True
            except ConnectionResetError:
                return got, True
            except TimeoutError:
                return got, False

    def stderr(self):
        return self.stderr_path.read_text(errors="replace")

    def logged(self, text, seconds=60):
        """Waits until standard error contains the text, and returns it: lines are written a little after their event."""
        deadline = time.monotonic() + seconds
        while text not in (told := self.stderr()):
            assert time.monotonic() < deadline, f"{text!r} is not logged: {told[-4000:]}"
            time.sleep(0.01)
        return told

    def processes(self):
        """Process ids of all its children."""
        return children_of(self.process.pid)

    def children(self):
        """Its device workers; compile workers may come and go at any time."""
        return {pid for pid in self.processes() if role_of(pid) == b"--role=worker"}

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self):
        """The exit code; kills the service when it does not end by itself."""
        try:
            return self.process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def stop(self):
        """Stops it in order; fails on a crash or a sanitizer's report."""
        if self.process.poll() is None:
            self.terminate()
        code = self.wait()
        self.check_stderr()
        assert code == 0, f"exit code {code}: {self.stderr()[-4000:]}"

    def check_stderr(self):
        text = self.stderr()
        assert not any(word in text for word in SANITIZER_WORDS), text[-8000:]


def is_sanitized(executable):
    """Built with a sanitizer, whose library reports crashes itself and needs system calls that are on no list."""
    content = pathlib.Path(executable).read_bytes()
    return b"__asan_init" in content or b"__tsan_init" in content
