"""Lists, datasets and HDF5 files packed by the program, against Python's own reading of what they were made from."""

import csv
import io
import json
import os
import random
import sys
import unittest

import numpy as np
from PIL import Image

from support import TestCase, encoded, listed, main, make_tree, pixels, run

try:
    import h5py
except ImportError:
    h5py = None


def digest_of(dataset):
    return json.loads((dataset / "dataset.json").read_text())["dataset_digest"]


class Sources(TestCase):
    def pictures(self, count):
        """{name: bytes}, written into the work folder."""
        files = {f"im/{n}.png": encoded(pixels(9 + n % 7, 8, n)) for n in range(count)}
        (self.work / "im").mkdir()
        for name, content in files.items():
            (self.work / name).write_bytes(content)
        return files

    def jsonl(self, rows, name="list.jsonl"):
        (self.work / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return self.work / name

    def cat(self, dataset, index):
        return run("shardpack", "cat", dataset, index, "--index")[0]


class Lists(Sources):
    def test_a_csv_with_quotes_everywhere_is_packed_as_pythons_module_reads_it(self):
        files = self.pictures(60)
        draw = random.Random(3)
        rows = [[name, draw.choice(["a, b", 'c "d"', "e\nf"]), "".join(draw.choice('x,"\r\n é') for _ in range(9))] for name in files]
        text = io.StringIO(newline="")
        csv.writer(text).writerows([["path", "label", "some, note"], *rows])
        (self.work / "list.csv").write_bytes(text.getvalue().encode())
        run("shardpack", "convert", self.work / "list.csv", "-o", self.out)
        records = listed(self.out)
        truth = list(csv.DictReader(io.StringIO(text.getvalue(), newline="")))
        classes = sorted({row["label"] for row in truth})
        self.assertEqual([r["key"] for r in records], [row["path"] for row in truth])
        self.assertEqual([r["label"] for r in records], [classes.index(row["label"]) for row in truth])
        self.assertEqual([r["metadata"] for r in records], [{"some, note": row["some, note"]} for row in truth])
        for index, row in enumerate(truth[:5]):
            self.assertEqual(self.cat(self.out, index), files[row["path"]])

    def test_a_dataset_made_of_a_dataset_has_its_digest_for_every_kind_of_label(self):
        files = self.pictures(12)
        draw = random.Random(4)
        kinds = {"integer": lambda n: draw.choice([n, -(2**63), 2**53 + 1]), "class": lambda n: "zyx"[n % 3], "list": lambda n: list(range(n % 4)),
                 "float": lambda n: draw.choice([0.1, 16777217.0, 1e300, -1e-7])}
        for kind, label in kinds.items():
            rows = [{"path": name, "label": label(n), "note": {"n": [n, 1.5]}} for n, name in enumerate(files)]
            first, second = self.work / f"{kind}-1", self.work / f"{kind}-2"
            run("shardpack", "convert", self.jsonl(rows, f"{kind}.jsonl"), "-o", first, "--shard-records", "5")
            run("shardpack", "convert", first, "-o", second, "--shard-records", "7", "--compression", "none")
            self.assertEqual(digest_of(first), digest_of(second))
            names = sorted({row["label"] for row in rows}) if kind == "class" else []
            self.assertEqual([r["label"] for r in listed(second)], [names.index(row["label"]) if names else row["label"] for row in rows])
            for index, (name, content) in enumerate(files.items()):
                self.assertEqual(self.cat(second, index), content)

    def test_a_folder_dataset_and_the_dataset_of_it_agree_though_classes_are_pinned_in_another_order(self):
        files = make_tree(self.tree)
        (self.work / "classes.txt").write_text("cat\nant\nbee\nunused\n")
        run("shardpack", "convert", self.tree, "-o", self.out, "--classes", self.work / "classes.txt")
        run("shardpack", "convert", self.out, "-o", self.work / "second")
        self.assertEqual(digest_of(self.out), digest_of(self.work / "second"))
        labels = {r["key"]: r["label"] for r in listed(self.work / "second")}
        self.assertEqual(labels, {key: ["cat", "ant", "bee"].index(key.split("/")[0]) for key in files})

    def test_a_dataset_without_classes_pins_none(self):
        make_tree(self.tree)
        run("shardpack", "convert", self.jsonl([{"path": name, "label": 1} for name in self.pictures(3)]), "-o", self.work / "numbers")
        _, text = run("shardpack", "convert", self.tree, "-o", self.out, "--classes", self.work / "numbers", ok=(2,))
        self.assertIn("--classes: the labels of", text)
        self.assertFalse(self.out.exists())

    def test_a_row_whose_file_is_missing_is_skipped_and_named_or_stops_the_run(self):
        files = self.pictures(3)
        path = self.jsonl([*({"path": name, "label": 1} for name in files), {"path": "im/gone.png", "label": 1}])
        _, text = run("shardpack", "convert", path, "-o", self.out, ok=(1,))
        self.assertEqual(len(listed(self.out)), 3)
        ledger = [json.loads(line) for line in (self.out / "bad_inputs.jsonl").read_text().splitlines()]
        self.assertEqual([(bad["key"], bad["reason"]) for bad in ledger], [("im/gone.png", "no such file")])
        self.assertIn("line 4", ledger[0]["source"])
        _, text = run("shardpack", "convert", path, "-o", self.work / "other", "--on-error", "fail", ok=(3,))
        self.assertIn("im/gone.png", text)

    def test_a_path_that_comes_twice_in_a_list_is_refused_with_both_lines(self):
        name = next(iter(self.pictures(1)))
        path = self.jsonl([{"path": name, "label": 1}, {"path": name, "label": 2}])
        _, text = run("shardpack", "convert", path, "-o", self.out, ok=(2,))
        for words in (name, "line 1", "line 2"):
            self.assertIn(words, text)

    def test_lists_and_folders_go_into_one_dataset(self):
        files = self.pictures(4)
        tree = make_tree(self.tree, 6)
        path = self.jsonl([{"path": name, "label": "bee"} for name in files])
        run("shardpack", "convert", path, self.tree, "-o", self.out)
        self.assertEqual([r["key"] for r in listed(self.out)], [*files, *sorted(tree)])


# Set where the programs under test were built without HDF5.
WITHOUT_HDF5 = os.environ.get("SHARDPACK_WITHOUT_HDF5") == "1"


@unittest.skipIf(h5py is None, "no h5py")
class WithoutHdf5(Sources):
    @unittest.skipUnless(WITHOUT_HDF5, "this build has HDF5")
    def test_a_build_without_hdf5_says_so(self):
        with h5py.File(self.work / "data.h5", "w") as file:
            file["images"], file["labels"] = np.zeros((2, 4, 4, 3), np.uint8), np.arange(2)
        _, text = run("shardpack", "convert", self.work / "data.h5", "-o", self.out, ok=(3,))
        self.assertIn("this build has no HDF5", text)
        self.assertIn("data.h5", text)
        self.assertFalse((self.out / "dataset.json").exists())


@unittest.skipIf(h5py is None, "no h5py")
@unittest.skipIf(WITHOUT_HDF5, "this build has no HDF5")
class Hdf5(Sources):
    def test_arrays_come_out_as_pictures_of_the_same_pixels(self):
        images = np.stack([pixels(11, 7, n) for n in range(20)])
        labels = np.arange(20) % 3
        with h5py.File(self.work / "data.h5", "w") as file:
            file.create_dataset("images", data=images, chunks=(4, 7, 11, 3), compression="gzip")
            file["labels"] = labels
            file["classes"] = ["zebra", "ape", "cat"]
        run("shardpack", "convert", self.work / "data.h5", "-o", self.out)
        self.assertEqual([(r["key"], r["label"]) for r in listed(self.out)], [(f"{n:06}", labels[n]) for n in range(20)])
        self.assertEqual(json.loads((self.out / "dataset.json").read_text())["classes"], ["zebra", "ape", "cat"])
        for n in (0, 7, 19):
            ppm = run("shardpack", "cat", self.out, n, "--index", "--decode", "ppm")[0]
            np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(ppm))), images[n])
        run("shardpack", "verify", self.out, "--decode")
        run("shardpack", "convert", self.out, "-o", self.work / "second")
        self.assertEqual(digest_of(self.out), digest_of(self.work / "second"))

    def test_image_files_in_an_array_are_judged_as_any_others(self):
        good = encoded(pixels(9, 9), "JPEG")
        with h5py.File(self.work / "data.h5", "w") as file:
            images = file.create_dataset("images", (3,), h5py.vlen_dtype(np.uint8))
            for n, content in enumerate((good, good[: len(good) // 2], good)):
                images[n] = np.frombuffer(content, np.uint8)
            file["labels"] = [7, 8, 9]
        run("shardpack", "convert", self.work / "data.h5", "-o", self.out, ok=(1,))
        self.assertEqual([(r["key"], r["label"]) for r in listed(self.out)], [("000000", 7), ("000002", 9)])
        self.assertEqual(self.cat(self.out, 0), good)
        self.assertIn("images[1]", (self.out / "bad_inputs.jsonl").read_text())


if __name__ == "__main__":
    main()
