"""What convert does to its output folder: complete, refused, overwritten, bad inputs, interrupted, killed."""

import json
import os
import signal
import subprocess
import time

import support
from support import encoded, make_tree, pixels, run


class Output(support.TestCase):
    def setUp(self):
        super().setUp()
        make_tree(self.tree)

    def convert(self, *more, **options):
        return run("shardpack", "convert", self.tree, "-o", self.out, "--progress", "none", *more, **options)[1]

    def snapshot(self):
        return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in self.out.iterdir() if p.is_file()}

    def test_the_same_request_is_complete_and_another_is_refused(self):
        self.convert()
        before = self.snapshot()
        self.assertIn("already complete", self.convert())
        self.assertIn("shard-records", self.convert("--shard-records", 3, ok=(2,)))
        (self.tree / "ant" / "new.png").write_bytes(encoded(pixels(3, 3)))
        self.assertIn("inputs differ", self.convert(ok=(2,)))
        self.assertEqual(self.snapshot(), before)
        self.convert("--overwrite", "--shard-records", 40)
        run("shardpack", "verify", self.out)
        self.assertEqual(len(list(self.out.iterdir())), 2)

    def test_bad_inputs_are_skipped_with_a_ledger_and_status_1(self):
        (self.tree / "bee" / "empty.jpg").write_bytes(b"")
        text = self.convert(ok=(1,))
        self.assertIn("bee/empty.jpg", text)
        ledger = [json.loads(line) for line in (self.out / "bad_inputs.jsonl").read_text().splitlines()]
        self.assertEqual([(bad["key"], bad["source"]) for bad in ledger], [("bee/empty.jpg", str(self.tree / "bee/empty.jpg"))])
        (self.tree / "bee" / "empty.jpg").unlink()
        self.convert("--overwrite")
        self.assertFalse((self.out / "bad_inputs.jsonl").exists())

    def test_on_error_fail_names_the_file_and_leaves_nothing(self):
        (self.tree / "bee" / "page.jpg").write_bytes(b"<html>")
        self.assertIn("bee/page.jpg", self.convert("--on-error", "fail", ok=(3,)))
        self.assertFalse(self.out.exists())

    def test_max_bad_takes_a_number_or_a_share(self):
        for i in range(3):
            (self.tree / "bee" / f"empty{i}.jpg").write_bytes(b"")
        self.assertIn("limit is 2", self.convert("--max-bad", 2, ok=(3,)))
        self.assertIn("limit is 1", self.convert("--max-bad", "5%", ok=(3,)))
        self.convert("--max-bad", "10%", ok=(1,))
        self.assertIn("neither", self.convert("--max-bad", "many", ok=(2,)))

    def test_an_unreadable_file_is_a_bad_input_and_ends_a_strict_run_with_4(self):
        (self.tree / "bee" / "secret.jpg").write_bytes(b"x")
        (self.tree / "bee" / "secret.jpg").chmod(0)
        # Root may read everything, but for a process that gave that right away.
        plain = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
        self.assertIn("secret.jpg", self.convert("--on-error", "fail", ok=(4,), prefix=plain))
        self.assertIn("Permission denied", self.convert(ok=(1,), prefix=plain))

    def test_a_full_disk_is_status_4_and_one_line(self):
        # A limit on file size stands for it: the system refuses a write in the middle of a shard.
        program = [str(support.BIN / "shardpack"), "convert", str(self.tree), "-o", str(self.out), "--progress", "none"]
        limited = subprocess.run(["bash", "-c", 'trap "" XFSZ; ulimit -f 8; exec "$@"', "bash", *program], stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(limited.returncode, 4)
        self.assertEqual(len(limited.stderr.splitlines()), 1)
        self.assertFalse(self.out.exists())

    def start_slow(self, *more):
        """A conversion that takes a while: pictures that are slow to check."""
        first = self.tree / "cat" / "0.png"
        if not first.exists():
            first.write_bytes(encoded(pixels(1200, 1200)))
            for i in range(1, 80):
                os.link(first, self.tree / "cat" / f"{i}.png")
        argv = [str(support.BIN / "shardpack"), "convert", str(self.tree), "-o", str(self.out), "--threads", "1", *more]
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        until = time.time() + 30
        while not list(self.out.glob(".shardpack/*.partial")) and time.time() < until:
            time.sleep(0.01)
        return process

    def test_an_interrupt_ends_with_130_and_leaves_the_old_dataset_whole(self):
        self.convert()
        before = self.snapshot()
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start_slow("--overwrite")
            process.send_signal(number)
            text = process.communicate(timeout=30)[1]
            self.assertEqual(process.returncode, 130, text)
            self.assertIn("again", text)
            self.assertEqual(self.snapshot(), before)

    def test_a_second_process_on_the_same_output_is_refused(self):
        process = self.start_slow()
        self.assertIn("another process", self.convert("--verify-images", "none", ok=(4,)))
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual([p.name for p in self.out.iterdir()], [".shardpack"])

    def test_after_a_kill_the_next_run_gives_the_result_of_an_undisturbed_one(self):
        process = self.start_slow("--shard-records", "40")
        process.kill()
        process.communicate()
        run("shardpack", "verify", self.out, ok=(2, 3))
        self.convert("--shard-records", 40, "--verify-images", "header")
        other = self.work / "other"
        run("shardpack", "convert", self.tree, "-o", other, "--progress", "none", "--shard-records", 40, "--verify-images", "header")
        names = lambda folder: {p.name: p.read_bytes() for p in folder.iterdir()}
        self.assertEqual(names(self.out), names(other))


if __name__ == "__main__":
    support.main()
