"""Nodes that are jobs of Slurm: deploy/slurm starts them on a cluster of two, the router hears of them, drains and forgets them."""
import os
import pathlib
import pty
import shlex
import subprocess

import pytest

import fleet as fleets
import routers
import slurm
from service_under_test import Client, until

SLURM = routers.ROOT / "deploy" / "slurm"
WHY_NOT = slurm.missing() or routers.missing("haproxy") and routers.missing("haproxy") + " is not installed"
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=str(WHY_NOT))


class Site:
    """The cluster, the router, and what remakes its configuration when nodes come and go."""

    def __init__(self, executable, folder):
        self.folder, self.executable = pathlib.Path(folder), executable
        self.nodes, self.processes = self.folder / "nodes", []
        self.nodes.mkdir()
        *ports, self.port, peer = fleets.free_ports(5)
        self.cluster = slurm.Cluster(self.folder, ports, f"#!/bin/sh\nFLEET_NODES={shlex.quote(str(self.nodes))} exec {SLURM}/epilog.sh\n")
        self.config = self.folder / "haproxy.cfg"
        pid = self.folder / "haproxy.pid"
        self._run(routers.CONFIGURE, self.nodes, "--watch", "--output", self.config, "--bind", f"127.0.0.1:{self.port}", "--peer", f"r1=127.0.0.1:{peer}",
                  "--socket", self.folder / "admin.sock", "--then", f"kill -USR2 $(cat {pid})")

    def _run(self, *command):
        self.processes.append(subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=open(self.folder / "out", "ab"),
                                               stderr=subprocess.STDOUT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}))

    def route(self):
        until(self.config.exists, "no configuration is made")
        self._run("haproxy", "-W", "-p", self.folder / "haproxy.pid", "-f", self.config)

    def submit(self, **variables):
        """The job's id."""
        exports = {"FLEET_NODES": self.nodes, "GPURESTD": self.executable, "FLEET_ADDRESS": "127.0.0.1", "GPUREST_LISTEN": "127.0.0.1:0", **variables}
        job = self.cluster.call("sbatch", "--parsable", f"--output={self.folder}/job-%j.out", "--export=ALL," + ",".join(f"{k}={v}" for k, v in exports.items()),
                                str(SLURM / "gpurest.sbatch"), "--backends", "cpu", "--trusted-proxy", "127.0.0.1", cwd=self.folder).strip()
        assert job.isdigit(), self.cluster.told("slurmctld.log")
        return job

    def told(self, job):
        return self.cluster.told(f"job-{job}.out")

    def node_of(self, job):
        """The name of the node that the job has told the router of."""
        return until(lambda: [one.name for one in self.nodes.glob(f"*-{job}")], lambda: self.told(job))[0]

    def client(self):
        return Client("127.0.0.1", self.port)

    def states(self):
        client = self.client()
        try:
            answer = client.get("/v1/nodes")
            return {one["name"]: one["state"] for one in answer.json()["items"]} if answer.status == 200 else {}
        except OSError:
            return {}
        finally:
            client.close()

    def await_states(self, wanted):
        until(lambda: self.states() == wanted, lambda: f"the router says {self.states()}, not {wanted}")

    def stop(self):
        self.cluster.stop()
        for process in reversed(self.processes):
            process.terminate()
            process.wait()


@pytest.fixture(scope="module")
def site(executable, tmp_path_factory):
    try:
        one = Site(executable, tmp_path_factory.mktemp("site"))
    except slurm.CannotRun as why:
        pytest.skip(f"Slurm does not run on this machine: {why}")
    try:
        yield one
    finally:
        one.stop()


def on_terminal(command, environment):
    """What it prints on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 4096):
            text += piece
    except OSError:  # the terminal's other end is closed
        pass
    os.close(ours)
    assert process.wait(120) == 0, text
    return text.decode()


def test_jobs_are_nodes_of_the_fleet_until_they_end(site):
    first, second = site.submit(), site.submit()
    names = {job: site.node_of(job) for job in (first, second)}
    assert sorted(names.values()) == sorted([f"gn1-{first}", f"gn2-{second}"]) or sorted(names.values()) == sorted([f"gn2-{first}", f"gn1-{second}"])
    site.route()
    site.await_states(dict.fromkeys(names.values(), "up"))
    client = site.client()
    ids = {job: client.put(f"/v1/sessions/{names[job]}.work").expect(201).json()["id"] for job in names}
    client.put_octets(f"/v1/sessions/{ids[first]}/buffers/x", b"kept").expect(201)

    # srun in the job's machine, on a terminal: through the router, as from anywhere.
    cli = os.environ.get("GPUREST_CLI") or pathlib.Path(site.executable).parents[1] / "sdk" / "cli" / "gpurest"
    shown = on_terminal(["srun", f"--jobid={second}", "--overlap", "--pty", str(cli), "--url", f"http://127.0.0.1:{site.port}", "nodes"], site.cluster.environment)
    assert set(names.values()) <= set(shown.split()), shown

    # A drain: what is there stays reachable, what is new goes to the other one, and the job ends with its last session.
    assert site.cluster.call("scancel", "--signal=USR1", "--batch", first) == ""
    until(lambda: client.get("/lbz", Gpurest_Node=names[first]).status == 404)
    assert client.get(f"/v1/sessions/{ids[first]}/buffers/x/data").expect(200).body == b"kept"
    for _ in range(4):
        assert client.post("/v1/sessions").expect(201).json()["node"] == names[second]
    client.delete("/v1/sessions/" + ids[first]).expect(204)
    until(lambda: site.cluster.state(first) == "COMPLETED", lambda: f"{site.cluster.state(first)}; {site.told(first)}")
    site.await_states({names[second]: "up"})
    until(lambda: client.get("/v1/sessions/" + ids[first]).status == 404)  # a connection of before the reload has one more answer of before it

    # Killed, without a chance to say so: the epilog says it.
    third = site.submit()
    site.await_states({names[second]: "up", site.node_of(third): "up"})
    site.cluster.kill(second)
    until(lambda: not list(site.nodes.glob(f"*-{second}")), "the dead node stays in the list")
    site.await_states({site.node_of(third): "up"})
    client.close()
    fresh = site.client()
    assert fresh.post("/v1/sessions").expect(201).json()["node"] == site.node_of(third)
    fresh.close()


def test_a_job_whose_service_does_not_start_says_why(site):
    job = site.submit(GPUREST_LISTEN="nonsense")
    until(lambda: site.cluster.state(job) in ("FAILED", "COMPLETED"))
    assert site.cluster.state(job) == "FAILED" and "nonsense" in site.told(job)
    assert not list(site.nodes.glob(f"*-{job}"))
