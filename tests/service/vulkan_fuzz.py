"""Gives mutations of SPIR-V to a vulkan device, and what is accepted is launched, while another session computes, which must never notice:
python3 tests/service/vulkan_fuzz.py GPURESTD [--mutations 100000] [--minutes M] [--seed 25] [--threads 2]. Prints how often what happened."""
import argparse
import collections
import json
import pathlib
import random
import struct
import sys
import tempfile
import threading
import time

from service_under_test import Service

SCALE = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 3) const uint SCALE = 2;
layout(binding = 2) readonly buffer From { float from[]; };
layout(binding = 5) buffer To { float to[]; };
layout(push_constant) uniform Push { uint n; float plus; };
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        to[i] = from[i] * SCALE + plus;
}
"""
# Loops, barriers, shared memory, atomics, a function with an array of its own, a switch, and a device address.
SEEDS = {"scale": SCALE, "reduce": """#version 450
layout(local_size_x_id = 0) in;
layout(binding = 0) readonly buffer From { uint from[]; };
layout(binding = 1) buffer To { uint to[]; };
layout(push_constant) uniform Push { uint n; };
shared uint part[gl_WorkGroupSize.x];
uint mixed(uint at)
{
    uint own[4] = uint[4](at, at + 1, at * 3, 7u);
    switch (at % 3) {
    case 0: return own[at % 4];
    case 1: return own[0] ^ own[2];
    }
    return bitCount(at);
}
void main()
{
    uint t = gl_LocalInvocationID.x, sum = 0;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_WorkGroupSize.x * gl_NumWorkGroups.x)
        sum += from[i] + mixed(i);
    part[t] = sum;
    barrier();
    for (uint step = gl_WorkGroupSize.x / 2; step > 0; step /= 2) {
        if (t < step)
            part[t] += part[t + step];
        barrier();
    }
    if (t == 0)
        atomicAdd(to[0], part[0]);
}
""", "address": """#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 4) in;
layout(buffer_reference, std430) buffer Words { uint at[]; };
layout(push_constant) uniform Push { Words words; uint value; };
void main()
{
    words.at[gl_LocalInvocationID.x] = value + uint(exp(float(gl_LocalInvocationID.x)));
}
"""}
HEADER_WORDS = 5
OP_CONSTANT, OP_SPEC_CONSTANT = 43, 50
DEADLINE_MS = 2000  # of a mutation's launch
MODULES_OF_A_SESSION = 300


def instructions(words):
    """Where each one begins, up to what is none."""
    at, found = HEADER_WORDS, []
    while at < len(words) and words[at] >> 16 and at + (words[at] >> 16) <= len(words):
        found.append(at)
        at += words[at] >> 16
    return found


def mutate(code, rng):
    """One to five changes: of a word, of an operand, of an operation, of the order or the number of instructions."""
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        places = instructions(words)
        if not places:
            break
        at = rng.choice(places)
        length = words[at] >> 16
        way = rng.randrange(13)
        anywhere = rng.randrange(len(words))
        if way <= 2 and length > 1:  # an operand: another id, a small number, a bit
            operand = at + rng.randrange(1, length)
            words[operand] = rng.choice((rng.randrange(max(2, words[3] & 0xffff)), rng.randrange(64), words[operand] ^ 1 << rng.randrange(32), 0xffffffff))
        elif way == 3:
            words[anywhere] = rng.choice((rng.getrandbits(32), rng.choice(words), words[anywhere] ^ 1 << rng.randrange(32)))
        elif way == 4:
            words[at] = words[at] & 0xffff0000 | rng.choice((rng.randrange(400), words[rng.choice(places)] & 0xffff))
        elif way == 5:
            del words[at:at + length]
        elif way == 6:
            words[at:at] = words[at:at + length]
        elif way == 7:
            other = rng.choice(places)
            taken = words[at:at + length]
            del words[at:at + length]
            words[min(other, len(words)):min(other, len(words))] = taken
        elif way >= 9:  # what the validator often takes: another constant, or an operand from an instruction of the same kind
            kinds = (OP_CONSTANT, OP_SPEC_CONSTANT) if way >= 11 else (words[at] & 0xffff,)
            alike = [place for place in places if place + 3 < place + (words[place] >> 16) <= len(words) and words[place] & 0xffff in kinds]
            if alike and way >= 11:
                words[rng.choice(alike) + 3] = rng.choice((0, 1, 2, 31, 64, 65535, 0x7fffffff, 0x80000000, 0xffffffff, rng.getrandbits(32)))
            elif alike:
                to, source = rng.choice(alike), rng.choice(alike)
                place = rng.randrange(3, min(words[to] >> 16, words[source] >> 16))
                words[to + place] = words[source + place]
        else:
            words[at + 1:at + length] = [rng.choice(words) for _ in range(length - 1)]
    return struct.pack(f"<{len(words)}I", *words)


class Bystander:
    """A session that computes all the time; `harm` is what it noticed."""

    def __init__(self, service):
        self.client, self.path = service.client(), "/v1/sessions/bystander"
        self.client.put(self.path, {"device": "vulkan:0"}).expect(201)
        self.client.request("PUT", self.path + "/modules/m", SCALE, {"Content-Type": "text/x-glsl"}).expect(201)
        self.client.put_octets(self.path + "/buffers/a", struct.pack("<100f", *range(100))).expect(201)
        self.client.put(self.path + "/buffers/b", {"size": 400}).expect(201)
        self.computed, self.harm, self.over = 0, [], threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            while not self.over.is_set() and not self.harm:
                self.compute(self.computed % 1000)
                self.computed += 1
                time.sleep(0.01)
        except Exception as why:  # noqa: BLE001 whatever it is, it is harm
            self.harm.append(repr(why))

    def compute(self, plus):
        answer = self.client.post(self.path + "/launches", {"module": "m", "kernel": "main", "grid": [2],
                                                            "args": [{"buf": "a"}, {"buf": "b"}, {"u32": 100}, {"f32": plus}]})
        got = self.client.get(self.path + "/buffers/b/data").body if answer.status == 200 else b""
        if got != struct.pack("<100f", *(2 * i + plus for i in range(100))):
            self.harm.append(f"{answer!r}: {got[:16]!r}")

    def end(self):
        self.over.set()
        self.thread.join()
        self.client.close()


class Attacker:
    """Sends mutations from a session of its own, which it makes anew whenever that was lost."""

    def __init__(self, service, seeds, seed):
        self.client, self.seeds, self.rng = service.client(timeout=120), seeds, random.Random(seed)
        self.tally, self.session, self.used, self.strange = collections.Counter(), None, 0, []

    def renew(self):
        if self.session:
            self.client.delete(self.session)
        self.session, self.used = "/v1/sessions/" + self.client.post("/v1/sessions", {"device": "vulkan:0"}).expect(201).json()["id"], 0
        for name, fill in (("a", range(100)), ("b", [0] * 100)):
            self.client.put_octets(f"{self.session}/buffers/{name}", struct.pack("<100f", *fill)).expect(201)

    def note(self, what, answer):
        """Answers are those of the contract: success, a refusal with a name, or the loss of this session."""
        code = "ok" if answer.status < 300 else answer.code
        self.tally[f"{what} {code}"] += 1
        if answer.status >= 500 and code not in ("session_lost", "session_faulted", "worker_lost", "execution_timeout", "kernel_fault", "compiler_crashed", "compile_timeout",
                                                 "insufficient_storage", "out_of_memory", "device_out_of_memory"):
            self.strange.append(f"{what}: {answer!r}")
        return code == "ok"

    def launch(self, module, kernel):
        args = [{"buf": "a"} if p["size"] == 8 and i % 2 == 0 else {"buf": "b"} if p["size"] == 8 else {"u32": 100} if p["type"] != "f32" else {"f32": 1}
                for i, p in enumerate(kernel["params"])]
        body = {"module": module, "kernel": kernel["name"], "grid": [2], "args": args, "timeout_ms": DEADLINE_MS}
        if kernel["block"][0] == 0:
            body["block"] = [32]
        return self.note("launch", self.client.post(self.session + "/launches", body))

    def once(self):
        if not self.session or self.used >= MODULES_OF_A_SESSION:
            self.renew()
        self.used += 1
        code = mutate(self.rng.choice(self.seeds), self.rng)
        made = self.client.request("PUT", f"{self.session}/modules/m{self.used}", code, {"Content-Type": "application/spirv"})
        self.tally["mutations"] += 1
        if self.note("load", made):
            for kernel in made.json()["kernels"]:
                self.launch(f"m{self.used}", kernel)
            self.client.delete(f"{self.session}/modules/m{self.used}")
        if self.client.get(self.session).json().get("state") != "ready":
            self.tally["sessions lost"] += 1
            self.renew()


def seeds_of(service):
    """The sources as SPIR-V."""
    client, session, found = service.client(), "/v1/sessions/seeds", []
    client.put(session, {"device": "vulkan:0"}).expect(201)
    for name, source in SEEDS.items():
        client.request("PUT", f"{session}/modules/{name}", source, {"Content-Type": "text/x-glsl"}).expect(201)
        found.append(client.get(f"{session}/modules/{name}/code").expect(200).body)
    client.delete(session)
    client.close()
    return found


def campaign(service, mutations, seed, threads=1, seconds=1e9, tell=None):
    """The tally, and what must not be: harm to the other session, and answers that nobody expects. The service must have no crash budget."""
    seeds, bystander, ends = seeds_of(service), Bystander(service), time.monotonic() + seconds
    attackers = [Attacker(service, seeds, seed + i) for i in range(threads)]
    left = threading.Semaphore(mutations)
    broken = []

    def attack(one):
        try:
            while time.monotonic() < ends and not bystander.harm and left.acquire(blocking=False):
                one.once()
        except Exception as why:  # noqa: BLE001 told with the rest
            broken.append(repr(why))

    running = [threading.Thread(target=attack, args=(one,)) for one in attackers]
    for thread in running:
        thread.start()
    while any(thread.is_alive() for thread in running):
        running[0].join(60) if running[0].is_alive() else time.sleep(1)
        if tell:
            tell(sum((one.tally for one in attackers), collections.Counter()), bystander)
    bystander.end()
    for one in attackers:
        if one.session:
            one.client.delete(one.session)
        one.client.close()
    tally = sum((one.tally for one in attackers), collections.Counter())
    tally["the other session's results"] = bystander.computed
    return tally, bystander.harm + broken + [text for one in attackers for text in one.strange]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpurestd")
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpurest-spirv.") as folder:
        service = Service(args.gpurestd, pathlib.Path(folder), "--backends", "vulkan", "--crash-budget", "0")
        tally, bad = campaign(service, args.mutations, args.seed, args.threads, 60 * args.minutes,
                              lambda t, b: print(json.dumps({**t, "results": b.computed}), flush=True))
        service.stop()
    for what, count in sorted(tally.items()):
        print(f"{count:8}  {what}")
    for text in bad[:20]:
        print("BAD", text)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
