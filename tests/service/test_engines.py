"""What runs a built-in kernel: our code, or a library of the GPU's vendor or of the host. Tested on the devices under test, with the host's libraries
and without, and on a fake GPU with fake libraries, whose products and transforms are compared with NumPy's. The fake GPU cannot run our kernels, so
a result there proves that the library was used."""
import pathlib
import re
import subprocess

import numpy as np
import pytest

import batch_client
from service_under_test import Service, until

S = "/v1/sessions/e"
LIMITS = (pathlib.Path(__file__).resolve().parents[2] / "service/limits.h").read_text()
PLANS_MAX = int(re.search(r"VENDOR_PLANS_PER_SESSION_MAX = (\d+)", LIMITS).group(1))
LINALG = {"cusolver", "openblas"}
NONE = dict.fromkeys(("cublaslt", "cufft", "cusolver", "openblas", "fftw"))
NUMBERS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def u64(*values):
    return [{"u64": int(value)} for value in values]


def buffers(*names):
    return [{"buf": name} for name in names]


def matmul(m, n, k, batch=1, dtype="f32", args=None, **more):
    return {"builtin": "matmul", "dtype": dtype, "args": (args or buffers("a", "b", "out")) + u64(m, n, k, batch), **more}


def fft(n, batch=1, inverse=False, dtype="f32", args=None, **more):
    return {"builtin": "fft", "dtype": dtype, "args": (args or buffers("a", "out")) + u64(n, batch) + [{"bool": inverse}], **more}


# ---- on the device under test ----

@pytest.fixture
def small(client, session):
    for name in ("a", "b", "out"):
        assert client.put(f"{session}/buffers/{name}", {"size": 4096}).status == 201
    return session


def test_kernels_say_who_can_do_them(client):
    kernels = {item["name"]: item for item in client.get("/v1/kernels?limit=1000").json()["items"]}
    for name, libraries in (("matmul", {"cublaslt", "openblas"}), ("matmul_tf32", {"cublaslt", "openblas"}), ("matmul_strided", {"cublaslt", "openblas"}),
                            ("fft", {"cufft", "fftw"}), ("fft_axis", {"cufft", "fftw"}), ("lu", LINALG), ("svd_complex", LINALG)):
        assert kernels[name]["engines"] == ["vendor", "builtin"]
        assert {one["name"] for one in kernels[name]["libraries"]} == libraries
        for one in kernels[name]["libraries"]:
            assert "f32" in one["dtypes"] and "i32" not in one["dtypes"] and set(one["dtypes"]) <= set(kernels[name]["dtypes"])
    assert kernels["add"]["engines"] == ["builtin"] and kernels["add"]["libraries"] == []


def test_ours_is_chosen_by_name_everywhere(client, small):
    launch = matmul(2, 2, 2, engine="builtin")
    answer = client.post(small + "/launches", launch)
    assert answer.status == 200 and answer.json()["engine"] == "builtin", answer
    ran = batch_client.send(client, small + "/batches", {"ops": [{"op": "launch", **launch}]}, {})
    assert ran.status == 200 and ran.message["ops"][0]["engine"] == "builtin", ran


def test_memcheck_sees_all_of_a_product_because_ours_does_it(client):
    if client.get("/v1/devices").json()["items"][0]["backend"] != "cpu":
        pytest.skip("only the cpu device has memcheck")
    assert client.put("/v1/sessions/watched", {"memcheck": True}).status == 201
    try:
        for name in ("a", "b", "out"):
            assert client.put_octets(f"/v1/sessions/watched/buffers/{name}", bytes(64)).status == 201
        launch = client.post("/v1/sessions/watched/launches", matmul(4, 4, 4), Prefer="wait=60").expect(200)
        if launch.json()["state"] == "failed":
            pytest.skip("no NVRTC on this machine")
        assert launch.json()["engine"] == "builtin"
        client.post("/v1/sessions/watched/launches", matmul(4, 4, 4, engine="vendor"), Prefer="wait=60").expect(422, "launch_config_invalid")
    finally:
        client.delete("/v1/sessions/watched")


@pytest.mark.parametrize("flags", [["--vendor-libraries", "off"], []], ids=["off", "absent"])
def test_a_cpu_device_without_libraries_has_ours(executable, tmp_path, flags):
    absent = tmp_path / "absent.so"
    absent.write_bytes(b"no library")
    flags = flags or [word for flag in ("--libopenblas", "--libfftw3", "--libfftw3f") for word in (flag, str(absent))]
    folder = tmp_path / "service"
    folder.mkdir()
    service = Service(executable, folder, "--backends", "cpu", *flags)
    try:
        client = service.client()
        assert client.get("/v1/devices/cpu:0").json()["libraries"] == NONE
        assert client.put(S).status == 201
        for name in ("a", "b", "out"):
            assert client.put(f"{S}/buffers/{name}", {"size": 4096}).status == 201
        for launch in (matmul(2, 2, 2, engine="vendor"), fft(8, engine="vendor")):
            answer = client.post(S + "/launches", launch).expect(422, "launch_config_invalid")
            assert answer.json()["errors"][0]["pointer"] == "/engine" and "has none" in answer.json()["errors"][0]["detail"]
        launch = client.post(S + "/launches", matmul(2, 2, 2), Prefer="wait=60")
        assert launch.json()["engine" if launch.status == 200 else "code"] in ("builtin", "compiler_unavailable"), launch
    finally:
        service.stop()


# ---- on the host's libraries ----

@pytest.fixture(scope="module")
def host(executable, tmp_path_factory):
    service = Service(executable, tmp_path_factory.mktemp("host"), "--backends", "cpu", "--cpu-threads", "2")
    there = service.client().get("/v1/devices/cpu:0").json()["libraries"]
    if not (there["openblas"] and there["fftw"]):
        service.stop()
        pytest.skip("no OpenBLAS or no FFTW on this machine")
    yield service
    service.stop()


@pytest.fixture
def openblas(host):
    """They run inside the worker's sandbox: a system call that it does not allow would end the session."""
    gpu = Gpu(host)
    yield gpu
    assert gpu.client.delete(S).status == 204


def test_the_host_tells_its_libraries(host):
    there = host.client().get("/v1/devices/cpu:0").json()["libraries"]
    assert there["cublaslt"] is None and there["cufft"] is None and there["cusolver"] is None
    assert re.match(r"\d+\.\d+", there["openblas"]) and re.match(r"3\.\d+", there["fftw"])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_host_s_products_of_any_shape(openblas, dtype):
    for m, n, k, batch in ((3, 5, 7, 1), (1, 1, 1, 1), (4, 2, 96, 3), (8, 4, 50000, 1), (700, 300, 500, 1), (1, 1000, 1000, 1)):
        a, b = integers(batch, m, k), integers(batch, k, n, seed=1)
        openblas.put("a", a.astype(NUMBERS[dtype]))
        openblas.put("b", b.astype(NUMBERS[dtype]))
        openblas.put("out", np.full((batch, m, n), 77, NUMBERS[dtype]))
        openblas.launch(matmul(m, n, k, batch, dtype))
        assert np.array_equal(openblas.get("out", NUMBERS[dtype]).reshape(batch, m, n), a @ b)


def test_the_host_s_transforms_along_any_axis(openblas):
    for outer, n, inner in ((1, 8, 5), (3, 16, 1), (5, 32, 7), (1, 1 << 17, 1)):
        x = (integers(outer, n, inner) + 1j * integers(outer, n, inner, seed=1)).astype(np.complex128)
        openblas.put("a", x)
        for name in ("out", "back"):
            openblas.put(name, np.zeros_like(x))
        axis = {"builtin": "fft_axis", "dtype": "f64"}
        openblas.launch({**axis, "args": buffers("a", "out") + u64(outer, n, inner) + [{"bool": False}]})
        assert np.allclose(openblas.get("out", np.complex128).reshape(x.shape), np.fft.fft(x, axis=1))
        openblas.launch({**axis, "args": buffers("out", "back") + u64(outer, n, inner) + [{"bool": True}]})
        assert np.allclose(openblas.get("back", np.complex128).reshape(x.shape), x)


def test_the_host_s_factorizations_solve_equations(openblas):
    a, b = integers(2, 50, 50) + 60.0 * np.eye(50), integers(2, 50, 3, seed=1) + 0.0
    openblas.put("a", a)
    openblas.put("lu", a)
    openblas.put("b", b)
    for name, count in (("order", 100), ("exchanges", 2), ("info", 2)):
        openblas.put(name, np.full(count, 7, np.int32))
    openblas.launch({"builtin": "lu", "dtype": "f64", "args": buffers("a", "lu", "order", "exchanges", "info") + u64(50, 2)})
    factors, order = openblas.get("lu", np.float64).reshape(2, 50, 50), openblas.get("order", np.int32).reshape(2, 50)
    assert not openblas.get("info", np.int32).any()
    for one in range(2):
        assert np.allclose((np.tril(factors[one], -1) + np.eye(50)) @ np.triu(factors[one]), a[one][order[one]])
    solve = {"builtin": "triangular_solve", "dtype": "f64"}
    openblas.put("b", b[np.arange(2)[:, None], order])
    openblas.launch({**solve, "args": buffers("lu", "b", "b") + u64(50, 3, 2) + [{"bool": True}, {"bool": False}, {"bool": True}]})
    openblas.launch({**solve, "args": buffers("lu", "b", "b") + u64(50, 3, 2) + [{"bool": False}, {"bool": False}, {"bool": False}]})
    assert np.allclose(a @ openblas.get("b", np.float64).reshape(2, 50, 3), b)


def test_a_product_of_the_host_ends_at_its_deadline(openblas):
    n = 6000
    for name in ("a", "b", "out"):
        openblas.put(name, np.zeros((n, n)))
    launch = openblas.client.post(S + "/launches", matmul(n, n, n, 200, "f64", timeout_ms=1)).json()
    assert launch.get("code") == "argument_mismatch", "a batch beyond the buffers is refused as ours"
    one = {"builtin": "matmul_strided", "dtype": "f64", "engine": "vendor", "timeout_ms": 100, "args": buffers("a", "b", "out") + u64(n, n, n, 100, n, n, n, 0, 0, 0)}
    launch = openblas.client.post(S + "/launches", one, Prefer="wait=60")
    assert launch.json().get("code") == "execution_timeout" or launch.json()["error"]["code"] == "execution_timeout", launch


def test_programs_keep_the_host_s_plans(openblas):
    a, b = integers(6, 80), integers(80, 4, seed=1)
    openblas.put("a", a.astype(np.float32))
    openblas.put("b", b.astype(np.float32))
    openblas.put("out", np.zeros((6, 4), np.float32))
    once = {"op": "launch", **matmul(2, 4, 8)}
    assert openblas.client.put(S + "/programs/p", {"ops": [once, once]}).status == 201
    for m, k in ((2, 8), (6, 80), (3, 80), (2, 8)):
        changed = {"3": {"u64": m}, "5": {"u64": k}}
        run = batch_client.send(openblas.client, S + "/programs/p/runs", {"args": {"0": changed, "1": changed}}, {})
        assert run.status == 200 and run.message["ops"][0]["engine"] == "vendor", run
        assert np.array_equal(openblas.get("out", np.float32)[:m * 4].reshape(m, 4), a.ravel()[:m * k].reshape(m, k) @ b[:k])


def test_what_is_no_engine_is_refused_with_its_place(client, small):
    add = {"builtin": "add", "dtype": "f32", "args": buffers("a", "b", "out") + u64(4)}
    for launch, status, code, word in (
            (matmul(2, 2, 2, engine="fast"), 400, "invalid_field", "omit it"),
            (matmul(2, 2, 2, engine=""), 400, "invalid_field", "omit it"),
            (matmul(2, 2, 2, engine=1), 400, "invalid_field", ""),
            ({"module": "m", "kernel": "k", "grid": [1], "block": [1], "engine": "builtin"}, 400, "invalid_field", "built-in kernels only"),
            ({**add, "engine": "vendor"}, 422, "launch_config_invalid", "none supports it"),
            (matmul(2, 2, 2, dtype="i32", engine="vendor"), 422, "launch_config_invalid", "none supports it")):
        answer = client.post(small + "/launches", launch)
        assert (answer.status, answer.code) == (status, code), answer
        assert answer.json()["errors"][0]["pointer"] == "/engine" and word in answer.json()["errors"][0]["detail"], answer
        operation = {key: value for key, value in launch.items()}
        answer = client.post(small + "/batches", {"ops": [{"op": "launch", **operation}]})
        assert (answer.status, answer.code) == (status, code), answer


def test_an_id_stands_for_one_engine(client, small):
    assert client.post(small + "/launches", matmul(2, 2, 2, id="one", engine="builtin")).status == 200
    assert client.post(small + "/launches", matmul(2, 2, 2, id="one", engine="builtin")).status == 200
    assert client.post(small + "/launches", matmul(2, 2, 2, id="one")).code == "spec_conflict"


# ---- on a fake GPU with libraries ----

class Gpu:
    def __init__(self, service):
        self.service, self.client = service, service.client()
        assert self.client.put(S).status == 201

    def put(self, name, array):
        """Recreates the buffer, because sizes change."""
        assert self.client.delete(f"{S}/buffers/{name}").status in (204, 404)
        assert self.client.put_octets(f"{S}/buffers/{name}", np.ascontiguousarray(array).tobytes()).status == 201

    def get(self, name, dtype):
        return np.frombuffer(self.client.get(f"{S}/buffers/{name}/data").body, dtype)

    def launch(self, spec):
        answer = self.client.post(S + "/launches", spec, Prefer="wait=60").expect(200)
        assert answer.json()["engine"] == "vendor" and answer.json()["state"] == "succeeded", answer
        return answer.json()

    def refused(self, spec):
        answer = self.client.post(S + "/launches", spec, Prefer="wait=60")
        assert (answer.status, answer.code, answer.json()["errors"][0]["pointer"]) == (422, "launch_config_invalid", "/engine"), answer
        return answer.json()["errors"][0]["detail"]


@pytest.fixture
def libraries(executable):
    support = pathlib.Path(executable).parents[1] / "tests" / "support"
    names = {"--libcuda": "libcuda.so.1", "--libcublaslt": "libcublasLt.so.13", "--libcufft": "libcufft.so.12", "--libcusolver": "libcusolver.so.12"}
    if not all((support / name).exists() for name in names.values()):
        pytest.skip("the fake libraries were not built beside GPURESTD")
    return {flag: str(support / name) for flag, name in names.items()}


@pytest.fixture
def fake(executable, libraries, tmp_path):
    flags = [word for pair in libraries.items() for word in pair]
    service = Service(executable, tmp_path, "--backends", "cuda", *flags)
    yield Gpu(service)
    service.stop()


def integers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape)


def test_devices_tell_their_libraries(fake):
    assert fake.client.get("/v1/devices/cuda:0").json()["libraries"] == {**NONE, "cublaslt": "13.2.99", "cufft": "12.3.45", "cusolver": "12.3.45"}


@pytest.mark.parametrize("dtype", NUMBERS)
def test_products_by_the_library(fake, dtype):
    for m, n, k, batch in ((3, 5, 7, 1), (1, 1, 1, 1), (4, 2, 96, 3)):
        a, b = integers(batch, m, k), integers(batch, k, n, seed=1)
        fake.put("a", a.astype(NUMBERS[dtype]))
        fake.put("b", b.astype(NUMBERS[dtype]))
        fake.put("out", np.full((batch, m, n), 77, NUMBERS[dtype]))
        launch = fake.launch(matmul(m, n, k, batch, dtype))
        assert (launch["builtin"], launch["dtype"], launch["grid"], launch["block"]) == ("matmul", dtype, [1, 1, 1], [1, 1, 1])
        assert np.array_equal(fake.get("out", NUMBERS[dtype]).reshape(batch, m, n), a @ b)


def test_rows_with_gaps_offsets_and_a_shared_operand(fake):
    a, b = integers(2, 3, 6), integers(4, 5, seed=1)
    fake.put("a", np.concatenate([[9], a.ravel()]).astype(np.float32))
    fake.put("b", b.astype(np.float32))
    fake.put("out", np.full(2 * 3 * 5 + 3, 77, np.float32))
    args = [{"buf": "a", "offset": 4}, {"buf": "b"}, {"buf": "out", "offset": 8}]
    fake.launch({"builtin": "matmul_strided", "dtype": "f32", "engine": "vendor", "args": args + u64(3, 5, 4, 2, 6, 5, 5, 18, 0, 15)})
    out = fake.get("out", np.float32)
    assert np.array_equal(out[2:32].reshape(2, 3, 5), a[:, :, :4] @ b)
    assert list(out[:2]) == [77, 77] and out[32] == 77


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_transforms_by_the_library_and_back(fake, dtype):
    complex_type = {"f32": np.complex64, "f64": np.complex128}[dtype]
    for n, batch in ((8, 3), (64, 2), (2, 1)):
        x = (integers(batch, n) + 1j * integers(batch, n, seed=1)).astype(complex_type)
        fake.put("a", x)
        fake.put("out", np.zeros_like(x))
        fake.put("back", np.zeros_like(x))
        fake.launch(fft(n, batch, False, dtype))
        assert np.allclose(fake.get("out", complex_type).reshape(batch, n), np.fft.fft(x), atol=1e-3)
        fake.launch(fft(n, batch, True, dtype, buffers("out", "back")))
        assert np.allclose(fake.get("back", complex_type).reshape(batch, n), x, atol=1e-5)


def test_transforms_along_the_first_axis_and_the_last(fake):
    for outer, n, inner in ((1, 8, 5), (3, 16, 1)):
        x = (integers(outer, n, inner) + 1j * integers(outer, n, inner, seed=1)).astype(np.complex64)
        fake.put("a", x)
        fake.put("out", np.zeros_like(x))
        fake.launch({"builtin": "fft_axis", "dtype": "f32", "args": buffers("a", "out") + u64(outer, n, inner) + [{"bool": False}]})
        assert np.allclose(fake.get("out", np.complex64).reshape(x.shape), np.fft.fft(x, axis=1), atol=1e-3)


def matrices(dtype, *shape, seed=0, is_complex=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, shape) + (1j * rng.normal(0, 1, shape) if is_complex else 0)
    return x.astype({"f32": np.complex64, "f64": np.complex128}[dtype] if is_complex else NUMBERS[dtype])


class Factors:
    """Calls of one type of numbers."""

    def __init__(self, fake, dtype, is_complex):
        self.fake, self.dtype, self.is_complex = fake, dtype, is_complex
        self.real = np.dtype(NUMBERS[dtype])
        self.kind = np.dtype({"f32": np.complex64, "f64": np.complex128}[dtype]) if is_complex else self.real

    def values(self, *shape, seed=0):
        return matrices(self.dtype, *shape, seed=seed, is_complex=self.is_complex)

    def call(self, name, inputs, outputs, values, engine="vendor"):
        """`outputs`: [(name, shape, type)]"""
        for at, array in inputs.items():
            self.fake.put(at, array)
        for at, shape, kind in outputs:
            self.fake.put(at, np.full(shape, 7, kind))
        order = {"triangular_solve": ["a", "b", "out"], "qr_q": ["x", "tau", "out"], "svd": ["x", "left", "values", "right", "info"]}.get(
            name, [*inputs, *(one[0] for one in outputs)])
        scalars = [{"bool": one} if isinstance(one, bool) else {"u64": one} for one in values]
        self.fake.launch({"builtin": name + "_complex" * self.is_complex, "dtype": self.dtype, "engine": engine, "args": buffers(*order) + scalars})
        return [self.fake.get(at, kind).reshape(shape) for at, shape, kind in outputs]

    def near(self, got, want):
        assert np.allclose(got, want, atol=2e-4 if self.dtype == "f32" else 1e-9), np.abs(got - want).max()


@pytest.fixture(params=["f32", "f64", "f32 complex", "f64 complex"])
def factors(fake, request):
    return Factors(fake, request.param[:3], "complex" in request.param)


def test_lu_and_cholesky_by_the_library(factors):
    x, n = factors.values(2, 5, 5), 5
    x[1, :, 0] = 0
    lu, order, exchanges, info = factors.call("lu", {"x": x}, [("out", x.shape, factors.kind), ("order", (2, n), np.int32), ("exchanges", 2, np.int32), ("info", 2, np.int32)], [n, 2])
    assert info.tolist() == [0, 1]
    for one in range(2):
        factors.near((np.tril(lu[one], -1) + np.eye(n)) @ np.triu(lu[one]), x[one][order[one]])
        assert round(np.linalg.det(np.eye(n)[order[one]])) == (-1) ** (exchanges[one] % 2)
    positive = x @ x.conj().swapaxes(1, 2) + np.eye(n, dtype=factors.kind) * np.array([1, -100], factors.real)[:, None, None]
    lower, info = factors.call("cholesky", {"x": positive + np.triu(np.full((n, n), 9), 1).astype(factors.real)}, [("out", x.shape, factors.kind), ("info", 2, np.int32)], [n, 2])
    assert info[0] == 0 and info[1] == 1 and not np.triu(lower, 1).any()
    factors.near(lower[0] @ lower[0].conj().T, positive[0])


@pytest.mark.parametrize("lower,transposed,unit", [(True, False, True), (True, True, False), (False, False, False), (False, True, True)])
def test_substitution_by_the_library(factors, lower, transposed, unit):
    a, b = factors.values(2, 4, 4) + 3 * np.eye(4, dtype=factors.real), factors.values(2, 4, 3, seed=1)
    out, = factors.call("triangular_solve", {"a": a, "b": b}, [("out", b.shape, factors.kind)], [4, 3, 2, lower, transposed, unit])
    used = np.tril(a) if lower else np.triu(a)
    used = np.where(np.eye(4) * unit, 1, used)
    factors.near((used.swapaxes(1, 2) if transposed else used) @ out, b)


@pytest.mark.parametrize("rows,columns,size", [(6, 4, 4), (6, 4, 6), (3, 5, 3), (5, 5, 2), (3, 5, 4)])
def test_orthogonal_factors_by_the_library(factors, rows, columns, size):
    x, least = factors.values(2, rows, columns), min(rows, columns)
    out, tau = factors.call("qr", {"x": x}, [("out", x.shape, factors.kind), ("tau", (2, columns), factors.kind)], [rows, columns, 2])
    assert not tau[:, least:].any()
    q, = factors.call("qr_q", {"x": out, "tau": tau}, [("out", (2, rows, size), factors.kind)], [rows, columns, size, 2])
    kept = min(rows, size)
    factors.near(q[:, :, :kept].conj().swapaxes(1, 2) @ q[:, :, :kept], np.eye(kept))
    assert not q[:, :, kept:].any()
    if kept >= least:
        factors.near(q[:, :, :least] @ np.triu(out)[:, :least], x)


def test_eigenvalues_by_the_library(factors):
    n = 5
    x = factors.values(3, n, n)
    x[2, 1, 0] = np.nan
    h = np.tril(x, -1) + np.tril(x, -1).conj().swapaxes(1, 2) + np.real(x) * np.eye(n)
    outputs = [("values", (3, n), factors.real), ("vectors", (3, n, n), factors.kind), ("info", 3, np.int32)]
    found, vectors, info = factors.call("eigh", {"x": np.tril(x)}, outputs, [n, 3, 1])
    assert info.tolist() == [0, 0, 1] and np.isnan(found[2]).all() and np.isnan(vectors[2]).all()
    for one in range(2):
        factors.near(found[one], np.linalg.eigvalsh(h[one]))
        factors.near(h[one] @ vectors[one].T, vectors[one].T * found[one])
        factors.near(vectors[one].conj() @ vectors[one].T, np.eye(n))
    alone, = factors.call("eigh", {"x": np.tril(x[:1])}, [("values", (1, n), factors.real), ("vectors", 1, factors.kind), ("info", 1, np.int32)], [n, 1, 0])[:1]
    factors.near(alone, found[:1])


def test_general_eigenvalues_by_the_library(factors):
    n, pair = 5, np.complex64 if factors.dtype == "f32" else np.complex128
    x = factors.values(3, n, n)
    x[2, 0, 1] = np.inf
    outputs = [("values", (3, n), pair), ("vectors", (3, n, n), pair), ("info", 3, np.int32)]
    found, vectors, info = factors.call("eig", {"x": x}, outputs, [n, 3, 1])
    assert info.tolist() == [0, 0, 1] and np.isnan(found[2]).all() and np.isnan(vectors[2]).all()
    for one in range(2):
        factors.near(x[one] @ vectors[one].T, vectors[one].T * found[one])
        factors.near(np.linalg.norm(vectors[one], axis=1), 1)
        factors.near(np.sort_complex(np.round(found[one], 2)), np.sort_complex(np.round(np.linalg.eigvals(x[one]), 2)))


@pytest.mark.parametrize("rows,columns", [(4, 4), (6, 3), (3, 6), (1, 5)])
def test_singular_values_by_the_library(factors, rows, columns):
    x, least = factors.values(2, rows, columns), min(rows, columns)
    for lefts, rights in ((rows, columns), (least, least), (0, 0), (least, 0)):
        outputs = [("left", (2, lefts, rows), factors.kind), ("values", (2, columns), factors.real), ("right", (2, rights, columns), factors.kind), ("info", 2, np.int32)]
        outputs = [(at, shape if np.prod(shape) else 1, kind) for at, shape, kind in outputs]
        left, found, right, info = factors.call("svd", {"x": x}, outputs, [rows, columns, lefts, rights, 2])
        assert not info.any() and not found[:, least:].any()
        factors.near(found[:, :least], np.linalg.svd(x, compute_uv=False))
        for vectors in (left, right):
            if vectors.ndim == 3:
                factors.near(vectors.conj() @ vectors.swapaxes(1, 2), np.eye(vectors.shape[1]))
        if lefts and rights:
            factors.near(left[:, :least].swapaxes(1, 2) * found[:, None, :least] @ right[:, :least], x)


def test_many_small_matrices_are_ours_unless_the_library_is_asked_for(fake):
    """The fake GPU cannot run ours, and says so."""
    for name in ("x", "out", "info"):
        fake.put(name, np.zeros((5, 64, 64)))
    for n, batch, ours in ((16, 1, False), (15, 1, True), (16, 2, True), (32, 2, False), (64, 5, True)):
        launch = {"builtin": "cholesky", "dtype": "f64", "args": buffers("x", "out", "info") + u64(n, batch)}
        if ours:
            answer = fake.client.post(S + "/launches", launch, Prefer="wait=60")
            if answer.code == "compiler_unavailable":
                pytest.skip("no NVRTC on this machine")
            assert answer.status == 422 and "CUDA_ERROR" in answer.json()["detail"], (n, batch, answer)
        else:
            fake.launch(launch)
        fake.launch({**launch, "engine": "vendor"})


def test_a_program_may_hold_factorizations(fake):
    """They are in no graph: the launches go one by one."""
    fake.put("x", np.full(1, 65536.0))
    fake.put("info", np.zeros(1, np.int32))
    ops = [{"op": "launch", "builtin": "cholesky", "dtype": "f64", "engine": "vendor", "args": buffers("x", "x", "info") + u64(1, 1)}] * 2
    assert fake.client.put(S + "/programs/p", {"ops": ops}).status == 201
    run = batch_client.send(fake.client, S + "/programs/p/runs", {}, {})
    assert run.status == 200 and [op["engine"] for op in run.message["ops"]] == ["vendor"] * 2, run
    assert fake.get("x", np.float64)[0] == 16


def test_what_the_library_does_not_do_is_said(fake):
    for name in ("a", "b", "out"):
        fake.put(name, np.zeros(65536, np.float32))
    assert "the matrices are empty" in fake.refused(matmul(4, 0, 4, engine="vendor"))
    assert "does not support these sizes" in fake.refused(matmul(13, 4, 4, engine="vendor"))
    assert "does not support these sizes" in fake.refused(matmul(13, 4, 4, engine="vendor")), "and so it stays"
    assert "rows overlap" in fake.refused({"builtin": "matmul_strided", "dtype": "f32", "engine": "vendor", "args": buffers("a", "b", "out") + u64(4, 4, 4, 1, 2, 4, 4, 0, 0, 0)})
    assert "the data is empty" in fake.refused(fft(1, engine="vendor"))
    assert "does not support these sizes" in fake.refused(fft(4096, engine="vendor"))
    assert "complex number" in fake.refused(fft(8, engine="vendor", args=[{"buf": "a", "offset": 4}, {"buf": "out"}]))
    middle = {"builtin": "fft_axis", "dtype": "f32", "engine": "vendor", "args": buffers("a", "out") + u64(2, 8, 2) + [{"bool": False}]}
    assert "does not support these sizes" in fake.refused(middle)
    lu = {"builtin": "cholesky_complex", "dtype": "f32", "engine": "vendor", "args": [{"buf": "a", "offset": 4}, *buffers("out", "b")] + u64(4, 1)}
    assert "complex number" in fake.refused(lu)
    assert "does not support these sizes" in fake.refused({**lu, "args": buffers("a", "out", "b") + u64(13, 1)})


def test_without_a_word_about_it_ours_does_the_rest(fake):
    """The fake GPU refuses our kernel, whose name it does not know; a refusal by the library would point to /engine."""
    for name in ("a", "b", "out"):
        fake.put(name, np.zeros(65536, np.float32))
    assert fake.client.put("/v1/sessions/narrow", {"memory_limit": 2048}).status == 201
    for name, size in (("a", 512), ("b", 512), ("out", 16)):
        assert fake.client.put(f"/v1/sessions/narrow/buffers/{name}", {"size": size}).status == 201
    for session, spec in ((S, matmul(13, 4, 4)), (S, matmul(2, 2, 2, dtype="i32")), (S, matmul(13, 4, 4)), ("/v1/sessions/narrow", matmul(2, 2, 64))):
        launch = fake.client.post(session + "/launches", spec, Prefer="wait=60")
        if launch.code == "compiler_unavailable":
            pytest.skip("no NVRTC on this machine")
        assert launch.status == 422 and not launch.json()["errors"] and "CUDA_ERROR" in launch.json()["detail"], launch
        batch = fake.client.post(session + "/batches", {"ops": [{"op": "launch", **spec}]})
        assert batch.status == 422 and "CUDA_ERROR" in batch.json()["detail"], batch
    fake.launch(matmul(2, 2, 2))


def test_arguments_are_checked_as_for_ours(fake):
    for name in ("a", "b", "out"):
        fake.put(name, np.zeros(16, np.float32))
    for spec, pointer in ((matmul(8, 8, 8), "/args/0"), (matmul(4, 4, 4, args=buffers("a", "b", "none")), "/args/2"),
                          (matmul(4, 4, 4, args=[{"buf": "a", "offset": 2}, *buffers("b", "out")]), "/args/0")):
        answer = fake.client.post(S + "/launches", spec)
        assert answer.status in (404, 422) and answer.json()["errors"][0]["pointer"] == pointer, answer


def test_batches_and_programs_take_the_library_too(fake):
    a, b = integers(6, 80), integers(80, 4, seed=1)
    x = (integers(32) + 1j * integers(32, seed=2)).astype(np.complex64)
    fake.put("a", a.astype(np.float32))
    fake.put("b", b.astype(np.float32))
    fake.put("x", x)
    fake.put("out", np.zeros((6, 4), np.float32))
    fake.put("there", np.zeros_like(x))
    fake.put("back", np.zeros_like(x))
    ops = [{"op": "launch", **matmul(6, 4, 80)}, {"op": "launch", **fft(32, args=buffers("x", "there"))},
           {"op": "launch", **fft(32, inverse=True, args=buffers("there", "back"))}]
    ran = batch_client.send(fake.client, S + "/batches", {"ops": ops}, {})
    assert ran.status == 200, ran
    assert [op["engine"] for op in ran.message["ops"]] == ["vendor"] * 3
    assert np.array_equal(fake.get("out", np.float32).reshape(6, 4), a @ b)
    assert np.allclose(fake.get("back", np.complex64), x, atol=1e-5)
    assert fake.client.put(S + "/programs/p", {"ops": ops}).status == 201
    for factor in (2, 3):
        for name, array in (("a", factor * a.astype(np.float32)), ("x", factor * x)):
            assert fake.client.put_octets(f"{S}/buffers/{name}/data", array.tobytes()).status == 204
        run = batch_client.send(fake.client, S + "/programs/p/runs", {}, {})
        assert run.status == 200 and [op["engine"] for op in run.message["ops"]] == ["vendor"] * 3, run
        assert np.array_equal(fake.get("out", np.float32).reshape(6, 4), factor * a @ b)
        assert np.allclose(fake.get("back", np.complex64), factor * x, atol=1e-4)


def test_a_program_s_values_may_change_from_run_to_run(fake):
    a, b = integers(6, 80), integers(80, 4, seed=1)
    fake.put("a", a.astype(np.float32))
    fake.put("b", b.astype(np.float32))
    fake.put("out", np.zeros((6, 4), np.float32))
    once = {"op": "launch", **matmul(2, 4, 8)}
    assert fake.client.put(S + "/programs/p", {"ops": [once, once]}).status == 201
    for m, k in ((2, 8), (6, 80), (3, 80), (2, 8)):
        changed = {"3": {"u64": m}, "5": {"u64": k}}
        run = batch_client.send(fake.client, S + "/programs/p/runs", {"args": {"0": changed, "1": changed}}, {})
        assert run.status == 200, run
        assert np.array_equal(fake.get("out", np.float32)[:m * 4].reshape(m, 4), a.ravel()[:m * k].reshape(m, k) @ b[:k])
    run = batch_client.send(fake.client, S + "/programs/p/runs", {"args": {"0": {"5": {"u64": 0}}}}, {})
    assert (run.status, run.code) == (422, "launch_config_invalid"), run
    assert batch_client.send(fake.client, S + "/programs/p/runs", {}, {}).status == 200


def test_a_run_without_a_session(fake):
    a, b = integers(3, 4).astype(np.float32), integers(4, 2, seed=1).astype(np.float32)
    message = {"ops": [{"op": "alloc", "as": "$a", "segment": "a"}, {"op": "alloc", "as": "$b", "segment": "b"}, {"op": "alloc", "as": "$out", "size": 24},
                       {"op": "launch", **matmul(3, 2, 4, args=buffers("$a", "$b", "$out"))}, {"op": "read", "from": "$out", "segment": "out"}]}
    ran = batch_client.send(fake.client, "/v1/run", message, {"a": a.tobytes(), "b": b.tobytes()})
    assert ran.status == 200, ran
    assert np.array_equal(np.frombuffer(ran.segments["out"], np.float32).reshape(3, 2), a @ b)


def test_plans_make_room_for_each_other(fake):
    """Uses more sizes than are kept, then the first ones again."""
    a, b = integers(1, 2).astype(np.float32), integers(2, PLANS_MAX + 8, seed=1).astype(np.float32)
    fake.put("a", a)
    fake.put("out", np.zeros(PLANS_MAX + 8, np.float32))
    for n in [*range(1, PLANS_MAX + 9), 1, 2, 3]:
        fake.put("b", b[:, :n])
        fake.launch(matmul(1, n, 2))
        assert np.array_equal(fake.get("out", np.float32)[:n], (a @ b[:, :n])[0]), n


def test_workspace_counts_as_memory_of_the_session(fake):
    fake.put("a", np.zeros((2, 64), np.float32))
    fake.put("b", np.zeros((64, 2), np.float32))
    fake.put("out", np.zeros((2, 2), np.float32))
    before = fake.client.get(S).json()["usage"]["memory_bytes"]
    fake.launch(matmul(2, 2, 64, engine="vendor"))
    until(lambda: fake.client.get(S).json()["usage"]["memory_bytes"] == before)  # it is given back in the background
    assert fake.client.put("/v1/sessions/narrow", {"memory_limit": 2048}).status == 201
    for name, size in (("a", 512), ("b", 512), ("out", 16)):
        assert fake.client.put(f"/v1/sessions/narrow/buffers/{name}", {"size": size}).status == 201
    fake.client.post("/v1/sessions/narrow/launches", matmul(2, 2, 64, engine="vendor")).expect(403, "quota_exceeded")
    assert fake.client.delete("/v1/sessions/narrow").status == 204


@pytest.mark.parametrize("flags", [["--vendor-libraries", "off"], []], ids=["off", "absent"])
def test_without_libraries_ours_is_what_there_is(executable, libraries, tmp_path, flags):
    paths = ["--libcuda", libraries["--libcuda"]]
    for flag in ("--libcublaslt", "--libcufft", "--libcusolver"):
        absent = tmp_path / "absent.so"
        absent.write_bytes(b"no library")
        paths += [flag, libraries[flag] if flags else str(absent)]
    folder = tmp_path / "service"
    folder.mkdir()
    service = Service(executable, folder, "--backends", "cuda", *paths, *flags)
    try:
        gpu = Gpu(service)
        assert gpu.client.get("/v1/devices/cuda:0").json()["libraries"] == NONE
        for name in ("a", "b", "out"):
            gpu.put(name, np.zeros(16, np.float32))
        assert "has none" in gpu.refused(matmul(2, 2, 2, engine="vendor"))
    finally:
        service.stop()


def test_settings_name_libraries_that_exist(executable, tmp_path):
    for flag in ("--libcublaslt", "--libcufft", "--libcusolver", "--libopenblas", "--libfftw3", "--libfftw3f"):
        checked = subprocess.run([executable, "--check-config", flag, str(tmp_path / "none.so")], capture_output=True, text=True, timeout=60)
        assert checked.returncode == 2 and flag[2:] in checked.stdout + checked.stderr, checked
    assert subprocess.run([executable, "--check-config", "--vendor-libraries", "maybe"], capture_output=True, timeout=60).returncode == 2
