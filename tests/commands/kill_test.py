"""Kills every command that writes into a dataset's folder, at moments all over its run, and runs it again.

    python kill_test.py --bin DIR [--kills N] [--seed S] [--threads 1,2,7] [--only NAME,...] [--every-call] [--go-on]

After each kill the folder must hold the old complete dataset or the new one, or none where there was none before. After the rerun it must
be, name for name and byte for byte, that of an undisturbed run. N kills (default 4) are done for each number of threads, spread over
the scenarios below; --kills 50 is the proof. --every-call kills with strace at every single call of the system that changes files,
one thread, instead.
"""

import argparse
import collections
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import support
from support import contents, encoded, make_tree, pixels
from watch import kill_after, kill_at, record

CALLS = "creat,open,openat,link,linkat,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,write,pwrite64,writev,ftruncate,fallocate,fsync,fdatasync"


def shardpack(*argv):
    return [str(support.BIN / "shardpack"), *map(str, argv)]


def must(argv, ok=(0, 1)):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    if done.returncode not in ok:
        raise AssertionError(f"{' '.join(argv)}: status {done.returncode}, wanted {ok}\n{done.stderr.decode('utf-8', 'replace')[-2000:]}")
    return done


class Inputs:
    """Trees of pictures, with bad ones among them, so that there is a ledger."""

    def __init__(self, folder):
        self.first, self.second, self.many, self.added, self.drop = (
            folder / name for name in ("first", "second", "many", "added", "drop.jsonl"))
        make_tree(self.first, 60)
        make_tree(self.second, 30, ("ant", "bee"))
        for tree in (self.first, self.second):
            (tree / "ant" / "cut.png").write_bytes(encoded(pixels(20, 20))[:-20])
            # Slow to check, so that a kill finds packing at work.
            for i in range(8):
                (tree / "bee" / f"large{i}.png").write_bytes(encoded(pixels(400, 300, i)))
        tiny = encoded(pixels(8, 8), "JPEG")
        for tree, count in ((self.many, 3000), (self.added, 90)):
            (tree / "all").mkdir(parents=True)
            for i in range(count):
                (tree / "all" / f"{i:05}.jpg").write_bytes(tiny)
        keys = sorted(str(p.relative_to(self.first)) for p in self.first.rglob("*") if p.is_file() and p.name != "cut.png")
        self.drop.write_text("".join(json.dumps({"key": key}) + "\n" for key in keys[3:40:9]))


class Scenario:
    """What leads to a dataset: `prepare(out)` makes what lies there before, `steps(out, threads)` are the commands that may be killed.
    `mends`: what lies there before is damaged."""

    def __init__(self, name, steps, prepare=lambda out: None, mends=False):
        self.name, self.steps, self.prepare, self.mends = name, steps, prepare, mends


def scenarios(inputs):
    def convert(out, threads, *more, tree=inputs.first, records=3, command="convert"):
        return shardpack(command, tree, "-o", out, "--shard-records", records, "--threads", threads, "--progress", "none", *more)

    def old(out):
        must(convert(out, 2, tree=inputs.first, records=7))

    def other(out):
        must(convert(out, 2, tree=inputs.second, records=5))

    def nearly_sealed(out):
        """Every shard finished and none named yet: stopped where dataset.json is about to appear."""
        argv = convert(out, 2)
        _, _, labels = record(argv, out)
        before = labels[: labels.index(("moved in", "dataset.json"))]
        for back in range(1, len(before)):
            shutil.rmtree(out)
            label = before[-back]
            if kill_at(argv, out, label, before.count(label)) and not (out / "dataset.json").exists():
                state = json.loads(must(shardpack("status", out, "--json"), ok=range(5)).stdout)
                if state["shards_done"] == state["shards"]:
                    return
        raise AssertionError("no state before the seal was found")

    def damaged(out):
        old(out)
        shard = second_shard(out)
        shard.write_bytes(shard.read_bytes()[:-1000])

    def second_shard(out):
        return sorted(out.glob("*.shard"))[1]

    def parts(out, threads):
        return [convert(out, threads, "--part", f"{i}/3") for i in (2, 0, 1)]

    yield Scenario("convert", lambda out, t: [convert(out, t)])
    yield Scenario("overwrite", lambda out, t: [convert(out, t, "--overwrite")], other)
    yield Scenario("many", lambda out, t: [convert(out, t, tree=inputs.many, records=100)])
    yield Scenario("lossless", lambda out, t: [convert(out, t, "--images", "lossless", "--order", "shuffled:5")])
    yield Scenario("archive", lambda out, t: [convert(out, t, "--compression", "archive", "--images", "pixels", "--resize", "8")])
    yield Scenario("plan", lambda out, t: [convert(out, t, command="plan"), convert(out, t)])
    yield Scenario("parts", parts)
    yield Scenario("seal", lambda out, t: [shardpack("seal", out, "--progress", "none")], nearly_sealed)
    yield Scenario("append", lambda out, t: [
        shardpack("append", out, inputs.added, "--new-classes", "--threads", t, "--progress", "none")], old)
    yield Scenario("amend", lambda out, t: [shardpack("amend", out, "--drop", inputs.drop, "--progress", "none")], old)
    yield Scenario("repair", lambda out, t: [
        shardpack("repair", second_shard(out), "--in-place", "--threads", t, "--progress", "none")], damaged, mends=True)


class Proof:
    def __init__(self, work, seed):
        self.work, self.random = work, random.Random(seed)
        self.before, self.after, self.recorded = {}, {}, {}
        self.kills = collections.Counter()

    def fresh(self, scenario):
        """The folder before the commands, of one preparation for all runs."""
        out = self.work / "out"
        shutil.rmtree(out, ignore_errors=True)
        kept = self.work / f"before.{scenario.name}"
        if scenario.name not in self.before:
            scenario.prepare(kept)
            self.before[scenario.name] = contents(kept) if kept.exists() else {}
        if kept.exists():
            shutil.copytree(kept, out, symlinks=True)
        return out

    def reference(self, scenario):
        """Runs undisturbed: what must come out, and which changes there are to be killed at."""
        if scenario.name in self.after:
            return
        out = self.fresh(scenario)
        self.recorded[scenario.name] = []
        for argv in scenario.steps(out, 2):
            status, seconds, labels = record(argv, out)
            if status not in (0, 1):
                must(self.fresh(scenario) and argv)
            self.recorded[scenario.name].append((seconds, labels))
        self.after[scenario.name] = contents(out)
        self.no_work_left(out)

    def moment(self, recorded, number):
        """A function that runs a command and kills it, and words for it. Rare changes are as likely as common ones."""
        seconds, labels = recorded
        if number % 3 == 0 or not labels:
            at = self.random.uniform(0, seconds)
            return f"after {at * 1000:.1f} ms", lambda argv, out: kill_after(argv, at)
        label = self.random.choice(sorted(set(labels)))
        occurrence = self.random.randint(1, labels.count(label))
        delay = self.random.choice((0, 0, 0.0005, 0.002))
        return f"{label[0]} {label[1]}, number {occurrence}", lambda argv, out: kill_at(argv, out, label, occurrence, delay)

    def check_held(self, scenario, out):
        """The old complete dataset or the new one; none only where there was none."""
        manifest = out / "dataset.json"
        before, after = self.before[scenario.name].get("dataset.json"), self.after[scenario.name]["dataset.json"]
        if not manifest.exists():
            assert before is None, "the old dataset is gone"
            must(shardpack("verify", out, "--progress", "none"), ok=(2, 3))
            return "none"
        text = manifest.read_bytes()
        assert text in (before, after), "dataset.json is neither the old nor the new one"
        if scenario.mends:
            for shard in json.loads(text)["shards"]:
                states = [there[scenario.name][shard["file"]] for there in (self.before, self.after)]
                assert (out / shard["file"]).read_bytes() in states, f"{shard['file']} is neither the damaged shard nor the mended one"
            return "one of both"
        for shard in json.loads(text)["shards"]:
            assert (out / shard["file"]).stat().st_size == shard["bytes"], f"{shard['file']} has another size than dataset.json says"
        must(shardpack("verify", out, "--progress", "none"), ok=(0,))
        return "new" if text == after else "old"

    def no_work_left(self, out):
        assert not (out / ".shardpack").exists(), "the work folder was left"

    def check_finished(self, scenario, out):
        found, wanted = contents(out), self.after[scenario.name]
        assert found.keys() == wanted.keys(), f"files differ: {sorted(found.keys() ^ wanted.keys())}"
        assert found == wanted, f"bytes differ: {[name for name in found if found[name] != wanted[name]]}"
        self.no_work_left(out)

    def kill_once(self, scenario, threads, number):
        """One folder: its commands in turn, one of them killed once or twice in a row, then all to their ends."""
        self.reference(scenario)
        said = []
        while not said:  # a moment may come after the end: another one then
            out = self.fresh(scenario)
            steps = scenario.steps(out, threads)
            victim = self.random.randrange(len(steps))
            for argv in steps[:victim]:
                must(argv)
            for _ in range(self.random.choice((1, 1, 2))):
                words, kill = self.moment(self.recorded[scenario.name][victim], number)
                if kill(steps[victim], out):
                    self.kills[scenario.name] += 1
                    said.append(words)
                    said[-1] += f": held {self.check(scenario, out, said, steps[victim])}"
        try:
            for argv in steps[victim:]:
                must(argv)
            self.check_finished(scenario, out)
        except AssertionError as error:
            raise AssertionError(f"{scenario.name}, {threads} threads, killed {said}, then run again: {error}") from None
        print(f"{scenario.name:10} {threads} threads  {'; '.join(said)}", flush=True)

    def check(self, scenario, out, said, argv):
        try:
            return self.check_held(scenario, out)
        except AssertionError as error:
            raise AssertionError(f"{scenario.name}: killed at {said}: {error}\n{' '.join(argv)}") from None

    def every_call(self, scenario):
        """Each call that changes files is the last one, in turn."""
        self.reference(scenario)
        steps = scenario.steps(self.work / "out", 1)
        for i, argv in enumerate(steps):
            when = 0
            while True:
                when += 1
                out = self.fresh(scenario)
                for before in steps[:i]:
                    must(before)
                log = self.work / "strace.log"
                traced = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={CALLS}", "-e", f"inject={CALLS}:signal=SIGKILL:when={when}", *argv]
                done = subprocess.run(traced, stdin=subprocess.DEVNULL, capture_output=True)
                if done.returncode in (0, 1):
                    break
                last = [line for line in log.read_text("utf-8", "replace").splitlines() if "KILL" not in line][-1:]
                self.kills[scenario.name] += 1
                self.check(scenario, out, [f"call {when}: {last}"], argv)
                for rest in steps[i:]:
                    must(rest)
                try:
                    self.check_finished(scenario, out)
                except AssertionError as error:
                    raise AssertionError(f"{scenario.name}, call {when} {last}: {error}") from None
                if when % 100 == 0:
                    print(f"{scenario.name:10} command {i + 1}: killed at {when} calls so far", flush=True)
            print(f"{scenario.name:10} command {i + 1}: killed at each of {when - 1} calls", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", default="1,2,7")
    parser.add_argument("--only", default="")
    parser.add_argument("--every-call", action="store_true")
    parser.add_argument("--go-on", action="store_true", help="report every fault, not the first alone")
    arguments = parser.parse_args()
    support.BIN = arguments.bin
    if arguments.every_call and not shutil.which("strace"):
        print("skipped: no strace")
        return 77
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        chosen = [s for s in scenarios(Inputs(work)) if not arguments.only or s.name in arguments.only.split(",")]
        proof = Proof(work, arguments.seed)
        jobs = []
        if arguments.every_call:
            jobs = [lambda s=s: proof.every_call(s) for s in chosen if s.name != "many"]
        else:
            for threads in map(int, arguments.threads.split(",")):
                for _ in range(arguments.kills):
                    n = len(jobs)  # every scenario comes in turn
                    jobs.append(lambda n=n, t=threads: proof.kill_once(chosen[n % len(chosen)], t, n))
        for job in jobs:
            try:
                job()
            except (AssertionError, OSError, KeyError, ValueError) as error:
                faults += 1
                print(f"FAULT {type(error).__name__}: {error}", flush=True)
                if not arguments.go_on:
                    break
        print(f"{sum(proof.kills.values())} kills, {faults} faults: {dict(proof.kills)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
