"""System calls of the front-end that fail with every error they can have there, or return short counts."""
import errno
import http.client

import workload
from campaign import Campaign, until
from shim import SHORT, open_files

# Only faults that can happen. For example, edge-triggered waiting relies on it that a socket that moves less than it could is empty or
# full.
FAULTS = {
    "recv": [errno.ECONNRESET, errno.ETIMEDOUT, errno.ENOMEM],
    "send": [errno.ECONNRESET, errno.EPIPE],
    "sendmsg": [errno.ECONNRESET, errno.EPIPE],
    "accept4": [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ECONNABORTED, errno.EINTR],
    "epoll_wait": [errno.EINTR],
    "poll": [errno.EINTR],
    "mmap": [errno.ENOMEM, errno.EAGAIN],
    "memfd_create": [errno.EMFILE, errno.ENOMEM],
    "ftruncate": [errno.ENOSPC, errno.EINTR],
    "socketpair": [errno.EMFILE],
    "pipe2": [errno.EMFILE, errno.ENFILE],
    "eventfd": [errno.EMFILE],
    "openat": [errno.EMFILE, errno.ENOSPC, errno.EACCES, errno.EIO],
    "open": [errno.EMFILE, errno.EACCES],
    "read": [SHORT, errno.EINTR, errno.EIO],
    "write": [SHORT, errno.EINTR, errno.ENOSPC, errno.EIO],
    "fsync": [errno.EIO, errno.ENOSPC],
    "renameat": [errno.EIO, errno.ENOSPC],
    "waitpid": [errno.EINTR],
    "posix_spawn": [errno.EAGAIN, errno.ENOMEM],
    "pthread_create": [errno.EAGAIN],
    "getrandom": [errno.EINTR],
}
OFTEN = {"recv", "send", "sendmsg", "epoll_wait", "poll", "accept4"}  # by every request
FILES = {"openat", "open", "read", "write", "fsync", "renameat"}       # by a compilation; the others by a worker's start
HONEST = {"out_of_memory", "overloaded", "no_worker", "compiler_unavailable", "worker_lost", "compiler_crashed", "session_faulted", "internal"}


def try_once(client, name):
    """The answer, or None when the connection broke."""
    try:
        return workload.REQUESTS[name][0](client)
    except (http.client.HTTPException, ConnectionError):
        client.close()
        return None


def undo(client, name):
    try:
        workload.REQUESTS[name][1](client)
    except (http.client.HTTPException, ConnectionError):
        client.close()


def fresh_source(client, number):
    """Compiles code that is in no cache."""
    return client.put_cuda(workload.S + "/modules/n", f"extern \"C\" __global__ void k{number}() {{}}")


def test_system_calls_that_fail(shimmed):
    service, shim = shimmed("--pool-size", "1")
    client = service.client_in("r")
    workload.prepare(client)
    kinds = list(workload.REQUESTS)
    usual = {name: (workload.REQUESTS[name][0](client).status, undo(client, name))[0] for name in kinds}
    files = open_files(service.process.pid)
    unused = 0
    with Campaign("system calls", 8, 0.2) as c:
        while c.due():
            function = c.random.choice(list(FAULTS))
            error = c.random.choice(FAULTS[function])
            often = function in OFTEN
            after = c.random.randrange(30 if often else 4)
            c.note = f"the last: {function} {errno.errorcode.get(error, 'short')} after {after}"
            shim.arm(function, after, error, times=c.random.choice([1, 1, 3]))
            for name in c.random.sample(kinds, 6) if often else [] if function in FILES else ["session put"]:
                answer = try_once(client, name)
                if answer is not None and answer.status != usual[name] and not 200 <= answer.status < 300:
                    assert answer.status >= 400 and answer.code, (function, error, name)
                    assert answer.status == 409 or answer.code in HONEST, (function, error, name, answer)
                undo(client, name)
            if function in FILES or function == "posix_spawn":
                fresh_source(client, c.injected)
                undo(client, "module of ptx")
            hits = shim.disarm()
            if not hits:
                unused += 1
                continue
            c.fault(hits)
            assert service.process.poll() is None, (function, error, service.stderr()[-4000:])
            until(lambda: works(client), f"{function}, {errno.errorcode.get(error, 'short')}: does not recover")
            c.recovered(hits)
        c.note = f"{unused} that no call met"
    client.delete(workload.S), client.delete("/v1/sessions/r")
    client.close()
    until(lambda: open_files(service.process.pid) <= files + 4, lambda: (files, open_files(service.process.pid)))


def works(client):
    """The session computes; if a fault took its worker, it reports that and is reset."""
    client.close()
    try:
        info = client.get(workload.S)
        if info.json()["state"] == "faulted":
            client.post(workload.S + "/reset")
            workload.prepare(client)
        return workload.REQUESTS["launch"][0](client).status == 200 and client.get(workload.S + "/buffers/big/data").status == 200
    except (AssertionError, http.client.HTTPException, ConnectionError):
        client.close()
        return False


def test_the_time_of_day_jumps(shimmed, tmp_path):
    service, shim = shimmed()
    client = service.client()
    workload.prepare(client)
    with Campaign("the time of day jumps", 1, 0.02) as c:
        while c.due():
            for days in (1, -1, 400, -400, 0):
                shim.jump(days * 86400 + c.random.random())
                c.fault()
                for name in ("launch", "session get", "batch", "module from the cache", "session put", "data put, long"):
                    assert try_once(client, name).status in (200, 201, 204), (name, days)
                    undo(client, name)
                waited = client.post(workload.S + "/launches", workload.launch("endless", {"buf": "x"}, timeout_ms=60000), Prefer="respond-async")
                assert client.get(waited.headers["Location"], Prefer="wait=1").json()["state"] in ("running", "queued"), "a deadline came early"
                assert client.delete(waited.headers["Location"] + "?force=1").status in (200, 202, 204)
                until(lambda: client.get(workload.S).json()["state"] == "ready", "the session was not reset")
                workload.prepare(client)
                c.recovered()
