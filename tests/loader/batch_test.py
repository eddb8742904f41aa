"""shardpack batch against Pillow and NumPy: batch_test.py FOLDER_OF_BINARIES

Pictures are made here, packed, and the loader's tensors compared with what Pillow makes of the files: torchvision's eval transform is
Pillow's resize of the shorter side and a cut from the middle.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from PIL import Image

SHARDPACK = str(pathlib.Path(sys.argv.pop(1)) / "shardpack")
SIZES = [(300, 260), (260, 300), (257, 500), (640, 427), (256, 256), (90, 70), (224, 400), (333, 257), (1000, 300), (31, 280)]
MEAN, DEVIATION = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def picture(width, height, seed):
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 100 * np.sin(x / (7 + seed + c) + y / (11 + 2 * c) + seed) for c in range(3)]
    noise = np.random.default_rng(seed).integers(-25, 26, (height, width, 3))
    return Image.fromarray(np.clip(np.stack(waves, -1) + noise, 0, 255).astype(np.uint8))


def shardpack(*args):
    return subprocess.run([SHARDPACK, *map(str, args)], capture_output=True, text=True, timeout=60)


def eval_by_pillow(image, resize=256, size=224):
    w, h = image.size
    short, long = min(w, h), max(w, h)
    new_long = int(resize * long / short)
    image = image.resize((resize, new_long) if w <= h else (new_long, resize), Image.BILINEAR)
    left, top = (int(round((side - size) / 2.0)) for side in image.size)
    return np.asarray(image.crop((left, top, left + size, top + size)))


class BatchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        for i, (w, h) in enumerate(SIZES):
            path = cls.root / "raw" / f"class{i % 2}" / f"{i:02}.{'jpg' if i % 5 == 4 else 'png'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            picture(w, h, i).save(path, **({"quality": 92} if path.suffix == ".jpg" else {}))
        run = shardpack("convert", cls.root / "raw", "-o", cls.root / "data")
        assert run.returncode == 0, run.stderr
        cls.keys = sorted(p.relative_to(cls.root / "raw").as_posix() for p in (cls.root / "raw").glob("*/*"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def batch(self, *args):
        run = shardpack("batch", self.root / "data", "--json", *args)
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def saved(self, *args):
        path = self.root / "batch.npy"
        (step,) = self.batch("--save", path, *args)
        return step, np.load(path)

    def test_the_eval_batch_is_pillows_to_the_last_bit(self):
        for number in range(3):
            step, pixels = self.saved("--step", number, "--batch-size", 4, "--seed", 3, "--transform", "eval")
            self.assertEqual((pixels.dtype, pixels.shape), (np.uint8, (4, 224, 224, 3)))
            for place, sample in enumerate(step["samples"]):
                want = eval_by_pillow(Image.open(self.root / "raw" / sample["key"]))
                np.testing.assert_array_equal(pixels[place], want, err_msg=sample["key"])

    def test_the_float_batch_is_normalised_as_torchvision_does(self):
        _, pixels = self.saved("--batch-size", 3, "--transform", "eval")
        _, floats = self.saved("--batch-size", 3, "--transform", "eval", "--output", "float32")
        self.assertEqual((floats.dtype, floats.shape), (np.float32, (3, 3, 224, 224)))
        want = (pixels.astype(np.float32) / np.float32(255) - MEAN) / DEVIATION
        np.testing.assert_array_equal(floats, want.transpose(0, 3, 1, 2))

    def test_the_train_batch_is_the_same_each_time_and_another_each_epoch(self):
        args = ["--step", 1, "--batch-size", 3, "--transform", "train"]
        _, first = self.saved(*args)
        _, again = self.saved(*args)
        _, other = self.saved(*args, "--epoch", 1)
        np.testing.assert_array_equal(first, again)
        self.assertFalse(np.array_equal(first, other))

    def test_steps_name_their_samples(self):
        steps = self.batch("--step", "all", "--batch-size", 4, "--shuffle", "none")
        self.assertEqual([s["step"] for s in steps], [0, 1, 2])
        for step in steps:
            self.assertEqual({k: step[k] for k in ("epoch", "steps", "world_size", "rank", "batch_size")},
                             {"epoch": 0, "steps": 3, "world_size": 1, "rank": 0, "batch_size": 4})
        samples = [s for step in steps for s in step["samples"]]
        self.assertEqual([s["key"] for s in samples], self.keys + self.keys[:2])
        self.assertEqual([s["index"] for s in samples], [*range(10), 0, 1])
        self.assertEqual([s["valid"] for s in samples], [True] * 10 + [False] * 2)
        self.assertEqual([s["label"] for s in samples], [int(s["key"][5]) for s in samples])

    def test_ranges_include_both_ends_and_count_from_the_position(self):
        all_steps = self.batch("--step", "all", "--batch-size", 2)
        self.assertEqual(self.batch("--step", "1..3", "--batch-size", 2), all_steps[1:4])
        later = self.batch("--step", "all", "--batch-size", 2, "--consumed", 6)
        self.assertEqual([s["samples"] for s in later], [s["samples"] for s in all_steps[3:]])
        args = ["--batch-size", 2, "--transform", "train"]
        np.testing.assert_array_equal(self.saved("--step", 4, *args)[1], self.saved("--step", 1, "--consumed", 6, *args)[1])

    def test_no_step_and_wrong_arguments_are_status_2_and_say_why(self):
        for args, words in [(["--tail", "drop", "--batch-size", 11], "10 samples are fewer than one global batch of 11"),
                            (["--step", "7"], None), (["--step", "12"], "no step 12"), (["--step", "x"], "--step"), (["--step", "3..1"], "backwards"),
                            (["--rank", 2, "--world", 2], "--rank 2"), (["--consumed", 11], "--consumed 11"), (["--consumed", 10], "none is left"),
                            (["--save", "x.gif"], ".npy"), (["--step", "all", "--save", "x.npy"], "one --step"), (["--tail", "cut"], "cut"),
                            (["--seed=-1"], "--seed"), (["--epoch=-1"], "--epoch"), (["--consumed=-1"], "--consumed"), (["--rank=-1"], "--rank")]:
            run = shardpack("batch", self.root / "data", *args)
            self.assertEqual(run.returncode, 0 if words is None else 2, args)
            if words:
                self.assertIn(words, run.stderr)

    def test_without_a_transform_sizes_must_agree(self):
        run = shardpack("batch", self.root / "data", "--save", self.root / "x.npy")
        self.assertEqual(run.returncode, 2)
        self.assertIn("one size", run.stderr)

    def test_the_sheet_shows_the_batch_and_dims_its_padding(self):
        path = self.root / "sheet.png"
        step = self.batch("--step", 2, "--batch-size", 4, "--shuffle", "none", "--transform", "eval", "--save", path)[0]
        sheet = np.asarray(Image.open(path))
        self.assertEqual(sheet.shape, (454, 454, 3))
        for place, sample in enumerate(step["samples"]):
            x, y = 2 + place % 2 * 226, 2 + place // 2 * 226
            want = eval_by_pillow(Image.open(self.root / "raw" / sample["key"]))
            np.testing.assert_array_equal(sheet[y:y + 224, x:x + 224], want if sample["valid"] else want // 4)

    def test_the_table_marks_padding_and_names_classes(self):
        run = shardpack("batch", self.root / "data", "--step", 2, "--batch-size", 4, "--shuffle", "none")
        self.assertEqual(run.returncode, 0)
        self.assertIn("step 2 of 3", run.stdout)
        self.assertEqual(run.stdout.count("padding"), 2)
        self.assertIn("class1/09.jpg  (class1)", run.stdout)


if __name__ == "__main__":
    unittest.main()
