#!/usr/bin/env python3
"""Packs a tree of images with shardpack and with Python's packers, in alternating rounds.

  pack_bench.py DATA WORK --shardpack build/bin/shardpack [--rounds 5] [--json FILE]

Every job is a fresh process. A Python packer's clock starts after its imports and stops when its writer is closed; shardpack's is the
life of its process. shardpack (and lmdb) sync what they wrote to the disk before they return, the others leave that to the system; so
a second column adds the sync to those, and the first is the one that favours them. The settings are those each project recommends for
random access. A packer whose package is missing is named and left out.
"""
import argparse
import importlib
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from rounds import alternate, listing, markdown, ratios, read, spread, warm


def pack_array_record(data, out):
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter(out, "group_size:1,uncompressed")  # group_size 1: what random access asks for
    for path, label in listing(data):
        writer.write(label.to_bytes(4, "little") + read(path))
    writer.close()


def pack_lmdb(data, out):
    import lmdb

    env = lmdb.open(out, map_size=1 << 34, subdir=False)
    with env.begin(write=True) as transaction:
        for i, (path, label) in enumerate(listing(data)):
            transaction.put(f"{i:08d}".encode(), label.to_bytes(4, "little") + read(path))
    env.close()


def pack_tfrecord(data, out):
    from tfrecord.writer import TFRecordWriter

    writer = TFRecordWriter(out)
    for path, label in listing(data):
        writer.write({"image": (read(path), "byte"), "label": (label, "int")})
    writer.close()


def pack_tar(data, out):
    subprocess.check_call(["tar", "-C", data, "-cf", out, "."])


# Name -> (function, module it needs)
PACKERS = {
    "array_record": (pack_array_record, "array_record.python.array_record_module"),
    "lmdb": (pack_lmdb, "lmdb"),
    "tfrecord": (pack_tfrecord, "tfrecord.writer"),
    "tar": (pack_tar, None),
}


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def run_one(name, data, out):
    """One packer in this process: seconds until its writer is closed, and until its output is on the disk."""
    pack, module = PACKERS[name]
    if module:
        importlib.import_module(module)
    remove(out)
    os.sync()
    start = time.perf_counter()
    pack(data, out)
    seconds = time.perf_counter() - start
    handle = os.open(out, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    synced = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "synced_seconds": synced, "bytes": os.path.getsize(out)}))


def is_there(module):
    try:
        return module is None or importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def jobs(args):
    found = {}
    for level in ("header", "decode"):
        out = os.path.join(args.work, f"shardpack.{level}")
        found[f"shardpack --verify-images {level}"] = [
            args.shardpack, "convert", args.data, "-o", out, "--overwrite", "--verify-images", level, "--json", "--progress", "none"]
    for name, (_, module) in PACKERS.items():
        if not is_there(module):
            print(f"  {name}: left out, its Python package is not installed", flush=True)
            continue
        out = os.path.join(args.work, f"packed.{name}")
        found[name] = [sys.executable, os.path.abspath(__file__), args.data, args.work, "--one", name, "--one-out", out]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("work")
    parser.add_argument("--shardpack", default="build/bin/shardpack")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--one", choices=PACKERS, help=argparse.SUPPRESS)
    parser.add_argument("--one-out", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        return run_one(args.one, args.data, args.one_out)

    os.makedirs(args.work, exist_ok=True)
    warm(args.data)

    def clean():
        for entry in os.scandir(args.work):
            if entry.name.startswith(("shardpack.", "packed.")):
                remove(entry.path)
        os.sync()  # the last job's dirty pages are not the next one's cost

    results = alternate(jobs(args), args.rounds, before_each=clean)
    rows = []
    for name, runs in results.items():
        ours = name.startswith("shardpack")
        returned = [r["wall_s"] if ours else r["seconds"] for r in runs]
        synced = [r["wall_s"] if ours else r["synced_seconds"] for r in runs]
        size = statistics.median(r["bytes_out"] if ours else r["bytes"] for r in runs)
        cpu, use = (statistics.median(r[k] for r in runs) for k in ("cpu_s", "cpu_use"))
        rows.append((statistics.median(returned), [name, spread(returned), spread(synced), f"{cpu:.2f}", f"{use:.0%}", f"{size / 1e6:,.1f}"]))
    rows.sort()
    print(f"\n{os.path.basename(os.path.normpath(args.data))}, {args.rounds} rounds\n")
    print(markdown(["packer", "s until it returns", "s until on disk", "CPU s", "CPU use", "MB"], [row for _, row in rows]), flush=True)
    on_disk = lambda run: run.get("synced_seconds", run["wall_s"])
    for ours in [name for name in results if name.startswith("shardpack")]:
        for theirs in [name for name in results if name in ("tar", "array_record")]:
            print(f"{ours}: {ratios(results, ours, theirs, on_disk)} of the time of {theirs} and sync, round by round", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"data": args.data, "rounds": args.rounds, "results": results}, file, indent=1)
    clean()


if __name__ == "__main__":
    main()
