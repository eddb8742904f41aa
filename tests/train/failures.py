"""What goes wrong ends every rank: one line each, a status that is not 0, within seconds."""
import json
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
        for arguments in [], ["--raw", self.raw, "--model", "vgg"], ["--raw", self.raw, "--data", self.raw], ["--raw", self.raw, "--epochs", "0"]:
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
        for rank, word in (0, "rank 1 of 2 did not come within 2 s"), (1, "rank 0 did not answer"):
            with self.subTest(rank=rank):
                self.assert_fails([Rank(self.arguments, {**BY_HAND, "RANK": rank, "MASTER_PORT": free_port()})], word)

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

    def test_ranks_with_different_options_stop(self):
        ranks = start(2, self.arguments, {1: [*self.arguments, "--seed", "9"]})
        self.assert_fails(ranks, "different options")

    def test_a_killed_peer_ends_the_others(self):
        for victim in 0, 1, 2:
            with self.subTest(victim=victim):
                ranks = start(3, ["--raw", self.raw, "--epochs", "100000", "--batch-size", "2"])
                first_lines = [ranks[0].process.stdout.readline() for _ in range(2)]  # the heading and an epoch: training is on
                self.assertIn("epoch 1/", first_lines[1])
                ranks[victim].process.send_signal(signal.SIGKILL)
                ranks[victim].finish()
                del ranks[victim]
                self.assert_fails(ranks, "lost another rank")

    def test_a_stopped_peer_ends_the_others_after_the_timeout(self):
        ranks = start(2, ["--raw", self.raw, "--epochs", "100000", "--batch-size", "2", "--timeout", "3"])
        for _ in range(2):
            ranks[0].process.stdout.readline()
        ranks[1].process.send_signal(signal.SIGSTOP)
        self.assert_fails(ranks[:1], "lost another rank")
        ranks[1].process.kill()
        ranks[1].finish()

    def test_an_image_that_cannot_be_read_is_named_on_all_ranks(self):
        folder = make_images(self.path("damaged"), 20)
        with open(f"{folder}/blue/zz.png", "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\nno more")
        self.assert_fails(start(2, ["--raw", folder, "--epochs", "1"]), "zz.png")


if __name__ == "__main__":
    main()
