"""Long transfers around the router: taken where the node's own address answers, and through the router where it does not."""
import asyncio
import socket

import pytest

import gpurest
import gpurest.aio
from fake_server import FakeServer, problem

INFO = {"id": "n1.s", "device": "cpu:0", "generation": 1, "node": "n1"}
BYTES = 2 << 20


class Scripted:
    """A node or a router that counts what it is asked; `breaks`: it closes on a transfer."""

    def __init__(self, info, node="n1", breaks=False, token_refused=False):
        self.info, self.node, self.breaks, self.token_refused, self.transfers = info, node, breaks, token_refused, 0
        self.server = FakeServer(self.script)
        self.url = self.server.url

    def script(self, peer):
        while request := peer.request():
            line, _, body = request
            if line.startswith("GET /version"):
                if self.token_refused:
                    peer.answer(401, problem(401, "unauthenticated"), "application/problem+json")
                else:
                    peer.answer(200, {"server": "gpurestd", "node": self.node})
            elif "/buffers/" in line and line.startswith("PUT"):
                self.transfers += len(body) == BYTES
                if self.breaks and len(body) == BYTES:
                    return
                peer.answer(201, {"id": "b", "size": max(len(body), 4)})
            elif line.startswith("DELETE"):
                peer.answer(204)
            else:
                peer.answer(201, self.info)


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def upload_blocking(router, size=BYTES, times=1):
    with gpurest.connect(router.url, lease_s=None, retries=1) as client:
        with client.session() as session:
            for _ in range(times):
                session.buffer(bytes(size))


def upload_async(router, size=BYTES, times=1):
    async def work():
        async with gpurest.aio.AsyncClient(router.url, retries=1) as client:
            async with client.session() as session:
                for _ in range(times):
                    await session.buffer(bytes(size))
    asyncio.run(work())


@pytest.fixture(params=[upload_blocking, upload_async], ids=["blocking", "asyncio"])
def upload(request):
    return request.param


@pytest.fixture
def router():
    info = dict(INFO)
    one = Scripted(info, node="n9")
    yield one
    one.server.stop()


@pytest.mark.parametrize("size, direct", [(BYTES, 1), (4, 0)])
def test_a_long_one_goes_to_the_node(router, upload, size, direct):
    node = Scripted(INFO)
    router.info["endpoint"] = node.url
    upload(router, size)
    assert (node.transfers, router.transfers) == (direct, 0)
    node.server.stop()


@pytest.mark.parametrize("how", ["nobody", "another node", "token refused", "no endpoint"])
def test_the_router_carries_what_the_node_cannot(router, upload, how):
    node = Scripted(INFO, node="n2" if how == "another node" else "n1", token_refused=how == "token refused")
    if how != "no endpoint":
        router.info["endpoint"] = node.url if how != "nobody" else f"http://127.0.0.1:{closed_port()}"
    upload(router, times=2)
    assert (node.transfers, router.transfers) == (0, 2)
    node.server.stop()


def test_a_broken_one_is_sent_again_through_the_router(router, upload):
    node = Scripted(INFO, breaks=True)
    router.info["endpoint"] = node.url
    upload(router, times=2)
    assert node.transfers == 2 and router.transfers == 2  # one try more, and then no more
    node.server.stop()
