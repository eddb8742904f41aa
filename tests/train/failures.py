"""What goes wrong ends every rank: one line each, a status that is not 0, within seconds."""
import json
import os
import shutil
import signal
import socket
import time

from support import Case, Rank, free_port, main, make_images, pack, start

BY_HAND = {"RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1"}


class Failures(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.raw = make_images(f"{cls.folder}/raw", 20)
        cls.arguments = ["--raw", cls.raw, "--epochs", "1", "--timeout", "2"]

    def assert_fails(self, ranks, *words, limit=15):
        begin = time.monotonic()
        results = [rank.finish(limit) for rank in ranks]
        self.assertLess(time.monotonic() - begin, limit)
        for number, (status, _, err) in enumerate(results):
            self.assertEqual(status, 1, f"rank {number}: {err}")
            self.assert_one_line(err, *words)
        return [err for _, _, err in results]

    def test_a_bad_environment_names_the_variable(self):
        for variables, word in [
            ({"RANK": 0}, "WORLD_SIZE"),
            ({"WORLD_SIZE": 2}, "RANK"),
            ({"RANK": 2, "WORLD_SIZE": 2}, "RANK"),
            ({"RANK": "one", "WORLD_SIZE": 2}, "RANK"),
            ({"RANK": 0, "WORLD_SIZE": 2}, "MASTER_ADDR"),
            (BY_HAND, "MASTER_PORT"),
            ({**BY_HAND, "MASTER_PORT": 70000}, "MASTER_PORT"),
            ({"OMPI_COMM_WORLD_RANK": 0}, "OMPI_COMM_WORLD_SIZE"),
        ]:
            with self.subTest(variables):
                self.assert_fails([Rank(self.arguments, variables)], word)

    def test_wrong_usage_is_status_2(self):
        for arguments in [], ["--raw", self.raw, "--model", "vgg"], ["--raw", self.raw, "--data", self.raw], ["--raw", self.raw, "--epochs", "0"], ["--raw", self.raw, "--seed=-1"]:
            with self.subTest(arguments):
                status, _, err = Rank(arguments, {}).finish()
                self.assertEqual(status, 2)
                self.assert_one_line(err, "--help")

    def test_a_taken_port_ends_both_ranks(self):
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", 0))
            taken.listen()
            ranks = start(2, self.arguments, port=taken.getsockname()[1])
            errors = self.assert_fails(ranks, str(taken.getsockname()[1]))
        self.assertIn("address already in use", errors[0])

    def test_a_peer_that_never_comes_is_named_after_the_timeout(self):
        alone = [Rank(self.arguments, {**BY_HAND, "RANK": rank, "MASTER_PORT": free_port()}) for rank in (0, 1)]
        self.assert_fails(alone[:1], "rank 1 of 2 did not come within 2 s")
        self.assert_fails(alone[1:], "rank 0 did not answer")

    def test_an_unknown_address_is_named(self):
        variables = {"RANK": 1, "WORLD_SIZE": 2, "MASTER_ADDR": "no-such-host.invalid", "MASTER_PORT": 2000}
        self.assert_fails([Rank(self.arguments, variables)], "no-such-host.invalid")

    def test_data_missing_on_all_ranks_or_on_one_ends_all(self):
        missing = ["--raw", self.path("nowhere"), "--epochs", "1", "--timeout", "60"]
        self.assert_fails(start(2, missing), "nowhere", "No such file")
        patient = [*self.arguments[:-1], "60"]
        for rank in 0, 1:
            with self.subTest(rank=rank):
                self.assert_fails(start(2, patient, {rank: missing}), "nowhere", "No such file")

    def test_ranks_with_different_data_see_both_digests(self):
        other = pack(make_images(self.path("other_raw"), 20, seed=5), self.path("other"))
        mine = pack(self.raw, self.path("mine"))
        ranks = start(2, ["--data", mine, "--epochs", "1"], {1: ["--data", other, "--epochs", "1"]})
        errors = self.assert_fails(ranks, "different training data", "rank 0 has", "rank 1 has")
        for error in errors:
            for folder in mine, other:
                with open(f"{folder}/dataset.json") as manifest:
                    self.assertIn(json.load(manifest)["dataset_digest"][:16], error)

    def test_ranks_with_different_options_see_which_and_both_values(self):
        ranks = start(2, self.arguments, {1: [*self.arguments, "--batch-size", "7"]})
        self.assert_fails(ranks, "different options: --batch-size: rank 0 has 32, rank 1 has 7")

    def test_a_rank_started_twice_or_for_another_world_is_named(self):
        port = free_port()
        ranks = [Rank(self.arguments, {**BY_HAND, "MASTER_PORT": port, "RANK": rank, "WORLD_SIZE": 3}) for rank in (0, 1, 1)]
        errors = self.assert_fails(ranks)
        self.assertIn("another process of this job is rank 1 too", errors[1] + errors[2])

        variables = {**BY_HAND, "MASTER_PORT": free_port()}
        ranks = [Rank(self.arguments, {**variables, "RANK": rank, "WORLD_SIZE": 3 - rank}) for rank in (0, 1)]
        self.assert_fails(ranks, "one of 3", "2")

    def test_a_loss_that_is_not_finite_ends_the_run_and_says_so(self):
        diverging = ["--raw", self.raw, "--epochs", "2", "--optimizer", "sgd", "--lr", "1e30", "--batch-size", "2"]
        for world in 1, 2:
            with self.subTest(world=world):
                self.assert_fails(start(world, diverging), "not a finite number", "epoch 1/2", "--lr")

    def test_a_label_beyond_the_classes_is_named(self):
        folder = pack(self.raw, self.path("labels"))
        with open(f"{folder}/dataset.json") as file:
            manifest = json.load(file)
        manifest["classes"].remove("red")
        with open(f"{folder}/dataset.json", "w") as file:
            json.dump(manifest, file)
        self.assert_fails(start(2, ["--data", folder, "--epochs", "1"]), "has label 2, but there are 2 classes")

    def test_test_images_of_another_size_are_refused_before_training(self):
        small = pack(self.raw, self.path("small"))
        large = pack(make_images(self.path("large_raw"), 6, side=16), self.path("large"))
        for error in self.assert_fails(start(2, ["--data", small, "--test", large]), "16x16", "12x12"):
            self.assertNotIn("mat1", error)

    def test_a_raw_image_of_another_size_is_refused(self):
        folder = make_images(self.path("sizes"), 6)
        shutil.copy(make_images(self.path("wide"), 3, side=16) + "/red/0002.png", f"{folder}/red/zz.png")
        self.assert_fails(start(1, ["--raw", folder]), "zz.png", "16x16", "12x12")

    def test_a_shard_that_is_missing_or_cut_is_named_by_every_rank(self):
        for name, damage in ("missing", os.remove), ("truncated", lambda path: os.truncate(path, 100)):
            with self.subTest(name):
                folder = pack(self.raw, self.path(name))
                shard = next(entry for entry in os.listdir(folder) if entry.endswith(".shard"))
                damage(f"{folder}/{shard}")
                self.assert_fails(start(2, ["--data", folder]), shard, name)

    def training(self, world, *more):
        """Ranks that train until they are stopped. Runs of several tests go side by side, for most of a failure is waiting."""
        ranks = start(world, ["--raw", self.raw, "--epochs", "100000", "--batch-size", "2", *more])
        first_lines = [ranks[0].process.stdout.readline() for _ in range(2)]  # the heading and an epoch
        self.assertIn("epoch 1/", first_lines[1])
        return ranks

    def test_a_killed_peer_ends_the_others(self):
        jobs = [self.training(3) for _ in range(3)]
        for victim, ranks in enumerate(jobs):
            ranks[victim].process.kill()
        for victim, ranks in enumerate(jobs):
            with self.subTest(victim=victim):
                ranks.pop(victim).finish()
                self.assert_fails(ranks, "lost another rank")

    def test_a_stopped_peer_ends_the_others_after_the_timeout(self):
        jobs = [self.training(2, "--timeout", "2") for _ in range(2)]
        for victim, ranks in enumerate(jobs):  # rank 0 serves the store as well
            ranks[victim].process.send_signal(signal.SIGSTOP)
        for victim, ranks in enumerate(jobs):
            with self.subTest(victim=victim):
                self.assert_fails([ranks[1 - victim]], "lost another rank", limit=8)
                ranks[victim].process.kill()
                ranks[victim].finish()

    def test_a_store_that_falls_silent_before_training_ends_the_others(self):
        variables = {**BY_HAND, "WORLD_SIZE": 3, "MASTER_PORT": free_port()}
        server = Rank([*self.arguments[:-1], "60"], variables)
        while True:  # until it serves
            try:
                socket.create_connection(("127.0.0.1", variables["MASTER_PORT"]), 1).close()
                break
            except OSError:
                self.assertIsNone(server.process.poll())
                time.sleep(0.05)
        peer = Rank(self.arguments, {**variables, "RANK": 1})
        time.sleep(1)
        server.process.send_signal(signal.SIGSTOP)
        self.assert_fails([peer], "rank 0", limit=10)
        server.process.kill()
        server.finish()

    def test_an_image_that_cannot_be_read_is_named_on_all_ranks(self):
        folder = make_images(self.path("igloos"), 20)  # a path is no word of the communication library Gloo
        with open(f"{folder}/blue/zz.png", "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\nno more")
        for error in self.assert_fails(start(2, ["--raw", folder, "--epochs", "1"]), "zz.png"):
            self.assertNotIn("lost", error)


if __name__ == "__main__":
    main()
