"""Every resource of a session and a device is used up: a clear refusal, then a session that computes correctly, and everything is given
back."""
import http.client
import threading
import time

from gpu_place import VADD

TINY = 'extern "C" __global__ void tiny(int *p) { *p = 1; }'
BUFFERS_AT_ONCE = 4096
BUFFERS_MOST = 65536
CALLS_MOST = 1100
TOGETHER_MOST = 4  # sessions that are exhausted at the same time: more would take the client's processor


def refused(answer, *codes):
    assert answer.status >= 400 and answer.code in codes, answer
    assert answer.json()["limit"]["name"], answer
    return answer.code


def until_refused(ask, *codes):
    """How many calls succeeded, and the code of the one that failed."""
    for i in range(CALLS_MOST):
        answer = ask(i)
        if answer.status >= 400:
            return i, refused(answer, *codes)
    raise AssertionError(f"{CALLS_MOST} times and never refused")


def put_buffer(place, name, size):
    made = place.client.put(f"{place.path}/buffers/{name}", {"size": size})
    assert made.status == 201, (name, size, made, place.client.get(place.path + "/memory"))


def delete_buffer(place, name):
    gone = place.client.delete(f"{place.path}/buffers/{name}")
    assert gone.status == 204, (name, gone)


def free_bytes(place):
    return place.client.get("/v1/devices/" + place.device).json()["memory"]["free_bytes"]


def memory(place, bench):
    """A sixteenth of the free memory, repeatedly; on a device in host memory, more than there is at once."""
    piece = free_bytes(place) // 16 if bench.options.backend != "cpu" else free_bytes(place) * 4
    count, code = until_refused(lambda i: place.client.put(f"{place.path}/buffers/m{i}", {"size": piece}), "device_memory_exhausted", "quota_exceeded")
    for i in range(count):
        delete_buffer(place, f"m{i}")
    return code


def fragments(place, bench):
    """Many sizes, every other one freed, then large ones in between."""
    random, most = bench.options.random, 1 << (28 if bench.options.backend != "cpu" else 20)
    names = [f"f{i}" for i in range(100)]
    for name in names:
        put_buffer(place, name, random.randrange(1, most))
    for name in names[::2]:
        delete_buffer(place, name)
    for name in names[::2]:
        put_buffer(place, name, random.randrange(most, 2 * most))
    assert place.is_right(), "after all that vadd is wrong"
    for name in names:
        delete_buffer(place, name)
    return "no refusal"


def tiny_buffers(place, bench):
    """100,000 do not fit into a session: as many as fit, then one more."""
    ops = [{"op": "alloc", "as": f"$t{i}", "size": 1} for i in range(BUFFERS_AT_ONCE)]
    message = {"ops": ops, "keep": [op["as"] for op in ops]}
    done = 0
    while (answer := place.client.post(place.path + "/batches", message)).status == 200:
        done += len(answer.json()["kept"])
        assert done < BUFFERS_MOST
    code = refused(answer, "quota_exceeded", "device_memory_exhausted")
    assert done >= BUFFERS_MOST - 2 * BUFFERS_AT_ONCE
    place.recover()
    return code


def modules(place, bench):
    code = until_refused(lambda i: place.client.put_cuda(f"{place.path}/modules/m{i}", TINY), "quota_exceeded")[1]
    place.recover()
    return code


def streams_and_programs(place, bench):
    code = until_refused(lambda i: place.client.post(place.path + "/launches", {**VADD, "stream": f"s{i}"}), "quota_exceeded")[1]
    until_refused(lambda i: place.client.put(f"{place.path}/programs/p{i}", {"ops": [{"op": "launch", **VADD}] * 2}), "quota_exceeded")
    place.recover()
    return code


ALONE = (memory, fragments)  # they use up the device, which others need
TOGETHER = (tiny_buffers, modules, streams_and_programs)
KINDS = ALONE + TOGETHER


def allocated(place):
    assert place.client.post(place.path + "/memory/trim").status == 200
    return place.client.get(place.path + "/memory").json()["allocated_bytes"]


def returned(place, bench, before):
    """Waits until the device has as much free memory as before, but for 64 MiB: it clears freed memory, which takes a moment. Not checked
    on a device in host memory, which others use, too."""
    until = time.monotonic() + 60
    while bench.options.backend != "cpu" and (now := free_bytes(place)) < before - (64 << 20):
        assert time.monotonic() < until, f"{before - now} bytes of the device do not come back"
        time.sleep(0.005)
    return time.monotonic()


def exhaust(place, bench, tally, kinds, below, before):
    """Until `below` have been done. `before`: what must be free on the device after each; None if others use it at the same time."""
    place.renew()
    usual = allocated(place)
    while (n := tally.take(below)) is not None:
        kind = kinds[n % len(kinds)]
        try:
            code = kind(place, bench)
            at = time.monotonic()
            assert place.is_right(), "after it vadd is wrong"
            now = allocated(place)
            assert now == usual, f"{now - usual} bytes are still allocated"
            tally.end(f"{kind.__name__}: {code}", (time.monotonic() if before is None else returned(place, bench, before)) - at)
        except (AssertionError, http.client.HTTPException, OSError) as e:
            tally.end(kind.__name__, lost=f"{type(e).__name__}: {e}")
            place.renew()
            usual = allocated(place)
    place.drop()


def exhaustion(bench, tally):
    """Exhausts the device one after the other, then sessions, several at a time."""
    first = bench.place("bad", "exhausted")
    first.renew()
    before = free_bytes(first)
    exhaust(first, bench, tally, ALONE, tally.most * len(ALONE) // len(KINDS), before)

    def work(number):
        exhaust(bench.place("bad", f"exhausted{number}"), bench, tally, TOGETHER, None, None)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(min(bench.options.threads, TOGETHER_MOST))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
