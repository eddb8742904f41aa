"""convert as a Slurm step: a real one-node Slurm, started for the test and stopped after it.

    python slurm_test.py --bin DIR

Ends with 77 (skipped), saying why, where Debian's slurm-wlm and munge are not installed or do not start here. Another place than the
system's is named by SHARDPACK_SLURM_ROOT (a folder that the packages were unpacked into with `dpkg -x`).
"""

import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import support
from support import contents, make_tree, run

ROOT = pathlib.Path(os.environ.get("SHARDPACK_SLURM_ROOT", "/"))
LIBRARIES = ROOT / "usr/lib/x86_64-linux-gnu"
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
"""


def program(*names):
    """The first of the names that is there: Debian's own carry a suffix."""
    for name in names:
        for folder in ("usr/sbin", "usr/bin", "sbin", "bin"):
            if os.access(ROOT / folder / name, os.X_OK):
                return str(ROOT / folder / name)
    return None


PROGRAMS = {
    "munged": program("munged"),
    "mungekey": program("mungekey"),
    "slurmctld": program("slurmctld", "slurmctld-wlm"),
    "slurmd": program("slurmd", "slurmd-wlm"),
    "slurmstepd": program("slurmstepd", "slurmstepd-wlm"),
    "srun": program("srun"),
    "sinfo": program("sinfo"),
    "scontrol": program("scontrol"),
}


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """munged, slurmctld and slurmd of our own, with all that they write in one folder."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        self.environment = {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf", "LD_LIBRARY_PATH": f"{LIBRARIES}:{LIBRARIES}/slurm-wlm"}
        for name in ("munge", "state", "spool"):
            (folder / name).mkdir(mode=0o711)
        plugins = LIBRARIES / "slurm-wlm"
        (folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], ports=free_ports(2), user=getpass.getuser(), folder=folder, plugins=plugins))

    def start(self, *argv):
        with open(self.folder / f"{pathlib.Path(argv[0]).name}.log", "wb") as log:
            self.started.append(subprocess.Popen(argv, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def up(self):
        """Why it does not come up; empty where it did."""
        munge = self.folder / "munge"
        subprocess.run([PROGRAMS["mungekey"], "--create", f"--keyfile={munge}/key"], check=True, env=self.environment)
        self.start(PROGRAMS["munged"], "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
                   f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        until = time.time() + 10
        while not (munge / "socket").exists():
            if time.time() > until:
                return f"munged does not start: {self.last_words('munged')}"
            time.sleep(0.05)
        self.start(PROGRAMS["slurmctld"], "-D", "-i")
        self.start(PROGRAMS["slurmd"], "-D", "-d", PROGRAMS["slurmstepd"])
        until = time.time() + 45
        while time.time() < until:
            state = subprocess.run([PROGRAMS["sinfo"], "-h", "-o", "%t"], env=self.environment, capture_output=True, text=True).stdout.split()
            if state == ["idle"]:
                return ""
            if any(process.poll() is not None for process in self.started):
                break
            time.sleep(0.2)
        return "; ".join(f"{pathlib.Path(p.args[0]).name} {p.poll()}: {self.last_words(pathlib.Path(p.args[0]).name)}" for p in self.started)

    def last_words(self, name):
        lines = (self.folder / f"{name}.log").read_text("utf-8", "replace").strip().splitlines()
        return " | ".join(lines[-3:])

    def down(self):
        for process in reversed(self.started):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def srun(self, *argv, ok=(0,)):
        # Steps under the test's own library path would load nothing of Slurm's; shardpack needs none of it.
        done = subprocess.run([PROGRAMS["srun"], *argv], env=self.environment, capture_output=True, text=True, timeout=120)
        if done.returncode not in ok:
            raise AssertionError(f"srun {argv}: status {done.returncode}\n{done.stderr}\n{done.stdout}")
        return done.stdout, done.stderr


class Slurm(support.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [name for name, path in PROGRAMS.items() if path is None]
        if missing:
            raise unittest.SkipTest(f"no {', '.join(missing)}: Debian's slurm-wlm and munge are not installed")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm-"))
        cls.folder.chmod(0o755)
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.cluster = Cluster(cls.folder)
        cls.addClassCleanup(cls.cluster.down)
        why = cls.cluster.up()
        if why:
            raise unittest.SkipTest(f"Slurm does not start here: {why}")

    def convert(self, tasks, out, *more, ok=(0,)):
        return self.cluster.srun(f"--ntasks={tasks}", "--kill-on-bad-exit=0", str(support.BIN / "shardpack"), "convert", str(self.tree), "-o",
                                 str(out), "--shard-records", "2", "--progress", "none", *more, ok=ok)

    def test_a_step_of_three_tasks_gives_the_bytes_of_one_process(self):
        make_tree(self.tree)
        run("shardpack", "convert", self.tree, "-o", self.work / "one", "--shard-records", 2, "--progress", "none")
        text = "".join(self.convert(3, self.out))
        self.assertIn("Slurm", text)
        self.assertEqual(contents(self.out), contents(self.work / "one"))

    def test_bad_inputs_do_not_fail_a_step_and_show_in_the_ledger(self):
        make_tree(self.tree)
        for key in ("ant/bad.png", "bee/bad.jpg", "cat/bad.gif"):
            (self.tree / key).write_bytes(b"no picture")
        run("shardpack", "convert", self.tree, "-o", self.work / "one", "--shard-records", 2, "--progress", "none", ok=(1,))
        self.convert(4, self.out)
        self.assertEqual(contents(self.out), contents(self.work / "one"))

    def test_a_step_of_one_task_is_an_ordinary_run(self):
        make_tree(self.tree)
        text = "".join(self.convert(1, self.out))
        self.assertNotIn("part ", text)
        run("shardpack", "verify", self.out)

    def test_a_part_that_is_named_beats_the_step(self):
        make_tree(self.tree)
        self.convert(2, self.out, "--part", "0/1", ok=(0, 4))  # of two processes on one part the second is refused
        run("shardpack", "verify", self.out)


if __name__ == "__main__":
    support.main()
