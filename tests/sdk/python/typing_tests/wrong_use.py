"""Code that checkers must refuse: an unneeded ignore is an error. Checked, never run."""
import gpurest


def mistakes(gpu: gpurest.Client, session: gpurest.Session, x: gpurest.Buffer, y: gpurest.ndarray, source: str) -> None:
    gpu.buffr(b"1234")  # type: ignore[attr-defined]
    gpurest.connect(8080)  # type: ignore[arg-type]
    gpurest.connect(retries="many")  # type: ignore[arg-type]
    session.buffer(b"1234", 4)  # type: ignore[call-arg]
    session.module(source, headers=["a.h"])  # type: ignore[arg-type]
    x.write()  # type: ignore[call-arg]
    x.read("all")  # type: ignore[arg-type]
    number: int = x.shape  # type: ignore[assignment]
    y.sum(axis="rows")  # type: ignore[arg-type]
    text: str = y + 1  # type: ignore[assignment]
    gpurest.einsum(1, y)  # type: ignore[arg-type]
    out: bytes = y.get(out=bytearray(8))  # type: ignore[assignment]
    gpurest.blocks("8", 4)  # type: ignore[arg-type]
    with session.batch(timeout_ms="soon"):  # type: ignore[arg-type]
        pass
    gpurest.Timeout(connect="5")  # type: ignore[arg-type]
    gpurest.cuda.set_device(1.5)  # type: ignore[arg-type]
    gpurest.cuda.on_low_memory(lambda: None)  # type: ignore[arg-type,misc]
    gpurest.Config(warps="4")  # type: ignore[arg-type]
    print(number, text, out)


async def forgotten(gpu: gpurest.AsyncClient, source: str) -> None:
    times: gpurest.RunResult = gpu.run(source, "f")  # type: ignore[assignment]
    print(times)
