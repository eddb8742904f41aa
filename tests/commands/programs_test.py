"""Usage, help and statuses of the programs."""

import os
import pty
import subprocess

import support
from support import encoded, make_tree, pixels, run


class Programs(support.TestCase):
    def test_help_and_version_end_well_and_teach_by_example(self):
        for argv in (["shardpack"], ["shardpack", "convert"], ["shardpack", "list"], ["shardpack", "cat"], ["shardpack", "verify"],
                     ["shardpack", "extract"], ["shardpack", "batch"], ["shardinfo"]):
            text = run(*argv, "--help")[0].decode()
            self.assertIn(f"Examples:\n  {' '.join(argv)} ", text)
        self.assertRegex(run("shardpack", "--version")[0].decode(), r"^shardpack \d+\.\d+\.\d+\n$")

    def test_wrong_usage_is_status_2(self):
        for argv in (["shardpack"], ["shardpack", "fold"], ["shardpack", "convert"], ["shardpack", "convert", self.work / "nothing", "-o", self.out],
                     ["shardpack", "list", self.work / "nothing"], ["shardpack", "convert", self.work, "-o", self.out, "--threads", "0"],
                     ["shardpack", "convert", self.work, "-o", self.out, "--shard-size", "large"], ["shardinfo"]):
            text = run(*argv, ok=(2,))[1]
            self.assertTrue(text.strip(), argv)

    def test_a_wrong_value_is_named_with_its_option_in_one_line(self):
        make_tree(self.tree, 3)
        convert = ["shardpack", "convert", self.tree, "-o", self.out]
        wrong = [("--shard-size", v) for v in ("0", "-1", "nan", "1e3", "", "1XB", "99999999999999999999")]
        wrong += [("--shard-records", v) for v in ("0", "-1", "1.5", "", "99999999999999999999")]
        wrong += [("--threads", v) for v in ("0", "-1", "4097", "")] + [("--memory", v) for v in ("0", "much")]
        wrong += [("--max-bad", v) for v in ("", "-1", "101%", "nan%", "%", "1.5")] + [("--max-pixels", "0"), ("--classes", "")]
        for option, value in wrong:
            text = run(*convert, option, value, ok=(2,))[1]
            self.assertEqual((text.count("\n"), option in text), (1, True), text)
            self.assertLess(len(text), 200)
        for argv, word in ((["shardpack", "cnvert"], "'cnvert'"), (["shardpack", "--frobnicate"], "'--frobnicate'"), (convert[:-1] + [""], "--output"),
                           (["shardpack", "batch", self.out, "--epoch", "-1"], "--epoch"), (["shardinfo", self.out, "--records", "-1"], "--records")):
            text = run(*argv, ok=(2,))[1]
            self.assertEqual((text.count("\n"), word in text), (1, True), text)
        self.assertFalse(self.out.exists())

    def test_more_threads_than_processors_are_no_matter(self):
        make_tree(self.tree, 9)
        text = run("shardpack", "convert", self.tree, "-o", self.out, "--threads", "1000")[1]
        self.assertIn("packed 9 images", text)
        self.assertNotIn("warning", text)
        self.assertEqual(run("shardpack", "verify", self.out, "--threads", "1000", "--decode")[1], "")

    def test_a_closed_pipe_ends_quietly_and_damage_keeps_its_status(self):
        make_tree(self.tree)
        run("shardpack", "convert", self.tree, "-o", self.out, "--progress", "none")
        shard = next(self.out.glob("*.shard"))
        damaged = bytearray(shard.read_bytes())
        damaged[70] ^= 1
        shard.write_bytes(damaged)
        for argv, status in ((["list", self.out], 0), (["--help"], 0), (["verify", self.out], 3), (["verify", self.out, "--json"], 3)):
            reading, writing = os.pipe()
            os.close(reading)
            done = subprocess.run([str(support.BIN / "shardpack"), *map(str, argv)], stdout=writing, stderr=subprocess.PIPE, timeout=60)
            os.close(writing)
            self.assertEqual((done.returncode, done.stderr), (status, b""), argv)

    def test_a_full_or_closed_standard_output_is_status_4(self):
        make_tree(self.tree, 3)
        run("shardpack", "convert", self.tree, "-o", self.out, "--progress", "none")
        for argv in (["list", self.out], ["verify", self.out], ["cat", self.out, 0], ["--help"], ["convert", "--help"], ["--version"]):
            program = [str(support.BIN / "shardpack"), *map(str, argv)]
            for redirection in ('exec "$@" >/dev/full', 'exec "$@" >&-'):
                done = subprocess.run(["bash", "-c", redirection, "bash", *program], stderr=subprocess.PIPE, timeout=60)
                self.assertEqual((done.returncode, done.stderr.count(b"\n")), (4, 1), argv)

    def test_messages_never_land_in_a_file_that_took_the_place_of_standard_error(self):
        make_tree(self.tree)
        (self.tree / "ant" / "bad.png").write_bytes(b"no picture")
        program = [str(support.BIN / "shardpack"), "convert", str(self.tree), "-o", str(self.out), "--progress", "plain"]
        done = subprocess.run(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", *program], timeout=60)
        self.assertEqual(done.returncode, 1)
        run("shardpack", "verify", self.out, "--decode")

    def test_a_shard_that_is_cut_short_while_it_is_read_is_named_with_status_3(self):
        make_tree(self.tree)
        for i in range(1500):
            (self.tree / "ant" / f"noise{i}.png").write_bytes(encoded(pixels(4, 4, i)))
        run("shardpack", "convert", self.tree, "-o", self.out, "--progress", "none")
        shard = next(self.out.glob("*.shard"))
        whole = shard.read_bytes()
        for argv in (["list", self.out, "--format", "jsonl"], ["batch", self.out, "--step", "all", "--json"]):
            shard.write_bytes(whole)
            # More is written than a pipe holds, so that the program is in the middle of its work when the file is cut.
            reading = subprocess.Popen([str(support.BIN / "shardpack"), *map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            reading.stdout.read(1)
            os.truncate(shard, 64)
            text = reading.communicate(timeout=60)[1].decode()
            self.assertEqual((reading.returncode, text.count("\n"), shard.name in text), (3, 1, True), text)

    def test_too_few_descriptors_end_the_run_and_are_never_a_bad_input(self):
        make_tree(self.tree)
        for limit in range(6, 17):
            program = [str(support.BIN / "shardpack"), "convert", str(self.tree), "-o", str(self.out), "--progress", "none", "--threads", "8"]
            done = subprocess.run(["bash", "-c", f'ulimit -n {limit}; exec "$@"', "bash", *program], stderr=subprocess.PIPE, timeout=60)
            if b"invalid vptr" in done.stderr:
                continue  # the sanitizer's check of types needs a pipe of its own
            # A program that cannot even load its libraries says so with 127.
            self.assertIn(done.returncode, (0, 4, 127), done.stderr)
            self.assertNotIn(b"bad input", done.stderr)

    def test_options_that_cannot_be_honoured_are_refused_in_one_line_that_names_them(self):
        make_tree(self.tree)
        for option, word in ((["--format", "hdf5"], "--format"), (["--compression", "gzip"], "hdf5"), (["--hdf5-layout", "pixels"], "--hdf5-layout"),
                             (["--resize", "256"], "--resize"), (["--images", "lossless", "--resize", "256"], "--resize"), (["--part", "2/2"], "--part"),
                             (["--part", "auto/2"], "JOB_COMPLETION_INDEX"), (["--limit", "0"], "--limit"), (["--from", "tar"], "--from"),
                             (["--images", "best"], "best"), (["--order", "random"], "random"), (["--split", "a=0.9,b=0.2"], "--split"),
                             (["--resize", "0"], "--resize"), (["--quality", "101"], "--quality"), (["--compression", "zstd:99"], "zstd:99")):
            text = run("shardpack", "convert", self.tree, "-o", self.out, *option, ok=(2,))[1]
            self.assertEqual(len(text.splitlines()), 1, text)
            self.assertIn(word, text)
            self.assertFalse(self.out.exists(), option)
        run("shardpack", "convert", self.tree, "-o", self.out, "--from", "folder", "--format", "record", "--images", "keep", "--order", "name")

    def test_files_that_are_no_shards_are_damage(self):
        for content in (b"", b"text", b"\x89HDF\r\n\x1a\n" + bytes(100)):
            (self.work / "x.shard").write_bytes(content)
            run("shardpack", "verify", self.work / "x.shard", ok=(3,))
            run("shardinfo", self.work / "x.shard", ok=(3,))

    def test_a_dry_run_writes_nothing(self):
        make_tree(self.tree)
        self.assertIn("would pack 30 images", run("shardpack", "convert", self.tree, "-o", self.out, "--dry-run")[1])
        self.assertFalse(self.out.exists())

    def test_a_terminal_gets_a_bar_and_a_pipe_does_not(self):
        make_tree(self.tree)
        leader, follower = pty.openpty()
        argv = [str(support.BIN / "shardpack"), "convert", str(self.tree), "-o", str(self.out)]
        subprocess.run(argv, stderr=follower, timeout=60, check=True)
        os.close(follower)
        self.assertIn(b"\r", os.read(leader, 1 << 16))
        os.close(leader)
        text = run("shardpack", "convert", self.tree, "-o", self.out, "--overwrite")[1]
        self.assertNotIn("\r", text)
        self.assertTrue(text.startswith("packed 30 images"), text)

    def test_a_shard_is_readable_alone(self):
        make_tree(self.tree)
        run("shardpack", "convert", self.tree, "-o", self.out, "--shard-records", "10", "--progress", "none")
        shard = sorted(self.out.glob("*.shard"))[1]
        self.assertEqual(len(support.listed(shard)), 10)
        self.assertIn(b"10 records", run("shardpack", "verify", shard)[0])
        text = run("shardinfo", shard, "--layout", "--histograms", "--classes", "--records", "3")[0].decode()
        for word in ("ant, bee, cat", "rows", "width"):
            self.assertIn(word, text)


if __name__ == "__main__":
    support.main()
