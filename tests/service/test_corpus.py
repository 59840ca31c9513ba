"""Every kernel of tests/corpus, compiled and run through the service. Each result is compared with an H200's (integers equal, floats within
the launch's bounds) and, where that is not stored whole, with a model on the host. The last test prints the totals. corpus_items.py has the
launches; corpus_models.py has the models."""
import math
import os
import re

import pytest

import corpus_items
from corpus_items import Buffer, Item, SOURCES, Scalar
from corpus_models import MODELS

FILES = sorted(SOURCES.glob("*.cu"))
KERNELS = 124
HELLO = [f"hello from block 0 thread {t}: {1.5 * t:f} str {2 << 40}" for t in range(2)]
# Not in kernels.def, whose other reader cannot launch cooperatively.
COOPERATIVE = {"cg_grid"}
MORE_ITEMS = {"coopgroups": [("cg_grid", [2, 1, 1], [128, 1, 1], "fr1000 fz1000 =1000")]}
# Results that no table can predict, such as the clock's time.
NO_WITNESS = {"timing": "its result is the time that passed", "hello": "its result is the text"}

# With its stored inputs it writes a[16 + a[6]] of 20 elements. Allocations are rounded up, so only memcheck notices.
OUT_OF_BOUNDS = {"atom_all"}

seen = {}  # file -> {kernel: None or why it did not run}
witnesses = {"stored answers of an H200": set(), "models on the host": set()}


@pytest.fixture(scope="module")
def golden():
    return corpus_items.goldens()


def name_of(path):
    return re.sub(r"^\d+_", "", path.stem)


def items_of(file):
    more = [Item(file, kernel, grid, block, 0, 0, 0, arguments) for kernel, grid, block, arguments in MORE_ITEMS.get(file, [])]
    return corpus_items.items_of(file) + more


def compile_file(client, session, path):
    made = client.put_cuda(session + "/modules/m", path.read_text()).expect(201)
    return {kernel["mangled"]: kernel for kernel in made.json()["kernels"]}


def request_of(item, kernel, names):
    arguments = [{"buf": names[k]} if isinstance(argument, Buffer) else argument for k, argument in enumerate(item.arguments)]
    if item.in_struct:
        arguments = [{"struct": [a.argument(4) if isinstance(a, Scalar) else a for a in arguments]}]
    else:
        arguments = [a.argument(kernel["params"][k]["size"]) if isinstance(a, Scalar) else a for k, a in enumerate(arguments)]
    cooperative = {"cooperative": True} if item.kernel in COOPERATIVE else {}
    return {"module": "m", "kernel": item.kernel, "grid": item.grid, "block": item.block, "shared_bytes": item.shared_bytes,
            "args": arguments, **cooperative}


def upload(client, session, item, number):
    """Argument -> name of its buffer."""
    names = {k: f"b{number}_{k}" for k, argument in enumerate(item.arguments) if isinstance(argument, Buffer)}
    for k, name in names.items():
        assert client.put_octets(f"{session}/buffers/{name}", item.arguments[k].initial).status == 201
    return names


def download(client, session, names):
    after = {}
    for k, name in names.items():
        answer = client.get(f"{session}/buffers/{name}/data").expect(200)
        after[k] = answer.body
        assert client.delete(f"{session}/buffers/{name}").status == 204
    return after


def check_against_golden(item, after, golden):
    """Compares with the golden; returns whether there is one."""
    known = False
    for number, (k, data) in enumerate(sorted(after.items())):
        buffer = item.arguments[k]
        if not buffer.compared or (item.key, number) not in golden:
            continue
        known = True
        assert corpus_items.agrees(item, buffer, buffer.bits(data), golden[item.key, number]), \
            f"{item.kernel}: argument {k} is not what the GPU left: {buffer.numbers(data)[:8]}"
    return known


def close(got, want, rel, absolute):
    if want is None or got == want:
        return True
    if math.isnan(want):
        return math.isnan(got)
    return abs(got - want) <= absolute + rel * abs(want)


def check_against_model(item, after):
    """Compares with the model; returns whether there is one."""
    if item.kernel not in MODELS:
        return False
    function, rel, absolute = MODELS[item.kernel]
    before = [a.numbers(a.initial) if isinstance(a, Buffer) else a.value for a in item.arguments]
    for k, wanted in function(item, *before).items():
        got = item.arguments[k].numbers(after[k])
        got = sorted(got) if item.arguments[k].mode == "w" else got
        assert len(got) == len(wanted), (item.kernel, k, len(got), len(wanted))
        wrong = [(i, g, w) for i, (g, w) in enumerate(zip(got, wanted)) if not close(g, w, rel, absolute)]
        assert not wrong, f"{item.kernel}: argument {k} has {len(wrong)} wrong elements (index, got, expected): {wrong[:4]}"
    return True


def check_results(item, launch, after, golden):
    if item.kernel == "hello":
        assert sorted(launch["stdout"].splitlines()) == HELLO
    if item.kernel == "timing":
        assert all(item.arguments[k].numbers(data)[0] > 0 for k, data in after.items())
    known = check_against_golden(item, after, golden)
    modelled = check_against_model(item, after)
    whole = item.exact or not any(item.arguments[k].infinity for k in after)
    assert modelled or whole or item.kernel in NO_WITNESS, f"only samples of {item.kernel} are stored"
    assert known or modelled or item.kernel in NO_WITNESS, f"nothing says what {item.kernel} should compute"
    for kind, has in zip(witnesses.values(), (known, modelled)):
        if has:
            kind.add((item.file, item.kernel))


def refused_by_name(client, session, answer):
    """The reason when the device lists a feature that the kernel needs as unsupported."""
    device = client.get(session).json()["device"]
    unsupported = client.get(f"/v1/devices/{device}").json()["unsupported"]
    if "cooperative_grid_sync" not in unsupported:
        return None
    assert answer.status >= 400, answer
    return "the device lists cooperative_grid_sync as unsupported, and refused the launch with " + answer.code


def run_item(client, session, item, number, kernel, golden):
    """None, or why it did not run."""
    names = upload(client, session, item, number)
    answer = client.post(session + "/launches", request_of(item, kernel, names), Prefer="wait=60")
    reason = refused_by_name(client, session, answer) if item.kernel in COOPERATIVE else None
    if not reason:
        assert answer.status == 200 and answer.json()["state"] == "succeeded", (item.kernel, answer)
        check_results(item, answer.json(), download(client, session, names), golden)
    return reason


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_kernel_of(path, client, session, golden):
    kernels = compile_file(client, session, path)
    ran = {}
    for number, item in enumerate(items_of(name_of(path))):
        ran[item.kernel] = run_item(client, session, item, number, kernels[item.kernel], golden)
    assert set(ran) == set(kernels), "a kernel without a launch, or a launch without a kernel"
    seen[path] = ran


def test_all_kernels_ran(capsys):
    if len(seen) != len(FILES):
        pytest.skip(f"only {len(seen)} of {len(FILES)} files passed or were chosen")
    reasons = {kernel: why for ran in seen.values() for kernel, why in ran.items() if why}
    total = sum(len(ran) for ran in seen.values())
    with capsys.disabled():
        print(f"\ncorpus on {os.environ.get('GPUREST_TEST_BACKENDS', 'cpu')}: {total - len(reasons)} of {total} kernels of {len(FILES)} files ran")
        for what, kernels in witnesses.items():
            print(f"    {len(kernels)} agree with {what}")
        for kernel, why in {**NO_WITNESS, **reasons}.items():
            print(f"    {kernel}: {why}")
    assert total == KERNELS


def test_a_wrong_result_would_be_noticed(golden):
    item = items_of("vadd")[0]
    untouched = {k: a.initial for k, a in enumerate(item.arguments) if isinstance(a, Buffer)}
    with pytest.raises(AssertionError, match="not what the GPU left"):
        check_against_golden(item, untouched, golden)
    item = next(item for item in items_of("elementwise_math") if item.kernel in MODELS)
    untouched = {k: a.initial for k, a in enumerate(item.arguments) if isinstance(a, Buffer)}
    with pytest.raises(AssertionError, match="wrong elements"):
        check_against_model(item, untouched)


@pytest.mark.parametrize("kernel,value", [("trapper", 42), ("check", -1)])
def test_kernels_that_give_up(client, session, kernel, value):
    compile_file(client, session, SOURCES / "21_printf_assert.cu")
    client.put_octets(session + "/buffers/a", value.to_bytes(4, "little", signed=True) * 4)
    arguments = [{"buf": "a"}] + ([{"i32": 4}] if kernel == "check" else [])
    answer = client.post(session + "/launches", {"module": "m", "kernel": kernel, "grid": [1], "block": [4], "args": arguments})
    assert answer.code == "kernel_fault", answer


@pytest.fixture
def checked_session(client, session):
    """A session of the cpu device that checks every access."""
    path = session + "m"
    made = client.put(path, {"memcheck": True})
    if not made.json().get("device", "").startswith("cpu"):
        client.delete(path)
        pytest.skip("only the cpu device checks accesses")
    assert made.status == 201, made
    yield path
    assert client.delete(path).status == 204


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_checked_accesses_of(path, client, checked_session, golden):
    """The results are the same with every access checked, and the one bug in the launches is found."""
    kernels = compile_file(client, checked_session, path)
    items = items_of(name_of(path))
    for number, item in enumerate(item for item in items if item.kernel not in OUT_OF_BOUNDS):
        run_item(client, checked_session, item, number, kernels[item.kernel], golden)
    for item in (item for item in items if item.kernel in OUT_OF_BOUNDS):
        names = upload(client, checked_session, item, len(items))
        answer = client.post(checked_session + "/launches", request_of(item, kernels[item.kernel], names))
        assert answer.code == "kernel_fault" and "illegal write" in answer.json()["detail"], answer
