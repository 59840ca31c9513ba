"""Dask arrays whose chunks are gpurest arrays: each on the device of the service that the Dask worker uses which has it.

    import dask.array as da, gpurest.dask
    gpurest.dask.connect(client, url="http://127.0.0.1:8080")       # each worker to the service of its own node
    with dask.config.set({"array.backend": "gpurest"}):
        x = da.random.random((200_000, 200_000))
    (x @ x.T).sum().compute()                                       # an array of gpurest; .get() brings it to the host

Importing this module tells Dask of gpurest's arrays, as Dask knows CuPy's: how they are joined, multiplied, counted, sent and spilled. Needs dask
and NumPy (`pip install 'gpurest[dask]'`); what is about workers needs distributed."""
from __future__ import annotations

from .backend import GpurestBackendEntrypoint, from_array, register

register()
try:
    from .workers import ServicePlugin, connect, disconnect
except ModuleNotFoundError as missing:  # dask's own schedulers do without it
    if missing.name != "distributed":
        raise

__all__ = ["GpurestBackendEntrypoint", "ServicePlugin", "connect", "disconnect", "from_array", "register"]
