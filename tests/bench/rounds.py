"""Shared by the benchmark scripts: jobs in fresh processes, in alternating rounds, as medians with their spread."""
import json
import os
import statistics
import subprocess
import tempfile
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
    """Runs a command. Its last line of JSON on stdout, with wall_s, cpu_s, cpu_use (a share of all cores) and peak_mib of the whole process
    added; None where it failed."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, stdin=subprocess.DEVNULL, text=True)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            print(f"    failed with status {process.returncode}: {errors.read().strip()[-300:]}", flush=True)
            return None
        lines = [line for line in output if line.startswith("{")]
    result = json.loads(lines[-1]) if lines else {}
    result["wall_s"] = wall
    result["cpu_s"] = usage.ru_utime + usage.ru_stime
    result["cpu_use"] = result["cpu_s"] / wall / len(os.sched_getaffinity(0))
    result["peak_mib"] = usage.ru_maxrss / 1024
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


def ratios(results, ours, theirs, value=lambda run: run["wall_s"], form="{:.2f}"):
    """'median (least..most)' of ours over theirs, round by round: a disturbance that lasts hits both sides of a quotient."""
    return spread([value(a) / value(b) for a, b in zip(results[ours], results[theirs])], form)
