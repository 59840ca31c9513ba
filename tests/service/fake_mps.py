"""Programs that stand for NVIDIA's MPS control daemon and server. The daemon notes how it was started; a file beside it steers it.

Its clients are fake drivers (tests/support/fake_mps.c). What a client tells of a fault, and the end of one whose kernel runs, every other client
hears as a fault of its own, as of a real server."""
import sys

CONTROL = '''#!{python}
import json, os, select, socket, subprocess, sys

here = os.path.dirname(os.path.abspath(__file__))
note = {{"arguments": sys.argv[1:], "pid": os.getpid(), "parent": os.getppid(), "uid": os.getuid(),
        "environment": dict(os.environ), "mode": oct(os.stat(os.environ["CUDA_MPS_PIPE_DIRECTORY"]).st_mode & 0o777)}}
with open(here + "/starts", "a") as starts:
    starts.write(json.dumps(note) + "\\n")


def words():
    try:
        return open(here + "/behave").read().split()
    except FileNotFoundError:
        return []


if "exits" in words():
    sys.exit(7)
if "deaf" in words():
    select.select([], [], [])
listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listening.bind(os.environ["CUDA_MPS_PIPE_DIRECTORY"] + "/control")
listening.listen(64)
open(os.environ["CUDA_MPS_LOG_DIRECTORY"] + "/control.log", "w").close()
clients, busy, server = [], set(), None


def tell(but, number):
    for client in clients:
        if client is not but:
            client.send(str(number).encode())


def welcome(client):
    global server
    if server is None or server.poll() is not None:
        server = subprocess.Popen([here + "/nvidia-cuda-mps-server"])
    most = [int(word[5:]) for word in words() if word.startswith("full=")]
    if most and len(clients) >= most[0]:
        client.send(b"808")
        return
    clients.append(client)
    client.send(b"0")


def leave(client):
    if client in clients:
        clients.remove(client)
    if client in busy:
        busy.remove(client)
        tell(client, 719)
    known.remove(client)
    client.close()


known = []
while True:
    readable, _, _ = select.select([listening, *known], [], [], 0.05)
    if server is not None and server.poll() is not None:
        server = None
        for client in list(known):
            busy.discard(client)
            leave(client)
        continue
    for one in readable:
        if one is listening:
            known.append(listening.accept()[0])
            continue
        try:
            message = one.recv(64).decode()
        except OSError:
            message = ""
        if not message:
            leave(one)
        elif message == "hello":
            welcome(one)
        elif message == "busy":
            busy.add(one)
        elif message.startswith("fault "):
            busy.discard(one)
            tell(one, message[6:])
'''

SERVER = """#!{python}
import signal
signal.pause()
"""


class FakeMps:
    """The folder of the two programs, for --mps."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for name, text in (("nvidia-cuda-mps-control", CONTROL), ("nvidia-cuda-mps-server", SERVER)):
            (folder / name).write_text(text.format(python=sys.executable))
            (folder / name).chmod(0o755)

    def behave(self, words):
        """"exits", "deaf", "full=N" clients; "" as it should. Of daemons that start from now on, but for full."""
        (self.folder / "new").write_text(words)
        (self.folder / "new").rename(self.folder / "behave")

    def starts(self):
        """How the daemons were started, oldest first."""
        import json
        try:
            return [json.loads(line) for line in (self.folder / "starts").read_text().splitlines()]
        except FileNotFoundError:
            return []
