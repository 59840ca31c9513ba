"""The cache of compiled code: looked at, emptied, filled ahead of use; blocking and with asyncio."""
import asyncio

import pytest

import gpurest
from gpurest import aio, errors

SOURCE = 'extern "C" __global__ void put(int *p) { *p = %d; }'
WAIT_S = 300


def test_it_is_filled_looked_at_and_emptied(cached):
    with gpurest.connect(cached.url) as gpu:
        job = gpu.warm(["axpy", "cbrt"], dtypes="f32", sources=[SOURCE % 1, {"source": SOURCE % 2, "options": ["-DX=1"]}]).wait(WAIT_S)
        assert job.state == "succeeded" and job.done() and not job.cancel()
        assert job.info["total"] == job.info["succeeded"] == 4 and job.id in repr(job)
        assert gpu.cache()["entries"] == 2 and gpu.cache()["all"]["entries"] == 4
        with gpu.session() as session:
            session.module(SOURCE % 1)
        assert gpu.cache()["hits"] == 1
        assert gpu.clear_cache(older_than_s=3600.5)["removed_entries"] == 0
        assert gpu.clear_cache()["removed_entries"] == 2 and gpu.cache()["all"]["entries"] == 2
        assert gpu.clear_cache(all=True)["removed_entries"] == 2


def test_what_fails_is_raised(cached):
    with gpurest.connect(cached.url) as gpu:
        job = gpu.warm(sources=["this is no C", SOURCE % 3])
        with pytest.raises(errors.CompileError):
            job.wait(WAIT_S)
        assert job.state == "failed" and [item["state"] for item in job.info["items"]] == ["failed", "succeeded"]
        with pytest.raises(errors.NotFoundError):
            gpu.warm("nonesuch")
        with pytest.raises(errors.GpurestError, match="name built-in kernels"):
            gpu.warm()
        with pytest.raises(errors.ArgumentError):
            gpu.clear_cache(older_than_s=-1)
        with pytest.raises(errors.ArgumentError):
            gpu.clear_cache(older_than_s=float("nan"))


def test_a_cancelled_one_says_so(cached):
    with gpurest.connect(cached.url) as gpu:
        job = gpu.warm(sources=[SOURCE % n for n in range(100, 150)])
        if job.cancel():  # else it was quicker
            assert job.state == "cancelled"
            with pytest.raises(errors.GpurestError, match="cancelled"):
                job.wait(WAIT_S)


def test_with_asyncio(cached):
    async def main():
        async with aio.AsyncClient(cached.url) as gpu:
            job = await (await gpu.warm("cbrt", dtypes=["f32"], sources=[SOURCE % 4], devices="cpu:0")).wait()
            assert job.state == "succeeded" and await job.done() and not await job.cancel()
            assert (await gpu.cache())["entries"] == 1
            assert (await gpu.clear_cache())["removed_entries"] == 1
    asyncio.run(asyncio.wait_for(main(), WAIT_S))
