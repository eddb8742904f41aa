#!/usr/bin/env python3
"""What conversions cost beside writing: resuming, scanning, memory, and what --images lossless brings.

  convert_bench.py resume DATA WORK      99 of 100 shards done, then the rest: against the whole conversion
  convert_bench.py scan WORK             plan of 100,000 small files: against `find` that asks for their sizes
  convert_bench.py memory WORK           peak memory with 10,000, 100,000 and 1,000,000 inputs
  convert_bench.py lossless DATA WORK    bytes and time of --images lossless against keep

  for all: --shardpack build/bin/shardpack [--rounds 5] [--json FILE]

Jobs alternate in fresh processes, everything read is in the page cache, medians stand with (least..most).
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

from rounds import alternate, markdown, measure, ratios, spread, warm

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "commands"))
from watch import kill_at  # noqa: E402

SHARDS = 100


def clear(*folders):
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    os.sync()


def tree_size(data):
    """(files, bytes) of a tree."""
    sizes = [os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(data) for name in names]
    return len(sizes), sum(sizes)


def convert(args, data, out, *more):
    return [args.shardpack, "convert", str(data), "-o", str(out), "--progress", "none", "--json", *map(str, more)]


def resume(args):
    """The unfinished state is made once, by a kill when the last but one shard was noted as finished, and copied for each round."""
    warm(args.data)
    files, _ = tree_size(args.data)
    records = -(-files // SHARDS)
    full, kept, rest = (args.work / name for name in ("full", "kept", "rest"))
    clear(full, kept, rest)
    if not kill_at(convert(args, args.data, kept, "--shard-records", records), kept, ("moved in", ".shardpack/finished-N"), SHARDS - 1):
        sys.exit("convert_bench.py: the conversion had ended before it could be killed")
    state = json.loads(subprocess.run([args.shardpack, "status", kept, "--json"], capture_output=True, text=True).stdout)
    print(f"  {state['shards_done']} of {state['shards']} shards are done, {state['inputs_done']:,} of {state['inputs']:,} inputs", flush=True)

    def before_each():
        clear(full, rest)
        subprocess.run(["cp", "-a", kept, rest], check=True)
        os.sync()

    names = ("whole conversion", "rest of a killed one", "complete already")
    jobs = {name: convert(args, args.data, out, "--shard-records", records) for name, out in zip(names, (full, rest, args.work / "complete"))}
    clear(args.work / "complete")
    measure(jobs[names[2]])
    results = alternate(jobs, args.rounds, before_each)
    print(table(results, names))
    for name in names[1:]:
        for what, value in (("wall time", "wall_s"), ("CPU time", "cpu_s")):
            print(f"{name}: {ratios(results, name, names[0], lambda run: run[value], '{:.2%}')} of the {what} of a whole conversion")
    for line in instructions({name: jobs[name] for name in names[:2]}, before_each):
        print(line)
    clear(full, kept, rest, args.work / "complete")
    return results


def instructions(jobs, before_each):
    """Instructions count what a process does whatever else runs; where the processor's counters may be read."""
    counts = {}
    for name, command in jobs.items():
        before_each()
        done = subprocess.run(["perf", "stat", "-x", ",", "-e", "instructions:u", "--", *command], capture_output=True, text=True) if shutil.which("perf") else None
        value = done.stderr.strip().splitlines()[-1].split(",")[0] if done and done.returncode == 0 else ""
        if not value.isdigit():
            return ["instructions: not counted, for perf may not read the processor's counters here"]
        counts[name] = int(value)
    first, second = counts.values()
    return [f"instructions: {second:,} of {first:,}, {second / first:.2%}"]


def table(results, names):
    rows = []
    for name in [n for n in names if n in results]:
        runs = results[name]
        rows.append([name, spread([r["wall_s"] for r in runs], "{:,.3f}"), spread([r["cpu_s"] for r in runs], "{:,.3f}"),
                     f"{statistics.median(r['cpu_use'] for r in runs):.0%}", f"{max(r['peak_mib'] for r in runs):,.0f}"])
    return markdown(["job", "s", "CPU s", "CPU use", "peak MiB"], rows)


def make_links(folder, files, classes=100, content=b""):
    """Many names of few files, as a file system lets one file have 65,000 at most."""
    if folder.is_dir() and (folder / "made").exists():
        return
    clear(folder)
    source, per_class = None, files // classes
    for c in range(classes):
        (folder / "tree" / f"{c:03}").mkdir(parents=True)
        for i in range(per_class):
            path = folder / "tree" / f"{c:03}" / f"{i:06}.ppm"
            if i % 50000 == 0:
                path.write_bytes(content)
                source = path
            else:
                os.link(source, path)
    (folder / "made").touch()


PICTURE = b"P6 16 16 255\n" + bytes(range(256)) * 3


def make_files(folder, files, classes=100):
    if (folder / "made").exists():
        return
    clear(folder)
    for c in range(classes):
        (folder / "tree" / f"{c:03}").mkdir(parents=True)
        for i in range(files // classes):
            (folder / "tree" / f"{c:03}" / f"{i:06}.ppm").write_bytes(PICTURE)
    (folder / "made").touch()


def scan(args):
    data, out = args.work / "files100k", args.work / "planned"
    make_files(data, 100_000)
    jobs = {
        "shardpack plan": [args.shardpack, "plan", str(data / "tree"), "-o", str(out), "--progress", "none"],
        "find, with sizes": ["find", str(data / "tree"), "-type", "f", "-printf", "%s\n"],
        "tar, to nothing": ["sh", "-c", f"tar -C {data}/tree -cf - . | cat >/dev/null"],
    }
    for command in jobs.values():  # the folders' entries come into memory
        clear(out)
        measure(command)
    results = alternate(jobs, args.rounds, lambda: clear(out))
    print(table(results, jobs))
    print(f"shardpack plan: {ratios(results, 'shardpack plan', 'find, with sizes')} of the time of find")
    clear(out)
    return results


def memory(args):
    out = args.work / "out"
    results = {}
    for files in (10_000, 100_000, 1_000_000):
        data = args.work / f"links{files}"
        make_links(data, files, content=PICTURE)
        for limit in ("64MiB", "256MiB", "2GiB"):
            for command in ("plan", "convert"):
                clear(out)
                argv = [args.shardpack, command, str(data / "tree"), "-o", str(out), "--progress", "none", "--memory", limit, "--verify-images", "header"]
                results[f"{command} {files:,} inputs, --memory {limit}"] = [measure(argv)]
    print(markdown(["job", "s", "CPU s", "peak MiB"],
                   [[name, f"{r['wall_s']:.2f}", f"{r['cpu_s']:.2f}", f"{r['peak_mib']:,.0f}"] for name, (r,) in results.items() if r]))
    clear(out, *(args.work / f"links{n}" for n in (10_000, 100_000, 1_000_000)))
    return results


def lossless(args):
    warm(args.data)
    files, size = tree_size(args.data)
    jobs = {f"--images {how}": convert(args, args.data, args.work / how, "--images", how, "--overwrite") for how in ("keep", "lossless")}
    results = alternate(jobs, args.rounds)
    print(table(results, jobs))
    for how in ("keep", "lossless"):
        info = json.loads(subprocess.run([str(pathlib.Path(args.shardpack).parent / "shardinfo"), args.work / how, "--json"], capture_output=True, text=True).stdout)
        stored = sum(codec["stored_bytes"] for codec in info["codecs"].values())
        print(f"--images {how}: {files:,} files of {size:,} bytes, stored as {stored:,} ({stored / size - 1:+.2%}), shards of {info['bytes']:,} ({info['bytes'] / size - 1:+.2%})")
    clear(args.work / "keep", args.work / "lossless")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("resume", "scan", "memory", "lossless"))
    parser.add_argument("folders", nargs="+", type=pathlib.Path, help="[DATA] WORK")
    parser.add_argument("--shardpack", default="build/bin/shardpack")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    needs_data = args.what in ("resume", "lossless")
    if len(args.folders) != 1 + needs_data:
        parser.error("DATA and WORK are wanted" if needs_data else "WORK is wanted")
    args.data, args.work = args.folders[0], args.folders[-1]
    args.work.mkdir(parents=True, exist_ok=True)
    results = {"resume": resume, "scan": scan, "memory": memory, "lossless": lossless}[args.what](args)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"what": args.what, "rounds": args.rounds, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
