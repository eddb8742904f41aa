#!/usr/bin/env python3
"""Makes the benchmark data sets from a folder of photographs in class folders.

  make_data.py --photos PHOTOS OUT [--only in1k,in10k,tiny50k]

  OUT/in1k     the photographs as they are, one class folder each
  OUT/in10k    ten real copies of each (no links), spread over 100 classes so that no packer finds a copy in its window
  OUT/tiny50k  50 crops of each photograph as 32x32 JPEG files of quality 90, in ten classes

A set that is complete is left alone, so that a second run takes no time. Sizes scale with the number of photographs:
1,000 of them give 1,000, 10,000 and 50,000 files.
"""
import argparse
import io
import os
import random
import shutil
import sys

COPIES = 10
CROPS = 50
IN10K_CLASSES = 100
TINY_CLASSES = 10


def photographs(folder):
    """Sorted paths of every JPEG under `folder`."""
    found = []
    for where, _, names in os.walk(folder):
        found += [os.path.join(where, n) for n in names if n.lower().endswith((".jpg", ".jpeg"))]
    return sorted(found)


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def make_in1k(photos, out):
    for path in photos:
        write(os.path.join(out, os.path.basename(os.path.dirname(path)), os.path.basename(path)), read(path))


def make_in10k(photos, out):
    for i, path in enumerate(photos):
        data = read(path)
        stem, extension = os.path.splitext(os.path.basename(path))
        for k in range(COPIES):
            write(os.path.join(out, f"c{(i + COPIES * k) % IN10K_CLASSES:03d}", f"{stem}_{k}{extension}"), data)


def make_tiny50k(photos, out):
    from PIL import Image

    draw = random.Random(0)
    for i, path in enumerate(photos):
        image = Image.open(path).convert("RGB")
        scale = 128 / min(image.size)
        image = image.resize([max(128, round(side * scale)) for side in image.size], Image.BILINEAR)
        for k in range(CROPS):
            side = draw.choice((32, 48, 64, 96))
            x, y = draw.randrange(image.width - side + 1), draw.randrange(image.height - side + 1)
            jpeg = io.BytesIO()
            image.crop((x, y, x + side, y + side)).resize((32, 32), Image.BILINEAR).save(jpeg, "JPEG", quality=90)
            write(os.path.join(out, f"k{i % TINY_CLASSES}", f"{i:04d}_{k:02d}.jpg"), jpeg.getvalue())


MAKERS = {"in1k": make_in1k, "in10k": make_in10k, "tiny50k": make_tiny50k}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--photos", required=True)
    parser.add_argument("--only", default=",".join(MAKERS))
    args = parser.parse_args()

    photos = photographs(args.photos)
    if not photos:
        sys.exit(f"make_data.py: no JPEG files under {args.photos}")
    for name in args.only.split(","):
        out = os.path.join(args.out, name)
        if os.path.isdir(out):
            print(f"{name}: there already", flush=True)
            continue
        partial = out + ".partial"  # renamed when complete, so that an interrupted run is seen as such
        shutil.rmtree(partial, ignore_errors=True)
        MAKERS[name](photos, partial)
        os.rename(partial, out)
        print(f"{name}: {sum(len(f) for _, _, f in os.walk(out))} files", flush=True)


if __name__ == "__main__":
    main()
