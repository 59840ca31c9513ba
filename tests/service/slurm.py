"""A Slurm cluster of two nodes on this machine: its controller, two slurmd, and munge, all with files of their own, under one folder."""
import os
import pathlib
import shutil
import signal
import subprocess

from service_under_test import until

NODES = ["gn1", "gn2"]
PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel"]
# Two nodes on one machine have the same name and different ports; of a fake GPU each, so that --gres finds one.
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
Epilog={folder}/epilog.sh
NodeName=gn1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=500 Gres=gpu:1 State=UNKNOWN
NodeName=gn2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=500 Gres=gpu:1 State=UNKNOWN
PartitionName=gpu Nodes=gn1,gn2 Default=YES MaxTime=INFINITE State=UP
"""


class CannotRun(Exception):
    """A daemon has given up at its start: this machine does not let it run."""


class Cluster:
    """Needs root. `epilog`: a shell script's text, run at the end of each job."""

    def __init__(self, folder, ports, epilog):
        self.folder, self.daemons = pathlib.Path(folder), []
        host = subprocess.run(["hostname", "-s"], check=True, capture_output=True, text=True).stdout.strip()
        (self.folder / "slurm.conf").write_text(CONFIG.format(host=host, folder=self.folder, ports=ports))
        (self.folder / "gres.conf").write_text("Name=gpu File=/dev/zero\n")
        version = "v2\nIgnoreSystemd=yes" if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1\nCgroupAutomount=no"
        (self.folder / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/{version}\nConstrainDevices=no\n")
        (self.folder / "epilog.sh").write_text(epilog)
        (self.folder / "epilog.sh").chmod(0o755)
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _daemon(self, name, *command):
        log = open(self.folder / (name + ".out"), "wb")
        self.daemons.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment))
        log.close()

    def _check_daemons(self):
        for daemon in self.daemons:
            if daemon.poll() is not None:
                name = daemon.args[0] + ("-" + daemon.args[3] if len(daemon.args) > 3 and daemon.args[2] == "-N" else "")
                errors = [line for line in self.told(name + ".out").splitlines() if "error" in line or "fatal" in line]
                raise CannotRun(f"{name} ends at its start: {errors[-1:]}")
        return True

    def _start(self):
        (self.folder / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "munge.key").chmod(0o600)
        self._daemon("munged", "munged", "--force", "--foreground", f"--key-file={self.folder}/munge.key", f"--socket={self.folder}/munge.socket",
                     f"--pid-file={self.folder}/munge.pid", f"--seed-file={self.folder}/munge.seed", f"--log-file={self.folder}/munge.log")
        until(lambda: self._check_daemons() and (self.folder / "munge.socket").exists(), lambda: self.told("munged.out"))
        self._daemon("slurmctld", "slurmctld", "-D")
        for node in NODES:
            self._daemon("slurmd-" + node, "slurmd", "-D", "-N", node)
        until(lambda: self._check_daemons() and self.call("sinfo", "-h", "-N", "-o", "%N %T").split() == ["gn1", "idle", "gn2", "idle"],
              lambda: "\n".join(self.told(one.name) for one in self.folder.glob("slurm*.*")))

    def told(self, name):
        return f"{name}: " + (self.folder / name).read_text(errors="replace")[-2000:]

    def call(self, *command, **options):
        """What one of Slurm's commands prints; "" if it fails."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120, check=False, **options)
        return done.stdout if done.returncode == 0 else ""

    def state(self, job):
        return dict(word.partition("=")[::2] for word in self.call("scontrol", "show", "job", job, "-o").split()).get("JobState")

    def kill(self, job):
        """All its processes at once, as when memory runs out."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"SLURM_JOB_ID={job}\0".encode() in (folder / "environ").read_bytes() and str(self.folder).encode() in (folder / "environ").read_bytes():
                    os.kill(int(folder.name), signal.SIGKILL)
            except OSError:  # it has ended meanwhile
                pass

    def stop(self):
        """Jobs first: their processes are no children of ours."""
        if len(self.daemons) > 1:
            self.call("scancel", "--full", "--signal=KILL", "--state=RUNNING", "-u", "root")
            self.call("scancel", "-u", "root")
            try:
                until(lambda: not self.call("squeue", "-h").strip(), seconds=60)
            except AssertionError:
                print("jobs are left: " + self.call("squeue"))
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def missing():
    """Why Slurm does not run here; None: it does."""
    absent = [one for one in PROGRAMS if not shutil.which(one)]
    return f"{absent[0]} is not installed" if absent else "Slurm's daemons need root" if os.geteuid() != 0 else None
