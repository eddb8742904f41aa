"""--compression and --dictionary: what is stored, against a second reader of shards and the zstd program."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import support
from support import encoded, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "store"))
try:
    import read_shard
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def tiny(seed):
    """A 32x32 JPEG of smooth colours: most of it is its header."""
    random = np.random.default_rng(seed)
    corners = random.integers(0, 256, (2, 2, 3)).astype(float)
    t = np.linspace(0, 1, 32)[:, None]
    rows = corners[0][None] * (1 - t[..., None]) + corners[1][None] * t[..., None]
    left, right = rows[:, 0], rows[:, 1]
    picture = left[:, None] * (1 - t[None]) + right[:, None] * t[None]
    return encoded((picture + random.normal(0, 4, picture.shape)).clip(0, 255).astype(np.uint8), "JPEG", quality=90)


class Codecs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="shardpack-codecs-")
        cls.root = pathlib.Path(cls.folder.name)
        cls.files = {f"{'ab'[i % 2]}/{i:04}.jpg": tiny(i) for i in range(1000)}
        for i in range(3):
            cls.files[f"b/large{i}.jpg"] = encoded(support.pixels(150, 120, i), "JPEG", quality=95)
        cls.files["a/plain.bmp"] = encoded(np.full((100, 90, 3), 7, np.uint8), "BMP")
        for key, content in cls.files.items():
            path = cls.root / "tree" / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        cls.raw_bytes = sum(map(len, cls.files.values()))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def convert(self, *options):
        """Gives the JSON of shardinfo and the records by key, as the second reader finds them."""
        out = self.root / "out"
        shutil.rmtree(out, ignore_errors=True)
        run("shardpack", "convert", self.root / "tree", "-o", out, "--progress", "none", *options)
        run("shardpack", "verify", out)
        self.shards = [read_shard.Shard(path.read_bytes()) for path in sorted(out.glob("*.shard"))]
        records = {record["key"].decode(): record for shard in self.shards for record in shard.records}
        self.assertEqual({key: record["raw"] for key, record in records.items()}, self.files)
        return json.loads(run("shardinfo", out, "--json")[0]), records

    def codecs_of(self, records):
        """{codec: number} of tiny JPEGs, of large ones, and of the bitmap."""
        count = {}
        for key, record in records.items():
            kind = "bmp" if key.endswith("bmp") else "large" if "large" in key else "tiny"
            count.setdefault(kind, {}).setdefault(record["codec"], 0)
            count[kind][record["codec"]] += 1
        return count

    def test_auto_gives_tiny_jpegs_a_dictionary_and_stores_large_ones(self):
        info, records = self.convert()
        count = self.codecs_of(records)
        self.assertEqual(count, {"tiny": {"zstd-dictionary": 1000}, "large": {"stored": 3}, "bmp": {"zstd": 1}})
        self.assertEqual({name: codec["records"] for name, codec in info["codecs"].items()}, {"stored": 3, "zstd": 1, "zstd-dictionary": 1000})
        stored = sum(record["end"] - record["begin"] for record in records.values() if record["codec"] == "zstd-dictionary")
        tiny_bytes = sum(len(content) for content in self.files.values() if len(content) <= 4096)
        self.assertLess(info["codecs"]["zstd-dictionary"]["stored_bytes"], 0.75 * tiny_bytes)
        self.assertLess(info["codecs"]["zstd-dictionary"]["stored_bytes"], stored)
        receipts = {(r["encoding"], r["codec"]) for r in info["receipts"]}
        self.assertLessEqual({("jpeg", "zstd-dictionary"), ("jpeg", "stored")}, receipts)
        # The copy before the first record is what the index has.
        shard = self.shards[0]
        dictionary = shard.sections[(9, 0)]
        self.assertEqual(shard.data[104 : 104 + len(dictionary)], dictionary)

    def test_the_zstd_program_inflates_a_record_with_the_dictionary_of_the_shard(self):
        if shutil.which("zstd") is None:
            self.skipTest("no zstd program")
        _, records = self.convert()
        shard = self.shards[0]
        (self.root / "words").write_bytes(shard.sections[(9, 0)])
        for key in "a/0000.jpg", "b/0001.jpg", "b/0999.jpg":
            record = records[key]
            payload = shard.data[record["begin"] + 40 + read_shard.up(len(key), 8) : record["end"]]
            done = subprocess.run(["zstd", "-dc", "-D", str(self.root / "words")], input=payload, stdout=subprocess.PIPE, check=True)
            self.assertEqual(done.stdout, self.files[key])

    def test_archive_puts_tiny_records_in_blocks(self):
        info, records = self.convert("--compression", "archive")
        count = self.codecs_of(records)
        self.assertEqual(count["tiny"], {"zstd-block": 1000})
        self.assertEqual(count["bmp"], {"zstd": 1})
        self.assertGreater(len(self.shards[0].blocks), 1)
        self.assertLessEqual(max(len(content) for _, _, _, content, _ in self.shards[0].blocks.values()), (64 << 10) + 8)
        # Each frame counts once.
        frames = sum(size for shard in self.shards for _, _, size, _, _ in shard.blocks.values())
        self.assertEqual(info["codecs"]["zstd-block"]["stored_bytes"], frames)
        self.assertEqual(info["codecs"]["zstd-block"]["records"], 1000)
        out = self.root / "out"
        for key in "b/0777.jpg", "a/0000.jpg":
            self.assertEqual(run("shardpack", "cat", out, key)[0], self.files[key])

    def test_none_stores_everything(self):
        info, _ = self.convert("--compression", "none")
        self.assertEqual(info["codecs"], {"stored": {"records": len(self.files), "raw_bytes": self.raw_bytes, "stored_bytes": self.raw_bytes}})

    def test_without_a_dictionary_tiny_records_are_stored_or_lie_alone(self):
        info, _ = self.convert("--dictionary", "none")
        self.assertNotIn("zstd-dictionary", info["codecs"])
        self.assertNotIn((9, 0), self.shards[0].sections)

    def test_the_size_of_the_dictionary_is_what_was_asked_for(self):
        self.convert("--dictionary", "2KiB")
        size = len(self.shards[0].sections[(9, 0)])
        self.assertGreater(size, 1024)
        self.assertLessEqual(size, 2048)

    def test_a_higher_level_makes_frames_of_other_bytes_and_equal_content(self):
        low, _ = self.convert("--compression", "zstd:1", "--dictionary", "none")
        high, _ = self.convert("--compression", "zstd:19", "--dictionary", "none")
        self.assertLess(high["codecs"]["zstd"]["stored_bytes"], low["codecs"]["zstd"]["stored_bytes"])

    def test_the_digest_of_the_dataset_is_of_the_content_alone(self):
        digests = {self.convert("--compression", kind)[0]["dataset_digest"] for kind in ("auto", "none", "zstd", "archive")}
        self.assertEqual(len(digests), 1)


if __name__ == "__main__":
    support.main()
