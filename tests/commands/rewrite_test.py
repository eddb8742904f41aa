"""append, amend, repair and extract as users run them; what they leave is read by the second reader of shards."""

import csv
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "store"))

import read_shard
import support
from support import Image, encoded, listed, make_tree, np, pixels, run


def shards_of(dataset):
    return [dataset / shard["file"] for shard in json.loads((dataset / "dataset.json").read_bytes())["shards"]]


def records_of(dataset):
    """key -> (sha256 of the bytes, label), read without the product; in the order of the records."""
    records = {}
    for path in shards_of(dataset):
        for record in read_shard.Shard(path.read_bytes()).records:
            key = record["key"].decode()
            assert key not in records, f"{key} comes twice"
            records[key] = (hashlib.sha256(record["raw"]).hexdigest(), record["label"])
    return records


def sums_of(files):
    return {key: hashlib.sha256(content).hexdigest() for key, content in files.items()}


def ledger(path, keys):
    path.write_text("".join(json.dumps({"key": key, "reason": "for a test"}) + "\n" for key in keys))
    return path


def snapshot(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Amend(support.TestCase):
    def setUp(self):
        super().setUp()
        self.files = make_tree(self.tree)
        run("shardpack", "convert", self.tree, "-o", self.out, "--shard-records", 7)

    def holds(self, keys):
        found = records_of(self.out)
        self.assertEqual({key: digest for key, (digest, _) in found.items()}, {k: v for k, v in sums_of(self.files).items() if k in keys})
        self.assertEqual(list(found), sorted(found, key=str.encode))
        run("shardpack", "verify", self.out, "--decode")

    def test_dropped_records_are_gone_and_all_others_stay(self):
        before = snapshot(self.out)
        dropped = sorted(self.files)[3:5]
        out, _ = run("shardpack", "amend", self.out, "--drop", ledger(self.work / "l", dropped), "--json")
        result = json.loads(out)
        self.assertEqual([result[k] for k in ("dropped", "not_found", "shards_rewritten", "shards", "records", "already_complete")],
                         [2, 0, 1, 5, 28, False])
        self.holds(set(self.files) - set(dropped))
        same = [name for name, content in snapshot(self.out).items() if before.get(name) == content]
        self.assertEqual(len(same), 4)  # the shards that hold none of them
        manifest = json.loads((self.out / "dataset.json").read_bytes())
        sizes = [Image.open(io.BytesIO(content)).size for key, content in self.files.items() if key not in dropped]
        self.assertEqual(manifest["widths"], [[w, sum(s[0] == w for s in sizes)] for w in sorted({s[0] for s in sizes})])
        self.assertEqual(manifest["bytes_in"], sum(len(c) for k, c in self.files.items() if k not in dropped))
        self.assertEqual(manifest["dataset_digest"], result["dataset_digest"])

    def test_the_same_ledger_again_says_so(self):
        path = ledger(self.work / "l", ["ant/0/000.jpg"])
        run("shardpack", "amend", self.out, "--drop", path)
        before = snapshot(self.out)
        out, _ = run("shardpack", "amend", self.out, "--drop", path)
        self.assertIn(b"already complete", out)
        self.assertEqual(snapshot(self.out), before)

    def test_what_is_not_there_is_named(self):
        _, text = run("shardpack", "amend", self.out, "--drop", ledger(self.work / "l", ["ant/0/000.jpg", "x/y", "z"]))
        self.assertIn("2 keys (x/y, z)", text)
        _, text = run("shardpack", "amend", self.out, "--drop", ledger(self.work / "m", ["x/y"]), ok=(3,))
        self.assertIn("x/y", text)
        (self.work / "n").write_text('{"key":"a"}\n{"kee":"b"}\n')
        _, text = run("shardpack", "amend", self.out, "--drop", self.work / "n", ok=(3,))
        self.assertIn("line 2", text)
        run("shardpack", "amend", self.out, "--drop", ledger(self.work / "o", self.files), ok=(2,))
        run("shardpack", "amend", self.work / "none", "--drop", self.work / "o", ok=(2,))
        run("shardpack", "amend", self.out, "--drop", self.work / "none", ok=(2,))

    def test_what_verify_finds_can_be_dropped_at_once(self):
        path = shards_of(self.out)[2]
        record = read_shard.Shard(path.read_bytes()).records[1]
        content = bytearray(path.read_bytes())
        content[record["end"] - 5] ^= 1
        path.write_bytes(content)
        faults, _ = run("shardpack", "verify", self.out, "--json", ok=(3,))
        (self.work / "faults").write_bytes(faults)
        run("shardpack", "amend", self.out, "--drop", self.work / "faults")
        self.holds(set(self.files) - {record["key"].decode()})


class Repair(support.TestCase):
    def setUp(self):
        super().setUp()
        self.files = make_tree(self.tree)
        run("shardpack", "convert", self.tree, "-o", self.out, "--shard-records", 12)
        self.shard = shards_of(self.out)[1]
        self.whole = self.shard.read_bytes()
        self.records = read_shard.Shard(self.whole).records
        self.repaired = pathlib.Path(str(self.shard) + ".repaired")

    def repair(self, content, *arguments, ok=(0,)):
        self.shard.write_bytes(content)
        self.repaired.unlink(missing_ok=True)
        out, text = run("shardpack", "repair", self.shard, *arguments, ok=ok)
        return json.loads(out) if "--json" in arguments else (out, text)

    def test_a_lost_footer_or_index_or_header_comes_back_byte_for_byte(self):
        index = max(record["end"] for record in self.records)
        for harmed in (self.whole[:-128], self.whole[:index], self.whole[:index + 9] + bytes(len(self.whole) - index - 9),
                       bytes(64) + self.whole[64:]):
            out, _ = self.repair(harmed)
            self.assertEqual(self.repaired.read_bytes(), self.whole)
            self.assertIn(b"none lost", out)
            self.assertIn(b"mv ", out)

    def test_in_place_where_it_is_the_shard_that_the_dataset_names(self):
        result = self.repair(self.whole[:-128], "--in-place", "--json")
        self.assertEqual((result["placed"], result["matches_dataset"], result["lost"]), (True, True, 0))
        self.assertEqual(self.shard.read_bytes(), self.whole)
        self.assertFalse(self.repaired.exists())
        run("shardpack", "verify", self.out)

    def test_a_hole_costs_what_lay_in_it(self):
        lost = self.records[4:6]
        for footer in (True, False):
            harmed = bytearray(self.whole)
            harmed[lost[0]["begin"] + 10 : lost[1]["end"] - 3] = bytes(lost[1]["end"] - 3 - lost[0]["begin"] - 10)
            result = self.repair(bytes(harmed if footer else harmed[:-128]), "--json", ok=(1,))
            self.assertEqual((result["records"], result["lost"], result["matches_dataset"]), (10, 2, False))
            self.assertEqual(result["losses"][0]["record"], 4)
            if footer:
                self.assertEqual([loss["key"] for loss in result["losses"]], [record["key"].decode() for record in lost])
            back = read_shard.Shard(self.repaired.read_bytes()).records
            kept = [record for record in self.records if record not in lost]
            for name in ("key", "label", "raw", "width", "height", "channels", "bit_depth", "orientation", "codec", "metadata"):
                self.assertEqual([record[name] for record in back], [record[name] for record in kept])

    def test_a_shard_cut_anywhere_gives_what_came_before(self):
        for at in (self.records[0]["end"], self.records[3]["end"] + 20, self.records[7]["end"] - 1):
            result = self.repair(self.whole[:at], "--json", ok=(1,))
            whole = [record for record in self.records if record["end"] <= at]
            self.assertEqual([record["raw"] for record in read_shard.Shard(self.repaired.read_bytes()).records], [r["raw"] for r in whole])
            self.assertEqual((result["records"], result["lost"]), (len(whole), 12 - len(whole)))

    def test_what_cannot_be_repaired_leaves_nothing(self):
        for content in (b"", b"no shard" * 100, self.whole[:64]):
            self.repair(content, ok=(3,))
            self.assertFalse(self.repaired.exists())
        run("shardpack", "repair", self.work / "none", ok=(2,))
        self.repaired.write_bytes(b"precious")
        run("shardpack", "repair", self.shard, ok=(2,))
        self.assertEqual(self.repaired.read_bytes(), b"precious")


if __name__ == "__main__":
    support.main()
