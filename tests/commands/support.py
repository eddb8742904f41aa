"""What the command tests share: running the programs, making pictures with Pillow."""

import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

BIN = None  # set by main()


def run(*argv, ok=(0,), prefix=(), timeout_s=120, **options):
    """Runs a program of ours; fails the test on another status. Gives (stdout bytes, stderr text)."""
    done = subprocess.run([*prefix, str(BIN / argv[0]), *map(str, argv[1:])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout_s,
                          **options)
    text = done.stderr.decode("utf-8", "replace")
    if done.returncode not in ok:
        raise AssertionError(f"{argv}: status {done.returncode}, wanted {ok}\n{text}\n{done.stdout[-2000:]}")
    return done.stdout, text


def pixels(width, height, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def encoded(array, kind="PNG", **options):
    out = io.BytesIO()
    Image.fromarray(array).save(out, kind, **options)
    return out.getvalue()


def make_tree(root, count=30, classes=("ant", "bee", "cat")):
    """Pictures of every common kind; gives {key: bytes}."""
    files = {}
    kinds = [("jpg", "JPEG"), ("png", "PNG"), ("bmp", "BMP"), ("gif", "GIF"), ("tif", "TIFF"), ("webp", "WEBP"), ("ppm", "PPM")]
    for i in range(count):
        extension, kind = kinds[i % len(kinds)]
        files[f"{classes[i % len(classes)]}/{i // 10}/{i:03}.{extension}"] = encoded(pixels(10 + i, 12 + i % 5, i), kind)
    for key, content in files.items():
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return files


def listed(dataset):
    return [json.loads(line) for line in run("shardpack", "list", dataset, "--format", "jsonl")[0].splitlines()]


def contents(folder):
    """{path below the folder: bytes} of every file, the work folder's included."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class TestCase(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        self.tree, self.out = self.work / "tree", self.work / "out"


def main():
    global BIN
    at = sys.argv.index("--bin")
    # The tests import this file as a module of its own name, so the folder has to be set there.
    sys.modules["support"].BIN = BIN = pathlib.Path(sys.argv[at + 1])
    del sys.argv[at : at + 2]
    result = unittest.main(module="__main__", exit=False).result
    if result.skipped and result.testsRun <= len(result.skipped):
        print("skipped:", result.skipped[0][1])
        sys.exit(77 if result.wasSuccessful() else 1)
    sys.exit(not result.wasSuccessful())
