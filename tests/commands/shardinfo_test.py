"""What shardinfo tells of receipts, statistics, revisions and labels, against Python's own arithmetic."""

import json
import pathlib
import statistics
import tempfile
import unittest

import support
from support import make_tree, run

RECEIPTS = [
    {"encoding": "jpeg", "codec": "zstd-dictionary", "sample_records": 200, "sample_raw_bytes": 206000, "sample_stored_bytes": 84000,
     "decode_ns_per_record": 1232},
    {"encoding": "bmp", "codec": "zstd", "sample_records": 3, "sample_raw_bytes": 3_000_000, "sample_stored_bytes": 1_500_000,
     "decode_ns_per_record": 1_001_000},
]
REVISIONS = [{"command": "append", "request": "0123456789abcdef" * 2, "records": 12}, {"command": "amend", "request": "f" * 32, "records": 3}]


class Shardinfo(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="shardpack-shardinfo-")
        self.addCleanup(self.folder.cleanup)
        self.out = pathlib.Path(self.folder.name) / "out"
        tree = pathlib.Path(self.folder.name) / "tree"
        make_tree(tree, 7)
        run("shardpack", "convert", tree, "-o", self.out, "--progress", "none")

    def change(self, **fields):
        path = self.out / "dataset.json"
        manifest = json.loads(path.read_text())
        manifest.update(fields)
        path.write_text(json.dumps(manifest))

    def json(self):
        return json.loads(run("shardinfo", self.out, "--json")[0])

    def text(self):
        return run("shardinfo", self.out)[0].decode()

    def test_mean_and_deviation_are_those_of_the_pixels(self):
        channels = [[10, 20, 250, 0, 7], [255] * 5, [3, 3, 3, 4, 4]]
        self.change(statistics={"pictures": 2, "pixels": 5, "sum": [sum(c) for c in channels],
                                "sum_of_squares": [sum(v * v for v in c) for c in channels]})
        told = self.json()["statistics"]
        self.assertEqual((told["pictures"], told["pixels"]), (2, 5))
        for k, channel in enumerate(channels):
            self.assertAlmostEqual(told["mean"][k], statistics.fmean(channel), places=12)
            self.assertAlmostEqual(told["deviation"][k], statistics.pstdev(channel), places=12)
            line = next(line for line in self.text().splitlines() if line.split()[:1] == [("red", "green", "blue")[k]])
            self.assertEqual(line.split()[1:], [f"{statistics.fmean(channel):.2f}", f"{statistics.pstdev(channel):.2f}",
                                                f"{statistics.fmean(channel) / 255:.4f}", f"{statistics.pstdev(channel) / 255:.4f}"])

    def test_deviation_keeps_its_digits_over_very_many_pixels(self):
        n = 10**13  # half of them 200, half 201
        self.change(statistics={"pictures": 1, "pixels": n, "sum": [n // 2 * 401] * 3, "sum_of_squares": [n // 2 * (200**2 + 201**2)] * 3})
        self.assertEqual(self.json()["statistics"]["deviation"], [0.5] * 3)
        self.assertEqual(self.json()["statistics"]["mean"], [200.5] * 3)

    def test_receipts_are_told_with_what_was_saved_and_the_time_to_inflate(self):
        self.change(receipts=RECEIPTS)
        self.assertEqual(self.json()["receipts"], RECEIPTS)
        lines = [line.split() for line in self.text().splitlines()]
        self.assertIn(["jpeg", "zstd-dictionary", "200", "201", "KiB", "119", "KiB", "(59.2", "%)", "1,232", "ns"], lines)
        self.assertIn(["bmp", "zstd", "3", "2.9", "MiB", "1.4", "MiB", "(50.0", "%)", "1,001", "us"], lines)

    def test_the_table_of_codecs_has_shares_and_bytes_saved(self):
        codecs = {"stored": {"records": 5, "raw_bytes": 5000, "stored_bytes": 5000}, "zstd": {"records": 2, "raw_bytes": 1000, "stored_bytes": 250}}
        self.change(codecs=codecs, receipts=RECEIPTS)
        self.assertEqual(self.json()["codecs"], codecs)
        lines = [line.split() for line in self.text().splitlines()]
        self.assertIn(["zstd", "2", "28.6", "%", "1000", "B", "250", "B", "750", "B", "(75.0", "%)", "1,001", "us"], lines)
        stored = next(line for line in lines if line[:1] == ["stored"])
        self.assertEqual(stored[1:4], ["5", "71.4", "%"])
        self.assertEqual(stored[-2:], ["0", "ns"])

    def test_revisions_are_told_in_their_order(self):
        self.change(revisions=REVISIONS)
        self.assertEqual(self.json()["revisions"], REVISIONS)
        lines = [line.split() for line in self.text().splitlines()]
        at = lines.index(["append", "12", REVISIONS[0]["request"]])
        self.assertEqual(lines[at + 1], ["amend", "3", REVISIONS[1]["request"]])

    def test_the_kind_of_labels_is_told(self):
        for kind, words in ("class", "3: ant, bee, cat"), ("integer", "whole numbers"), ("list", "lists of"), ("float", "floating-point numbers"):
            self.change(label_kind=kind)
            self.assertEqual(self.json()["label_kind"], kind)
            self.assertIn(words, self.text())

    def test_a_dataset_with_none_of_these_says_so_in_json_and_is_silent_in_text(self):
        self.change(receipts=[], revisions=[])
        told = self.json()
        self.assertEqual((told["receipts"], told["statistics"], told["revisions"]), ([], None, []))
        for word in ("in the sample", "deviation", "request"):
            self.assertNotIn(word, self.text())


if __name__ == "__main__":
    support.main()
