"""train_ddp under the launchers people use:  launchers.py BIN torchrun|mpirun

A launcher that is not here is skipped (status 77), saying so.
"""
import os
import shutil
import subprocess
import sys

from support import TRAIN_DDP, Case, environment, epochs, free_port, main, make_images, skip_all

MPIRUN = shutil.which("mpirun")


def torchrun_missing():
    """Why torchrun cannot be run with this Python; empty where it can."""
    found = subprocess.run([sys.executable, "-c", "import torch.distributed.run"], capture_output=True, text=True)
    return found.stderr.strip().splitlines()[-1] if found.returncode else ""


class Launched(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        raw = make_images(f"{cls.folder}/raw", 25)
        cls.command = [TRAIN_DDP, "--raw", raw, "--raw-test", raw, "--epochs", "1", "--batch-size", "4", "--json"]

    def run_launcher(self, launcher):
        done = subprocess.run([*launcher, *self.command], env=environment(), capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = epochs(done.stdout)
        self.assertEqual(len(found), 1, done.stdout)
        self.assertEqual(found[0]["samples"], 25)
        self.assertEqual(found[0]["evaluated"], 25)


class Torchrun(Launched):
    def torchrun(self, *more):
        return [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "2", *more]

    def test_torchrun_standalone(self):
        self.run_launcher(self.torchrun("--standalone", "--local-addr", "127.0.0.1"))

    def test_torchrun_restarts_a_failed_run_over_the_same_store(self):
        # The first attempt dies on rank 1 before it meets rank 0.
        script = self.path("once.sh")
        with open(script, "w") as file:
            file.write('#!/bin/sh\n[ "$TORCHELASTIC_RESTART_COUNT$RANK" = 01 ] && exit 9\nexec "$@"\n')
        os.chmod(script, 0o755)
        self.command = [script, *self.command]
        self.run_launcher(self.torchrun("--max-restarts", "1", "--master-addr", "127.0.0.1", "--master-port", str(free_port())))


class Mpirun(Launched):
    def test_mpirun(self):
        self.run_launcher([MPIRUN, "--allow-run-as-root", "--oversubscribe", "-np", "2"])


if __name__ == "__main__":
    if sys.argv[2] == "torchrun":
        if reason := torchrun_missing():
            skip_all(f"no torchrun in this Python: {reason}")
        main("Torchrun")
    else:
        if not MPIRUN:
            skip_all("mpirun is not installed")
        main("Mpirun")
