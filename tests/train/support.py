"""Runs train_ddp as several ranks on this machine, on small data sets made with Pillow."""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from PIL import Image

BIN = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "build/bin"
TRAIN_DDP = os.path.join(BIN, "train_ddp")
CLASSES = {"blue": (20, 40, 220), "green": (30, 200, 60), "red": (230, 40, 30)}
SIDE = 12
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC", "SLURM_", "OMPI_", "PMI", "PRTE")


def environment(**variables):
    """This process's, without what a launcher of ours left in it."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
    clean["OMP_NUM_THREADS"] = "1"
    clean.update({k: str(v) for k, v in variables.items()})
    return clean


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_images(folder, count, seed=0, side=SIDE):
    """`count` PNG files in three class folders, told apart by their colour, no two alike."""
    draw = random.Random(seed)
    for i in range(count):
        name = sorted(CLASSES)[i % 3]
        pixels = bytes(min(255, max(0, v + draw.randrange(-20, 21))) for _ in range(side * side) for v in CLASSES[name])
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        Image.frombytes("RGB", (side, side), pixels).save(os.path.join(folder, name, f"{i:04}.png"))
    return folder


def pack(source, output):
    subprocess.run([os.path.join(BIN, "shardpack"), "convert", source, "-o", output], check=True, capture_output=True)
    return output


class Rank:
    """One started process."""

    def __init__(self, arguments, variables, command=(TRAIN_DDP,)):
        self.process = subprocess.Popen([*command, *arguments], env=environment(**variables), text=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, timeout=60):
        """(status, stdout, stderr); a rank that hangs is killed and reported as status None."""
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            return None, out, err
        return self.process.returncode, out, err


def start(world, arguments, of_rank=None, port=None):
    """`world` ranks by hand; `of_rank` maps a rank to arguments of its own."""
    port = port or free_port()
    ranks = []
    for rank in range(world):
        variables = {"RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port} if world > 1 else {}
        ranks.append(Rank((of_rank or {}).get(rank, arguments), variables))
    return ranks


def epochs(stdout):
    return [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="train_ddp_test_")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_ranks(self, world, arguments):
        """Rank 0's (epochs, stderr) once all ranks ended well."""
        results = [rank.finish() for rank in start(world, arguments)]
        for rank, (status, _, err) in enumerate(results):
            self.assertEqual(status, 0, f"rank {rank} of {world}: {err}")
        for _, out, _ in results[1:]:
            self.assertEqual(out, "", "only rank 0 prints results")
        return epochs(results[0][1]), results[0][2]

    def assert_one_line(self, text, *words):
        lines = text.strip().splitlines()
        self.assertEqual(len(lines), 1, f"not one line: {text!r}")
        self.assertTrue(lines[0].startswith("train_ddp: "), text)
        for word in words:
            self.assertIn(word, lines[0])


def skip_all(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def main(*cases):
    signal.alarm(280)  # before ctest's own limit, so that a hang shows where it was
    unittest.main(argv=[sys.argv[0], *cases], verbosity=2)
