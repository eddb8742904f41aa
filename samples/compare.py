#!/usr/bin/env python3
"""Prints what quickstart.sh measured: packed and raw side by side, then the accuracy. Fails where that is under 97 %.

  compare.py WORK    with packed.jsonl, raw.jsonl, packed_loading.jsonl, raw_loading.jsonl of train_ddp --json inside
"""
import json
import os
import sys

WANTED_ACCURACY = 97.0


def epochs(work, name):
    """The JSON objects in a file; other lines are for people."""
    with open(os.path.join(work, name)) as file:
        found = [json.loads(line) for line in file if line.startswith("{")]
    if not found:
        sys.exit(f"compare.py: {name} holds no epoch")
    return found


def best_rate(rows):
    return max(row["load_images_per_s"] for row in rows)


def main():
    work = sys.argv[1]
    packed, raw = epochs(work, "packed.jsonl"), epochs(work, "raw.jsonl")
    packed_alone, raw_alone = best_rate(epochs(work, "packed_loading.jsonl")), best_rate(epochs(work, "raw_loading.jsonl"))
    # The first epoch of each, so that the two did the same work.
    lines = [
        ("loading alone, images/s", packed_alone, raw_alone, "{:,.0f}"),
        ("training, images/s", packed[0]["images_per_s"], raw[0]["images_per_s"], "{:,.0f}"),
        ("training, consumer wait", packed[0]["consumer_wait_percent"], raw[0]["consumer_wait_percent"], "{:.1f} %"),
    ]
    print(f"{'':<26}{'packed':>12}{'raw files':>12}")
    for name, left, right, form in lines:
        print(f"{name:<26}{form.format(left):>12}{form.format(right):>12}")

    accuracy = 100 * packed[-1]["accuracy"]
    print(f"\n{len(packed)} epochs on two ranks in {sum(row['seconds'] for row in packed):.0f} s")
    print(f"accuracy {accuracy:.1f} %", flush=True)
    if accuracy < WANTED_ACCURACY:
        sys.exit(f"compare.py: under the {WANTED_ACCURACY:.0f} % this run should reach")


if __name__ == "__main__":
    main()
