"""What one caller leaves on a device, and whether the next one can find it: memory, shared and local memory, variables, printed text."""
import http.client
import itertools
import struct
import time

from gpu_sources import KEY, LEAKS, PATTERN

SHARED_BYTES = 48 * 1024
LOOKING_BLOCKS = 528  # more than any device runs at once
PIECES = 8  # number of buffers that the memory is split into


def allocate(client, path, device, options):
    """Allocates buffers over all free memory; their sizes."""
    free = client.get("/v1/devices/" + device).json()["memory"]["free_bytes"]
    size = (options.mib << 20 if options.mib else free * 9 // 10) // PIECES // 8 * 8
    sizes = []
    for i in range(PIECES):
        made = client.put(f"{path}/buffers/m{i}", {"size": size})
        if made.status != 201:  # the previous caller's memory may not be completely free yet
            break
        sizes.append(size)
    assert len(sizes) >= PIECES - 1, f"only {len(sizes)} buffers of {size} bytes"
    return sizes


def launch(client, path, kernel, args, **more):
    done = client.post(path + "/launches", {"module": "l", "kernel": kernel, "grid": [264], "block": [256], "args": args, "timeout_ms": 60000, **more})
    assert done.status == 200, done
    return done.json().get("stdout") or ""


def look(client, path, sizes):
    """How many words of the pattern are in all free memory."""
    key = {"u64": str(KEY)}
    text = launch(client, path, "look_in_block", [{"buf": "found"}, key, {"i32": SHARED_BYTES // 8}], shared_bytes=SHARED_BYTES, grid=[LOOKING_BLOCKS])
    text += launch(client, path, "look_in_module", [{"buf": "found"}, key], grid=[1])
    for i, size in enumerate(sizes):
        text += launch(client, path, "look_in_memory", [{"buf": f"m{i}"}, {"u64": str(size // 8)}, {"buf": "found"}, key])
    return struct.unpack("<Q", client.get(path + "/buffers/found/data").body)[0], text


def leave(client, path, sizes):
    """Writes the pattern wherever possible, and finds it again."""
    mark = {"u64": str(PATTERN)}
    for i in range(len(sizes)):
        assert client.post(f"{path}/buffers/m{i}/fill", {"pattern": mark}).status == 204
    launch(client, path, "leave_in_block", [mark, {"i32": SHARED_BYTES // 8}], shared_bytes=SHARED_BYTES)
    text = launch(client, path, "leave_in_module", [mark], grid=[1])
    assert f"{PATTERN:x}" in text, text
    assert look(client, path, sizes)[0] >= sum(sizes) // 8 + 4096, "the pattern was not left"


def visit(client, path, device, options):
    """One caller's session from beginning to end; returns what it found before it wrote anything."""
    assert client.put(path, {"device": device}).status == 201
    assert client.put_cuda(path + "/modules/l", LEAKS).status == 201
    assert client.put_octets(path + "/buffers/found", bytes(8)).status == 201
    sizes = allocate(client, path, device, options)
    found = look(client, path, sizes)
    leave(client, path, sizes)
    assert client.delete(path).status == 204
    return found, sum(sizes)


def judge(tally, found, took_s):
    count, text = found
    if count or "secret" in text:
        tally.end("a caller after another", wrong=f"{count} words of the pattern, text {text[:80]!r}")
    else:
        tally.end("a caller after another", took_s)


def leaks(bench, tally):
    """Two callers in turn: each searches for what the previous one left, and leaves something for the next. The first visit cannot find
    anything."""
    callers = itertools.cycle(((bench.client("first"), "/v1/sessions/left"), (bench.client("second"), "/v1/sessions/found")))
    left = False
    while not tally.is_full() and (not left or tally.take() is not None):
        client, path = next(callers)
        client.timeout, at = 120, time.monotonic()
        try:
            found, size = visit(client, path, bench.options.device, bench.options)
        except (AssertionError, http.client.HTTPException, OSError) as e:
            client.close()
            client.delete(path)
            if not left:
                raise
            tally.end("a caller after another", lost=f"{type(e).__name__}: {e}")
            continue
        if left:
            judge(tally, found, time.monotonic() - at)
        else:
            tally.notes.append(f"{size >> 20} MiB looked through, {LOOKING_BLOCKS} blocks of {SHARED_BYTES >> 10} KiB shared memory")
        left = True
