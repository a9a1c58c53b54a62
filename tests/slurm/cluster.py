"""``SlurmCluster``: a private SLURM with two "nodes" on this machine, for tests. Needs slurmctld, slurmd and munged.

Everything lies in one folder, ports are free ones, and SLURM_CONF is in the environment of its own processes alone: the
machine's own SLURM, if there is one, is not touched. Each node has two "GPUs", which are device files of other kinds.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "scontrol")
_CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={root}/m/s,cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=3
MinJobAge=3600
SlurmdTimeout=10
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
PreemptType=preempt/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MaxArraySize=64
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/ctld.pid
SlurmdPidFile={root}/%n.pid
SlurmctldLogFile={root}/ctld.log
SlurmdLogFile={root}/%n.log
GresTypes=gpu
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=4000 Gres=gpu:2 State=UNKNOWN
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=4000 Gres=gpu:2 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_GRES = "".join(f"NodeName=n{n} Name=gpu File={file}\n" for n in (1, 2) for file in ("/dev/null", "/dev/zero"))
START_S = 60.0


def why_not() -> str | None:
    """Why no SLURM can be started here, or None."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    return (
        f"no SLURM on this machine: {', '.join(missing)} missing (apt-get install slurm-wlm munge)" if missing else None
    )


class SlurmCluster:
    """Use as a context manager: leaving it ends all of its processes, jobs included."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))  # sockets allow 107 bytes of path
        self.config = self.root / "slurm.conf"
        self._daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "SlurmCluster":
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for daemon in self._daemons:
            daemon.wait(timeout=30)
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """For commands that talk to this cluster."""
        path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        without = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
        return {**without, "SLURM_CONF": str(self.config), "PATH": path}

    def command(
        self, *arguments: object, timeout: float = 240, env: Mapping[str, str] = {}, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command that talks to this cluster."""
        return subprocess.run(
            list(map(str, arguments)),
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**self.environment, **env},
            cwd=cwd,
            check=False,
        )

    def _start(self) -> None:
        for name in ("m", "state", "spool/n1", "spool/n2"):
            (self.root / name).mkdir(parents=True)
        os.chmod(self.root, 0o755)
        key = self.root / "m/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        (self.root / "gres.conf").write_text(_GRES)
        sockets = [socket.socket() for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in sockets]
        host, user = socket.gethostname(), getpass.getuser()
        self.config.write_text(_CONFIG.format(root=self.root, host=host, user=user, ports=ports))
        for each in sockets:
            each.close()
        m = self.root / "m"
        files = [
            f"--{option}={m}/{name}"
            for option, name in (
                ("key-file", "key"),
                ("socket", "s"),
                ("pid-file", "pid"),
                ("log-file", "log"),
                ("seed-file", "seed"),
            )
        ]
        self._spawn("munged", "--foreground", "--force", *files)
        self._until(lambda: (m / "s").exists())
        self._spawn("slurmctld", "-D", "-i")
        for node in ("n1", "n2"):
            self._spawn("slurmd", "-D", "-N", node)
        self._until(self._is_idle)

    def _is_idle(self) -> bool:
        return ["idle", "idle"] == self.command("sinfo", "-h", "-N", "-o", "%t").stdout.split()

    def _spawn(self, *command: str) -> None:
        log = (self.root / f"{command[0]}.{len(self._daemons)}.out").open("wb")
        with log:
            program = shutil.which(command[0], path=self.environment["PATH"])
            assert program is not None
            self._daemons.append(
                subprocess.Popen([program, *command[1:]], stdout=log, stderr=log, env=self.environment, cwd=self.root)
            )

    def _until(self, condition) -> None:
        deadline = time.monotonic() + START_S
        while not condition():
            assert time.monotonic() < deadline, self._logs()
            time.sleep(0.1)

    def _logs(self) -> str:
        files = [*self.root.glob("*.log"), *self.root.glob("*.out"), *self.root.glob("m/log")]
        return "SLURM did not start:\n" + "\n".join(f"== {path.name}\n{path.read_text()[-2000:]}" for path in files)

    def _processes(self) -> list[int]:
        """Whatever has our configuration in its environment: slurmstepd and jobs outlive slurmd."""
        mark, found = f"SLURM_CONF={self.config}\0".encode(), []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes() + b"\0":
                    found.append(int(path.parent.name))
        return found
