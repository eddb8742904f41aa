"""Conversions under bad conditions: a full disk, no descriptors, no permission, inputs that change meanwhile, an impatient user."""

import json
import os
import shutil
import signal
import stat
import subprocess
import time
import unittest

import support
from support import contents, encoded, make_tree, pixels, run
from watch import FolderWatch, record, start, wait_for

# Root may read and write everything, but for a process that gave that right away.
PLAIN = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()


class Conditions(support.TestCase):
    def setUp(self):
        super().setUp()
        make_tree(self.tree, 60)

    def argv(self, *more, out=None, records=4):
        return ["convert", self.tree, "-o", out or self.out, "--shard-records", records, "--progress", "none", *more]

    def convert(self, *more, out=None, records=4, **options):
        return run("shardpack", *self.argv(*more, out=out, records=records), **options)[1]

    def begin(self, *more):
        return start([support.BIN / "shardpack", *self.argv(*more)])

    def slow(self, folder="ant", count=40):
        """Pictures that take a while to check, first in the order: links to one file."""
        first = self.tree / folder / "0.png"
        first.write_bytes(encoded(pixels(900, 900)))
        for i in range(1, count):
            os.link(first, self.tree / folder / f"0{i:03}.png")

    def reference(self, *more, **options):
        self.convert(*more, out=self.work / "reference", **options)
        return contents(self.work / "reference")

    def one_line(self, text, *words):
        self.assertEqual(len(text.splitlines()), 1, text)
        for word in words:
            self.assertIn(word, text)

    def status(self):
        return json.loads(run("shardpack", "status", self.out, "--json", ok=range(5))[0])


class SmallDisk(Conditions):
    """A file system of a few pages in memory."""

    def mount(self, size):
        self.disk = self.work / "disk"
        self.disk.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", self.disk], capture_output=True, text=True)
        if done.returncode:
            self.skipTest(f"no file system of our own: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", self.disk], check=True)
        self.out = self.disk / "out"

    def resize(self, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", self.disk], check=True)

    def shards(self):
        return {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in self.disk.rglob("*.shard")}

    def test_what_is_finished_stays_on_a_full_disk_and_a_rerun_goes_on(self):
        wanted = self.reference()
        self.mount("150k")
        stages = 0
        for size in (150, 170, 190, 230, 10000):
            self.resize(f"{size}k")
            before = self.shards()
            text = self.convert(ok=(0, 4))
            if (self.out / "dataset.json").exists():
                break
            stages += 1
            self.one_line(text, "No space left")
            state = self.status()
            self.assertFalse(state["sealed"])
            again = [p for p, s in self.shards().items() if before.get(p, s) != s]
            # Two shards at most are on their way at once, and may have got their names but no line in the journal.
            self.assertLessEqual(len(again), 2, "finished shards were written again")
            self.assertLessEqual(before.keys(), self.shards().keys())
        self.assertGreater(stages, 1)
        self.assertEqual(contents(self.out), wanted)

    def test_every_size_of_disk_ends_in_status_4_or_a_whole_dataset(self):
        wanted = self.reference()
        self.mount("4k")
        ends = set()
        for size in list(range(4, 60, 8)) + list(range(60, 700, 60)):
            shutil.rmtree(self.out, ignore_errors=True)
            self.resize(f"{size}k")
            text = self.convert(ok=(0, 4))
            ends.add((self.out / "dataset.json").exists())
            if not (self.out / "dataset.json").exists():
                self.one_line(text, "No space left")
            self.resize("10m")
            self.convert()
            self.assertEqual(contents(self.out), wanted, f"{size} KiB")
        self.assertEqual(ends, {True, False})

    def test_a_full_disk_leaves_an_older_dataset_whole(self):
        self.mount("10m")
        self.convert(records=9)
        before = contents(self.out)
        used = sum(p.stat().st_size for p in self.out.iterdir()) // 1024
        self.resize(f"{used + 60}k")
        self.one_line(self.convert("--overwrite", ok=(4,)), "No space left")
        self.assertEqual({name: data for name, data in contents(self.out).items() if name in before}, before)
        run("shardpack", "verify", self.out)
        self.resize("10m")
        self.convert("--overwrite")
        self.assertEqual(contents(self.out), self.reference())

    def test_a_disk_that_may_not_be_written(self):
        self.mount("1m")
        subprocess.run(["mount", "-o", "remount,ro", self.disk], check=True)
        self.one_line(self.convert(ok=(4,)), "Read-only file system")


class Refused(Conditions):
    def test_too_few_descriptors_end_in_one_line_and_leave_no_input_out(self):
        wanted = self.reference()
        ends = set()
        for limit in (*range(8, 24), 32, 48):
            shutil.rmtree(self.out, ignore_errors=True)
            argv = [support.BIN / "shardpack", *self.argv("--threads", 7)]
            done = subprocess.run(["bash", "-c", f'ulimit -n {limit}; exec "$@"', "bash", *map(str, argv)], capture_output=True, text=True, timeout=60)
            self.assertIn(done.returncode, (0, 4, 127), (limit, done.stderr))  # 127: the dynamic loader has too few itself
            ends.add(done.returncode)
            if done.returncode == 4:
                self.one_line(done.stderr, "Too many open files")
                self.assertFalse((self.out / "dataset.json").exists())
                self.convert()
            if done.returncode != 127:
                self.assertEqual(contents(self.out), wanted, limit)
        self.assertLessEqual({0, 4}, ends)

    def test_an_unreadable_folder_is_one_line_and_not_a_dataset_without_it(self):
        folder = self.tree / "bee" / "1"
        folder.chmod(0)
        self.addCleanup(folder.chmod, 0o755)
        self.one_line(self.convert(ok=(4,), prefix=PLAIN), "bee/1", "Permission denied")
        self.assertFalse((self.out / "dataset.json").exists())

    def test_an_unreadable_source(self):
        self.tree.chmod(0)
        self.addCleanup(self.tree.chmod, 0o755)
        self.one_line(self.convert(ok=(4,), prefix=PLAIN), "tree", "Permission denied")

    def test_an_output_that_may_not_be_written(self):
        self.out.mkdir()
        self.out.chmod(0o555)
        self.addCleanup(self.out.chmod, 0o755)
        self.one_line(self.convert(ok=(4,), prefix=PLAIN), "Permission denied")
        self.assertEqual(list(self.out.iterdir()), [])
        self.one_line(self.convert(out=self.out / "deeper", ok=(4,), prefix=PLAIN), "Permission denied")

    def test_a_file_in_the_place_of_the_output_or_of_its_work_folder(self):
        self.out.write_bytes(b"mine")
        self.one_line(self.convert(ok=(2, 4)), "out")
        self.assertEqual(self.out.read_bytes(), b"mine")
        self.out.unlink()
        self.out.mkdir()
        (self.out / ".shardpack").write_bytes(b"mine")
        self.one_line(self.convert(ok=(2, 4)), ".shardpack")
        self.assertEqual((self.out / ".shardpack").read_bytes(), b"mine")

    def test_a_work_folder_that_is_a_link_is_not_followed(self):
        elsewhere = self.work / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "plan").write_bytes(b"mine")
        self.out.mkdir()
        (self.out / ".shardpack").symlink_to(elsewhere)
        self.convert(ok=(2, 4))
        self.assertEqual(contents(elsewhere), {"plan": b"mine"})


class Changing(Conditions):
    def changed(self, *more, change, ok):
        """Runs with `change()` done once packing has begun; what it changes comes last in the order."""
        watch = FolderWatch(self.out)
        process = self.begin("--threads", "1", *more)
        try:
            while process.poll() is None and not list(self.out.rglob("*.partial")):
                watch.changes(0.05)
            change()
            text = process.communicate(timeout=60)[1].decode("utf-8", "replace")
            self.assertIn(process.returncode, ok, text)
            return text
        finally:
            process.kill()
            process.communicate()
            watch.close()

    def victims(self):
        """Files of the last class: name -> content."""
        folder = self.tree / "zebra"
        folder.mkdir()
        files = {f"{name}.png": encoded(pixels(30, 30, i)) for i, name in enumerate(("fifo", "folder", "grown", "link", "same", "shrunk", "vanished", "zz"))}
        for name, data in files.items():
            (folder / name).write_bytes(data)
        return folder, files

    def test_inputs_that_change_while_they_are_packed_are_bad_inputs(self):
        folder, files = self.victims()
        self.slow()

        def change():
            (folder / "vanished.png").unlink()
            (folder / "grown.png").write_bytes(files["grown.png"] * 2)
            (folder / "shrunk.png").write_bytes(files["shrunk.png"][:50])
            for name in ("fifo.png", "folder.png", "link.png"):
                (folder / name).unlink()
            os.mkfifo(folder / "fifo.png")
            (folder / "folder.png").mkdir()
            (folder / "link.png").symlink_to("link.png")

        text = self.changed(change=change, ok=(1,))
        ledger = {bad["key"]: bad["reason"] for bad in map(json.loads, (self.out / "bad_inputs.jsonl").read_text().splitlines())}
        self.assertEqual(sorted(ledger), [f"zebra/{name}.png" for name in ("fifo", "folder", "grown", "link", "shrunk", "vanished")])
        for name in ("grown", "shrunk"):
            self.assertIn("changed", ledger[f"zebra/{name}.png"])
        self.assertIn("zebra/", text)
        run("shardpack", "verify", self.out, "--decode")
        self.assertEqual(run("shardpack", "cat", self.out, "zebra/same.png")[0], files["same.png"])

    def test_a_change_ends_a_strict_run_and_names_the_file(self):
        folder, files = self.victims()
        self.slow()
        text = self.changed("--on-error", "fail", change=(folder / "vanished.png").unlink, ok=(3, 4))
        self.assertIn("zebra/vanished.png", text)
        self.assertFalse((self.out / "dataset.json").exists())

    def test_an_input_that_changed_since_the_plan_is_refused_with_its_name(self):
        folder, files = self.victims()
        for change, name in ((lambda p: p.write_bytes(b"x" * 7), "grown.png"), (lambda p: p.unlink(), "vanished.png")):
            shutil.rmtree(self.out, ignore_errors=True)
            run("shardpack", "plan", *self.argv()[1:])
            change(folder / name)
            text = self.convert(ok=(2, 3))
            self.assertIn(f"zebra/{name}", text)
            self.assertFalse((self.out / "dataset.json").exists())
            # Looked at anew it is another request.
            self.convert("--rescan", ok=(0, 1, 2))
            (folder / name).write_bytes(files[name])

    def test_a_pipe_and_a_device_like_file_are_passed_over(self):
        os.mkfifo(self.tree / "ant" / "pipe.png")
        self.convert()
        self.assertEqual(contents(self.out), self.reference())
        os.unlink(self.tree / "ant" / "pipe.png")
        self.assertTrue(stat.S_ISDIR((self.tree / "ant").stat().st_mode))
        shutil.rmtree(self.work / "reference")
        self.assertEqual(contents(self.out), self.reference())

    def test_a_pipe_that_takes_the_place_of_a_planned_file_does_not_hold_the_run(self):
        folder, files = self.victims()
        run("shardpack", "plan", *self.argv()[1:])
        (folder / "fifo.png").unlink()
        os.mkfifo(folder / "fifo.png")
        self.assertIn("zebra/fifo.png", self.convert(ok=(1, 2, 3), timeout_s=20))


class Impatient(Conditions):
    def test_ctrl_c_ends_within_a_second_and_the_rerun_goes_on(self):
        self.slow(count=200)
        wanted = self.reference()
        for number, threads in ((signal.SIGINT, 1), (signal.SIGINT, 7), (signal.SIGTERM, 2)):
            shutil.rmtree(self.out, ignore_errors=True)
            process = self.begin("--threads", str(threads))
            until = time.time() + 30
            while not list(self.out.glob("*.shard")) and process.poll() is None and time.time() < until:
                time.sleep(0.005)
            begun = time.monotonic()
            process.send_signal(number)
            text = process.communicate(timeout=30)[1].decode()
            took = time.monotonic() - begun
            self.assertEqual(process.returncode, 130, text)
            self.assertLess(took, 1)
            self.assertIn("again", text)
            done = {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in self.out.glob("*.shard")}
            self.assertTrue(done)
            self.convert()
            self.assertEqual({p: s for p, s in ((p, (p.stat().st_ino, p.stat().st_mtime_ns)) for p in done)}, done)
            self.assertEqual(contents(self.out), wanted)

    def test_ctrl_c_at_any_time(self):
        """Planning, packing, sealing: 130 and a rerun that ends well, or it was too late and all is done."""
        self.slow(count=8)
        argv = [support.BIN / "shardpack", *self.argv()]
        _, seconds, _ = record(argv, self.out)
        wanted = contents(self.out)
        seen = set()
        for i in range(24):
            shutil.rmtree(self.out, ignore_errors=True)
            process = start(argv)
            time.sleep(seconds * i / 22)
            process.send_signal(signal.SIGINT)
            text = process.communicate(timeout=30)[1].decode()
            # Before main() took the signal over, it ends a process as it ends any other.
            self.assertIn(process.returncode, (0, 130, -signal.SIGINT), text)
            seen.add(process.returncode)
            self.convert()
            self.assertEqual(contents(self.out), wanted)
        self.assertIn(130, seen)


if __name__ == "__main__":
    support.main()
