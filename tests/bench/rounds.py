"""Shared by the benchmark scripts: jobs in fresh processes, in alternating rounds, as medians with their spread."""
import json
import os
import resource
import statistics
import subprocess
import time


def listing(folder):
    """[(path, label)] of a tree of class folders, sorted by name."""
    out = []
    for label, name in enumerate(sorted(e.name for e in os.scandir(folder) if e.is_dir())):
        where = os.path.join(folder, name)
        out += [(os.path.join(where, f), label) for f in sorted(os.listdir(where))]
    return out


def read(path):
    with open(path, "rb") as file:
        return file.read()


def warm(folder):
    """Brings every file below `folder` into the page cache."""
    for where, _, names in os.walk(folder):
        for name in names:
            read(os.path.join(where, name))


def measure(command):
    """Runs a command. Its last line of JSON on stdout, with wall_s and cpu_s of the whole process added; None where it failed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(f"    failed with status {done.returncode}: {done.stderr.strip()[-300:]}", flush=True)
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    result = json.loads(lines[-1]) if lines else {}
    result["wall_s"] = wall
    result["cpu_s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return result


def alternate(jobs, rounds, before_each=lambda: None):
    """{name: [result of each round]}. `jobs` is {name: command}. One that fails is named and left out from then on."""
    results = {name: [] for name in jobs}
    for number in range(rounds):
        for name in list(results):
            before_each()
            result = measure(jobs[name])
            if result is None:
                print(f"    {name}: left out", flush=True)
                del results[name]
                continue
            results[name].append(result)
            shown = {k: round(v, 3) if isinstance(v, float) else v for k, v in result.items() if not isinstance(v, (dict, list))}
            print(f"  round {number + 1} {name}: {json.dumps(shown)}", flush=True)
    return results


def spread(values, form="{:,.2f}"):
    """'median (least..most)'"""
    return f"{form.format(statistics.median(values))} ({form.format(min(values))}..{form.format(max(values))})"


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join(["---"] + ["---:"] * (len(header) - 1)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
