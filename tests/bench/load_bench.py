#!/usr/bin/env python3
"""Loads photographs with shardpack's loader and with torchvision's ImageFolder and PyTorch's DataLoader, in alternating rounds.

  load_bench.py DATA PACKED --loader build/bin/bench_load_photos [--rounds 5] [--workers 1,2,4] [--json FILE]

DATA is the tree of files, PACKED the dataset that shardpack made of it. Both sides draw a RandomResizedCrop(224), flip half of the
pictures, normalise, and give float32 NCHW batches of 256. Every job is a fresh process over one epoch; everything is in the page cache.
The clock runs from asking for the first batch to the end of the epoch, worker start included. Pillow decodes for torchvision.
"""
import argparse
import importlib.util
import json
import os
import statistics
import sys
import time

from rounds import alternate, markdown, spread, warm

BATCH = 256
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def one_thread(_=None):
    import torch

    torch.set_num_threads(1)


def cpu_seconds():
    """Of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run_torchvision(data, workers):
    from torch.utils.data import DataLoader
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    transform = transforms.Compose([
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, DEVIATION),
    ])
    loader = DataLoader(ImageFolder(data, transform), batch_size=BATCH, shuffle=True, num_workers=workers, worker_init_fn=one_thread)
    cpu, start, first, images = cpu_seconds(), time.perf_counter(), None, 0
    batches = iter(loader)
    for batch, _ in batches:
        images += len(batch)
        first = first or time.perf_counter() - start
    seconds = time.perf_counter() - start
    del batches  # ends the workers, whose CPU time counts then
    print(json.dumps({"images": images, "seconds": seconds, "images_per_s": images / seconds, "first_batch_ms": 1000 * first,
                      "cpu_ms_per_image": 1000 * (cpu_seconds() - cpu) / images}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("packed")
    parser.add_argument("--loader", default="build/bin/bench_load_photos")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", default=f"{os.cpu_count()},{2 * os.cpu_count()}")
    parser.add_argument("--threads", default=str(os.cpu_count()))
    parser.add_argument("--json")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        return run_torchvision(args.data, args.one)

    warm(args.data)
    jobs = {f"shardpack, {args.threads} threads": [
        args.loader, args.packed, "--transform", "train", "--batch", str(BATCH), "--dtype", "float32", "--layout", "nchw",
        "--threads", args.threads, "--warm"]}
    if importlib.util.find_spec("torchvision") is None:
        print("  torchvision: left out, its Python package is not installed", flush=True)
    else:
        for workers in args.workers.split(","):
            jobs[f"torchvision, {workers} workers"] = [
                sys.executable, os.path.abspath(__file__), args.data, args.packed, "--one", workers]
    results = alternate(jobs, args.rounds)
    rows = []
    for name, runs in results.items():
        rate = [r["images_per_s"] for r in runs]
        cpu = [r["cpu_ms_per_image"] for r in runs]
        first = [r["first_batch_ms"] for r in runs]
        rows.append((-statistics.median(rate), [name, spread(rate, "{:,.0f}"), f"{statistics.median(cpu):.2f}", spread(first, "{:,.0f}")]))
    rows.sort()
    print(f"\n{os.path.basename(os.path.normpath(args.data))}, {args.rounds} rounds\n")
    print(markdown(["loader", "images/s", "CPU ms an image", "first batch, ms"], [row for _, row in rows]), flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"data": args.data, "rounds": args.rounds, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
