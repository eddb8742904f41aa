"""Ranks of one job, started by hand over Gloo: they end equal, train alike at any number, and test each sample once."""
import re

from support import Case, main, make_images, pack

TRAIN, TEST = 37, 23  # divisible by no world size or batch size used here


class Ranks(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.raw = make_images(f"{cls.folder}/raw", TRAIN)
        cls.raw_test = make_images(f"{cls.folder}/raw_test", TEST, seed=1)
        cls.packed = ["--data", pack(cls.raw, f"{cls.folder}/data"), "--test", pack(cls.raw_test, f"{cls.folder}/test")]
        cls.plain = ["--raw", cls.raw, "--raw-test", cls.raw_test]

    def losses(self, world, batch_size, data, *more):
        recipe = ["--dropout", "0", "--optimizer", "sgd", "--lr", "0.05", "--epochs", "2", "--seed", "3", "--json", "--log-steps", "1"]
        _, err = self.run_ranks(world, [*data, *recipe, "--batch-size", str(batch_size), *more])
        found = re.findall(r"^step (\d+) loss (\S+) valid (\d+)$", err, re.M)
        self.assertEqual([int(step) for step, _, _ in found], list(range(len(found))))
        return [(float(loss), int(valid)) for _, loss, valid in found]

    def check_world(self, world, data):
        found, _ = self.run_ranks(world, [*data, "--epochs", "3", "--batch-size", "4", "--json"])
        self.assertEqual([e["epoch"] for e in found], [0, 1, 2])
        for epoch in found:
            self.assertEqual(epoch["samples"], TRAIN)
            self.assertEqual(epoch["evaluated"], TEST)
            self.assertEqual(epoch["substituted"] + epoch["masked"], 0)
            self.assertRegex(epoch["parameters_digest"], "^[0-9a-f]{32}$")
            self.assertIsNone(epoch["gpu_busy_percent"])
            self.assertAlmostEqual(epoch["accuracy"] * TEST, round(epoch["accuracy"] * TEST), places=9)
        # Colours are easy: the test samples are told apart, so what is counted is the model's work and no accident.
        self.assertEqual(found[-1]["accuracy"], 1.0)

    def test_one_two_and_three_ranks_deliver_and_test_each_sample_once(self):
        for world in 1, 2, 3:
            with self.subTest(world=world):
                self.check_world(world, self.packed)

    def test_three_ranks_do_the_same_from_raw_files(self):
        self.check_world(3, self.plain)

    def test_one_rank_with_twice_the_batch_trains_like_two(self):
        alone, together = self.losses(1, 10, self.packed), self.losses(2, 5, self.packed)
        self.assertEqual([valid for _, valid in alone], [10, 10, 10, 7] * 2)  # the last batch of an epoch is partial
        self.assertEqual([valid for _, valid in together], [10, 10, 10, 7] * 2)
        for (one, _), (two, _) in zip(alone, together):
            self.assertAlmostEqual(one, two, delta=1e-5)

    def test_a_rank_without_a_valid_sample_takes_part_in_the_step(self):
        # 37 samples in global batches of 36: the last holds one sample, on rank 0.
        alone, together = self.losses(1, 36, self.packed), self.losses(3, 12, self.packed)
        self.assertEqual([valid for _, valid in together], [36, 1] * 2)
        for (one, _), (three, _) in zip(alone, together):
            self.assertAlmostEqual(one, three, delta=1e-5)

    def test_packed_and_raw_data_give_the_same_losses(self):
        self.assertEqual(self.losses(2, 5, self.packed), self.losses(2, 5, self.plain))

    def test_packed_and_raw_data_give_the_same_losses_under_the_train_transform(self):
        transform = ["--transform", "train", "--size", "8", "--resize", "8"]
        self.assertEqual(self.losses(2, 5, self.packed, *transform), self.losses(2, 5, self.plain, *transform))

    def test_ranks_with_batch_norm_end_with_equal_parameters_and_buffers(self):
        # The program compares the digests of all ranks after each epoch and fails where they differ.
        found, _ = self.run_ranks(2, [*self.packed, "--model", "resnet18", "--transform", "none", "--epochs", "1", "--batch-size", "8", "--json"])
        self.assertEqual(found[0]["evaluated"], TEST)

    def test_loading_alone_counts_each_sample_once(self):
        for data in self.packed[:2], self.plain[:2]:
            found, _ = self.run_ranks(2, [*data, "--loader-only", "--epochs", "2", "--batch-size", "4", "--json"])
            self.assertEqual([e["samples"] for e in found], [TRAIN, TRAIN])
            self.assertTrue(all(e["load_images_per_s"] > 0 for e in found))


if __name__ == "__main__":
    main()
