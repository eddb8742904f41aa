"""One conversion by many processes, and the same conversion from elsewhere: always the bytes of one undisturbed process."""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import support
from support import contents, encoded, make_tree, pixels, run
from watch import FolderWatch, start, wait_for

MPIRUN = shutil.which("mpirun")
LAUNCHERS = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "PALS_", "JOB_COMPLETION_INDEX")


def plain_environment(**more):
    """Without what a launcher of the tests themselves may have set."""
    return {**{k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}, **more}


class Parts(support.TestCase):
    RECORDS = 4

    def setUp(self):
        super().setUp()
        make_tree(self.tree, 60)
        self.one = self.work / "one"

    def argv(self, out, *more, command="convert", tree=None):
        return ["shardpack", command, tree or self.tree, "-o", out, "--shard-records", self.RECORDS, "--progress", "none", *more]

    def convert(self, out, *more, ok=(0,), tree=None, **options):
        options.setdefault("env", plain_environment())
        return run(*self.argv(out, *more, tree=tree), ok=ok, **options)

    def begin(self, out, *more, tree=None, **environment):
        argv = self.argv(out, *more, tree=tree)
        return start([support.BIN / argv[0], *argv[1:]], env=plain_environment(**environment))

    def finish(self, process, ok=(0,)):
        output, text = process.communicate(timeout=120)
        self.assertIn(process.returncode, ok, text.decode("utf-8", "replace"))
        return output, text.decode("utf-8", "replace")

    def reference(self, *more, ok=(0,)):
        self.convert(self.one, *more, ok=ok)
        return contents(self.one)

    def bad(self):
        for key in ("ant/0/bad.png", "bee/bad.jpg", "cat/5/bad.gif", "cat/5/empty.png"):
            path = self.tree / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"" if "empty" in key else b"no picture")

    def slow(self):
        """Pictures that take a while to check: links to one file."""
        first = self.tree / "cat" / "slow.png"
        first.write_bytes(encoded(pixels(900, 900)))
        for i in range(60):
            os.link(first, self.tree / "cat" / f"slow{i}.png")

    def status(self, out):
        return json.loads(run("shardpack", "status", out, "--json", ok=range(5))[0])


class Orders(Parts):
    def test_parts_in_any_order_give_the_bytes_of_one_process(self):
        wanted = self.reference()
        orders = [(1, [0]), (3, [0, 1, 2]), (3, [2, 0, 1]), (3, [1, 2, 0]), (8, [7, 0, 6, 1, 5, 2, 4, 3]), (8, list(range(8))), (40, [*range(40)][::-1])]
        for count, order in orders:
            with self.subTest(count=count, order=order):
                shutil.rmtree(self.out, ignore_errors=True)
                for i in order:
                    if count <= 8:  # of more parts than shards some have nothing to do
                        self.assertFalse((self.out / "dataset.json").exists())
                    text = self.convert(self.out, "--part", f"{i}/{count}")[1]
                    if count > 1:
                        self.assertIn(f"part {i} of {count}", text.splitlines()[0])
                self.assertEqual(contents(self.out), wanted)
                self.assertFalse((self.out / ".shardpack").exists())

    def test_parts_that_run_at_once_agree_on_one_plan(self):
        wanted = self.reference()
        for count in (3, 8):
            for attempt in range(3):
                shutil.rmtree(self.out, ignore_errors=True)
                for process in [self.begin(self.out, "--part", f"{i}/{count}", "--threads", str(1 + attempt)) for i in range(count)]:
                    self.finish(process)
                self.assertEqual(contents(self.out), wanted, (count, attempt))

    def test_an_unsealed_part_says_so_to_machines(self):
        out, _ = self.convert(self.out, "--part", "0/2", "--json")
        first = json.loads(out.splitlines()[-1])
        self.assertEqual((first["sealed"], first["dataset_digest"]), (False, None))
        out, _ = self.convert(self.out, "--part", "1/2", "--json")
        last = json.loads(out.splitlines()[-1])
        self.assertTrue(last["sealed"])
        self.assertEqual(last["dataset_digest"], json.loads((self.out / "dataset.json").read_text())["dataset_digest"])

    def test_a_lost_part_is_run_again_alone(self):
        self.slow()
        wanted = self.reference()
        self.convert(self.out, "--part", "1/3")
        lost = self.begin(self.out, "--part", "2/3", "--threads", "1")
        while not list((self.out / ".shardpack").glob("shard-*.partial")) and lost.poll() is None:
            time.sleep(0.001)
        lost.kill()
        lost.communicate()
        self.convert(self.out, "--part", "0/3")
        self.assertFalse((self.out / "dataset.json").exists())
        self.convert(self.out, "--part", "2/3")
        self.assertEqual(contents(self.out), wanted)

    def test_a_part_of_another_request_is_refused_with_the_difference(self):
        self.convert(self.out, "--part", "0/2")
        before = contents(self.out)
        run(*[a if a != self.RECORDS else 5 for a in self.argv(self.out, "--part", "1/2")], ok=(2,))
        text = self.convert(self.out, "--part", "1/2", "--compression", "none", ok=(2,))[1]
        self.assertIn("compression", text)
        self.assertEqual({k: v for k, v in before.items() if ".shard" in k[-6:]}, {k: v for k, v in contents(self.out).items() if ".shard" in k[-6:]})
        self.convert(self.out, "--part", "1/2")
        self.assertEqual(contents(self.out), self.reference())

    def test_a_sealed_dataset_is_complete_for_every_part(self):
        wanted = self.reference()
        for i in range(3):
            self.convert(self.out, "--part", f"{i}/3")
        before = {p: p.stat().st_mtime_ns for p in self.out.iterdir()}
        for part in ("0/3", "2/3", "1/2"):
            self.assertIn("already complete", self.convert(self.out, "--part", part)[1])
        self.assertEqual({p: p.stat().st_mtime_ns for p in self.out.iterdir()}, before)
        self.assertEqual(contents(self.out), wanted)

    def test_bad_inputs_show_at_the_seal_and_a_part_exits_0(self):
        self.bad()
        wanted = self.reference(ok=(1,))
        for i in (2, 0, 3, 1):
            self.convert(self.out, "--part", f"{i}/4", ok=(0,))
        self.assertEqual(contents(self.out), wanted)
        self.assertEqual(len(wanted["bad_inputs.jsonl"].splitlines()), 4)

    def test_parts_replace_an_older_dataset_together(self):
        wanted = self.reference()
        for at_once in (False, True):
            shutil.rmtree(self.out, ignore_errors=True)
            run("shardpack", "convert", self.tree, "-o", self.out, "--shard-records", 9, "--progress", "none", env=plain_environment())
            old = (self.out / "dataset.json").read_bytes()
            if at_once:
                for process in [self.begin(self.out, "--overwrite", "--part", f"{i}/3") for i in range(3)]:
                    self.finish(process)
            else:
                for i in (1, 0, 2):
                    self.assertEqual((self.out / "dataset.json").read_bytes(), old)
                    self.convert(self.out, "--overwrite", "--part", f"{i}/3")
            self.assertEqual(contents(self.out), wanted, at_once)

    def test_wrong_parts_are_wrong_usage(self):
        for part in ("3/3", "-1/2", "1", "0/0", "a/b", "auto", "auto/0", "1/2/3", "", "0/99999999999"):
            self.convert(self.out, f"--part={part}", ok=(2,))
        self.assertFalse(self.out.exists())


class Together(Parts):
    def test_a_second_process_on_one_part_is_refused(self):
        self.slow()
        first = self.begin(self.out, "--part", "0/2", "--threads", "1")
        until = time.time() + 30
        while not list(self.out.rglob("*.partial")) and time.time() < until:
            time.sleep(0.005)
        self.assertIsNone(first.poll(), "the first ended too early for this test")
        self.assertIn("another process", self.convert(self.out, "--part", "0/2", ok=(4,))[1])
        self.convert(self.out, "--part", "1/2")
        self.finish(first)
        self.assertEqual(contents(self.out), self.reference())

    def stopped_planner(self):
        """A process that was stopped while it plans: what it holds, it holds until it dies."""
        for attempt in range(50):
            shutil.rmtree(self.out, ignore_errors=True)
            (self.out / ".shardpack").mkdir(parents=True)  # there to be watched from the start
            watch = FolderWatch(self.out)
            planner = self.begin(self.out, "--part", "0/3")
            wait_for(planner, watch, ("made", ".shardpack/planner"))
            time.sleep(0.001 * (attempt % 10))
            planner.send_signal(signal.SIGSTOP)
            watch.close()
            state = self.status(self.out)
            if state["planning"] and not state["planned"]:
                return planner
            planner.kill()
            planner.communicate()
        self.fail("no planner was stopped in time")

    def test_a_planner_killed_while_others_wait_does_not_stop_them(self):
        first = self.tree / "ant" / "0.png"
        first.write_bytes(encoded(pixels(5, 5)))
        for i in range(1500):  # so that planning takes a while
            os.link(first, self.tree / "ant" / f"{i:04}.png")
        self.RECORDS = 100
        wanted = self.reference()
        planner = self.stopped_planner()
        others = [self.begin(self.out, "--part", f"{i}/3") for i in (1, 2)]
        time.sleep(0.5)
        self.assertEqual([process.poll() for process in others], [None, None])
        planner.kill()
        planner.communicate()
        for process in others:
            self.finish(process)
        self.convert(self.out, "--part", "0/3")
        self.assertEqual(contents(self.out), wanted)

    def test_a_sealer_killed_leaves_the_seal_to_a_later_run(self):
        wanted = self.reference()
        for i in (0, 1):
            self.convert(self.out, "--part", f"{i}/3")
        watch = FolderWatch(self.out)
        last = self.begin(self.out, "--part", "2/3")
        wait_for(last, watch, ("moved in", "dataset.json"))
        last.kill()
        last.communicate()
        watch.close()
        self.convert(self.out, "--part", "2/3")
        self.assertEqual(contents(self.out), wanted)

    def test_parts_with_bad_inputs_at_once(self):
        self.bad()
        wanted = self.reference(ok=(1,))
        for process in [self.begin(self.out, "--part", f"{i}/5") for i in range(5)]:
            self.finish(process)
        self.assertEqual(contents(self.out), wanted)


class Steps(Parts):
    def test_plan_then_parts_then_seal(self):
        wanted = self.reference()
        run(*self.argv(self.out, command="plan"), env=plain_environment())
        self.assertEqual([n for n in contents(self.out) if not n.startswith(".shardpack/")], [])
        state = self.status(self.out)
        self.assertEqual((state["planned"], state["sealed"], state["shards"], state["shards_done"]), (True, False, 15, 0))
        # The name of what is missing stands in seal's message.
        self.assertIn("15", run("shardpack", "seal", self.out, ok=(2,))[1])
        self.convert(self.out, "--part", "0/2")
        state = self.status(self.out)
        self.assertTrue(0 < state["shards_done"] < 15)
        self.assertEqual(len(state["missing"]), 15 - state["shards_done"])
        text = run("shardpack", "seal", self.out, ok=(2,))[1]
        self.assertIn(str(min(state["missing"])), text)
        human = run("shardpack", "status", self.out, ok=range(5))[0].decode()
        self.assertIn(f"{state['shards_done']}", human)
        self.convert(self.out, "--part", "1/2")
        state = self.status(self.out)
        self.assertTrue(state["sealed"])
        self.assertEqual(contents(self.out), wanted)

    def test_the_plan_of_another_process_is_used_and_a_changed_input_is_refused(self):
        run(*self.argv(self.out, command="plan"), env=plain_environment())
        victim = sorted(self.tree.rglob("*.png"))[3]
        whole = victim.read_bytes()
        victim.write_bytes(whole + b"more")
        text = self.convert(self.out, ok=(2, 3))[1]
        self.assertIn(victim.name, text)
        victim.write_bytes(whole)
        self.convert(self.out)
        self.assertEqual(contents(self.out), self.reference())

    def test_status_changes_nothing(self):
        self.convert(self.out, "--part", "1/4")
        before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in self.out.rglob("*")}
        self.status(self.out)
        run("shardpack", "status", self.out)
        self.assertEqual({p: (p.stat().st_mtime_ns, p.stat().st_size) for p in self.out.rglob("*")}, before)


class Elsewhere(Parts):
    """What must not show in the output."""

    OPTIONS = ((), ("--images", "jpeg", "--resize", "9"), ("--images", "lossless"), ("--images", "pixels", "--resize", "8x8", "--statistics", "all"),
               ("--compression", "archive", "--order", "shuffled:3"))

    def test_another_parent_folder_other_times_and_another_disk_order(self):
        for n, more in enumerate(self.OPTIONS):
            self.convert(self.work / f"one{n}", *more)
        other = self.work / "deep" / "er" / "tree"
        for path in sorted((p for p in self.tree.rglob("*") if p.is_file()), reverse=True):
            copy = other / path.relative_to(self.tree)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
            os.utime(copy, (1e9, 1e9))
        for n, more in enumerate(self.OPTIONS):
            self.convert(self.work / "y" / f"other{n}", *more, tree=other)
            self.assertEqual(contents(self.work / "y" / f"other{n}"), contents(self.work / f"one{n}"), more)

    def test_another_locale_and_another_working_folder(self):
        wanted = self.reference("--order", "shuffled:2", "--split", "train=0.7")
        names = [name for name in ("POSIX", "C.UTF-8", "en_US.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8") if has_locale(name)]
        self.assertIn("C.UTF-8", names)
        for n, name in enumerate(names):
            out = self.work / f"locale{n}"
            run("shardpack", "convert", "tree", "-o", out.name, "--shard-records", self.RECORDS, "--progress", "none", "--order", "shuffled:2",
                "--split", "train=0.7", cwd=self.work, env=plain_environment(LC_ALL=name, LANG=name, TZ="Asia/Kathmandu"))
            self.assertEqual(contents(out), wanted, name)

    def test_another_number_of_threads_and_less_memory(self):
        for more in self.OPTIONS:
            shutil.rmtree(self.one, ignore_errors=True)
            wanted = self.reference(*more)
            for threads, memory in ((1, "2GiB"), (2, "64MiB"), (7, "2GiB")):
                shutil.rmtree(self.out, ignore_errors=True)
                self.convert(self.out, *more, "--threads", threads, "--memory", memory)
                self.assertEqual(contents(self.out), wanted, (more, threads))

    def test_libjpegs_instruction_sets(self):
        """libjpeg-turbo takes another path for each; the C++ test of targets forces Highway's."""
        for more in self.OPTIONS:
            shutil.rmtree(self.one, ignore_errors=True)
            wanted = self.reference(*more)
            for force in ("JSIMD_FORCENONE", "JSIMD_FORCESSE2", "JSIMD_FORCEAVX2", "JSIMD_NOHUFFENC"):
                shutil.rmtree(self.out, ignore_errors=True)
                self.convert(self.out, *more, env=plain_environment(**{force: "1"}))
                self.assertEqual(contents(self.out), wanted, (more, force))


    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind, which stands for a smaller processor")
    def test_another_processor(self):
        """valgrind's has no AVX-512, and what is not known to it is not there."""
        for more in self.OPTIONS[:4]:
            shutil.rmtree(self.one, ignore_errors=True)
            wanted = self.reference(*more)
            shutil.rmtree(self.out, ignore_errors=True)
            self.convert(self.out, *more, prefix=("valgrind", "-q", "--tool=none"))
            self.assertEqual(contents(self.out), wanted, more)


def has_locale(name):
    done = subprocess.run(["locale", "charmap"], env={**os.environ, "LC_ALL": name}, capture_output=True, text=True)
    return done.returncode == 0 and not done.stderr


class Launchers(Parts):
    ENVIRONMENTS = {
        "Slurm": lambda i, n: {"SLURM_STEP_NUM_TASKS": str(n), "SLURM_PROCID": str(i), "SLURM_STEP_ID": "0", "SLURM_NTASKS": "9"},
        "Open MPI": lambda i, n: {"OMPI_COMM_WORLD_SIZE": str(n), "OMPI_COMM_WORLD_RANK": str(i)},
        "PMI": lambda i, n: {"PMI_SIZE": str(n), "PMI_RANK": str(i)},
    }

    def test_each_launchers_environment_is_recognised_and_named(self):
        wanted = self.reference()
        for name, environment in self.ENVIRONMENTS.items():
            shutil.rmtree(self.out, ignore_errors=True)
            for i in (1, 2, 0):
                text = self.convert(self.out, env=plain_environment(**environment(i, 3)))[1]
                self.assertIn(name, text.splitlines()[0])
                self.assertIn(f"part {i} of 3", text.splitlines()[0])
            self.assertEqual(contents(self.out), wanted, name)

    def test_none_and_a_named_part_beat_the_environment(self):
        wanted = self.reference()
        environment = plain_environment(**self.ENVIRONMENTS["Open MPI"](3, 9))
        self.convert(self.out, "--part", "none", env=environment)
        self.assertEqual(contents(self.out), wanted)
        shutil.rmtree(self.out)
        for i in range(2):
            self.convert(self.out, "--part", f"{i}/2", env=environment)
        self.assertEqual(contents(self.out), wanted)

    def test_an_allocation_that_is_no_step_of_several_tasks_is_one_process(self):
        wanted = self.reference()
        # As in a batch script: the job has four tasks, this process is none of a step.
        self.convert(self.out, env=plain_environment(SLURM_NTASKS="4", SLURM_PROCID="0", SLURM_JOB_ID="7"))
        self.assertEqual(contents(self.out), wanted)

    def test_an_indexed_kubernetes_job_says_auto(self):
        wanted = self.reference()
        for i in (1, 0):
            text = self.convert(self.out, "--part", "auto/2", env=plain_environment(JOB_COMPLETION_INDEX=str(i)))[1]
            self.assertIn(f"part {i} of 2", text.splitlines()[0])
        self.assertEqual(contents(self.out), wanted)
        self.convert(self.work / "no", "--part", "auto/2", ok=(2,))
        self.convert(self.work / "no", "--part", "auto/2", env=plain_environment(JOB_COMPLETION_INDEX="2"), ok=(2,))
        self.assertFalse((self.work / "no").exists())

    @unittest.skipUnless(MPIRUN, "no mpirun")
    def test_mpirun(self):
        for bad in (False, True):
            if bad:
                self.bad()
            shutil.rmtree(self.one, ignore_errors=True)
            wanted = self.reference(ok=(int(bad),))
            for count in (1, 4):
                shutil.rmtree(self.out, ignore_errors=True)
                argv = self.argv(self.out)
                launched = [MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", str(count), support.BIN / argv[0], *argv[1:]]
                text = self.finish(start(launched, env=plain_environment()), ok=(0, int(bad and count == 1)))[1]
                if count > 1:
                    self.assertIn("Open MPI", text)
                self.assertEqual(contents(self.out), wanted, (bad, count))


if __name__ == "__main__":
    support.main()
