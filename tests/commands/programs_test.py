"""Usage, help and statuses of the programs."""

import os
import pty
import subprocess

import support
from support import make_tree, run


class Programs(support.TestCase):
    def test_help_and_version_end_well_and_teach_by_example(self):
        for argv in (["shardpack"], ["shardpack", "convert"], ["shardpack", "list"], ["shardpack", "cat"], ["shardpack", "verify"],
                     ["shardpack", "extract"], ["shardinfo"]):
            self.assertIn("Example", run(*argv, "--help")[0].decode())
        self.assertRegex(run("shardpack", "--version")[0].decode(), r"^shardpack \d+\.\d+\.\d+\n$")

    def test_wrong_usage_is_status_2(self):
        for argv in (["shardpack"], ["shardpack", "fold"], ["shardpack", "convert"], ["shardpack", "convert", self.work / "nothing", "-o", self.out],
                     ["shardpack", "list", self.work / "nothing"], ["shardpack", "convert", self.work, "-o", self.out, "--threads", "0"],
                     ["shardpack", "convert", self.work, "-o", self.out, "--shard-size", "large"], ["shardinfo"]):
            text = run(*argv, ok=(2,))[1]
            self.assertTrue(text.strip(), argv)

    def test_documented_options_of_other_versions_are_refused_in_one_line(self):
        make_tree(self.tree)
        for option in (["--from", "tar"], ["--format", "hdf5"], ["--images", "pixels"], ["--resize", "256"], ["--part", "0/2"], ["--limit", "3"]):
            text = run("shardpack", "convert", self.tree, "-o", self.out, *option, ok=(2,))[1]
            self.assertEqual(len(text.splitlines()), 1)
            self.assertIn("this version", text)
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
        self.assertEqual(len(text.splitlines()), 1)

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
