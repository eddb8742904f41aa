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


class Append(support.TestCase):
    def setUp(self):
        super().setUp()
        self.files = make_tree(self.tree)
        run("shardpack", "convert", self.tree, "-o", self.out, "--shard-records", 7)
        self.more = self.work / "more"
        self.added = {f"{name}/new{i}.png": encoded(pixels(20 + i, 15, 100 + i)) for i, name in enumerate(["bee", "cat"] * 5)}
        self.write(self.added)

    def write(self, files):
        for key, content in files.items():
            (self.more / key).parent.mkdir(parents=True, exist_ok=True)
            (self.more / key).write_bytes(content)

    def test_new_shards_follow_and_old_ones_stay_as_they_are(self):
        before = snapshot(self.out)
        out, _ = run("shardpack", "append", self.out, self.more, "--json")
        self.assertEqual([json.loads(out)[k] for k in ("added", "records", "shards", "classes", "sealed")], [10, 40, 7, 3, True])
        after = snapshot(self.out)
        self.assertEqual([name for name in before if after.get(name) != before[name]], ["dataset.json"])
        self.assertEqual([path.name[:12] for path in shards_of(self.out)], [f"shard-0000{i}-" for i in range(7)])
        found = records_of(self.out)
        self.assertEqual({key: digest for key, (digest, _) in found.items()}, sums_of(self.files | self.added))
        self.assertEqual({key: label for key, (_, label) in found.items()}, {k: ["ant", "bee", "cat"].index(k.split("/")[0]) for k in found})
        self.assertEqual(list(found)[30:], sorted(self.added))
        run("shardpack", "verify", self.out, "--decode")

    def test_the_same_again_says_so_and_a_key_twice_is_an_error(self):
        run("shardpack", "append", self.out, self.more)
        before = snapshot(self.out)
        out, _ = run("shardpack", "append", self.out, self.more)
        self.assertIn(b"already complete", out)
        out, _ = run("shardpack", "append", self.out, self.more, "--json")
        self.assertEqual([json.loads(out)[k] for k in ("added", "already_complete", "records")], [0, True, 40])
        self.write({"ant/another.png": encoded(pixels(5, 5))})
        _, text = run("shardpack", "append", self.out, self.more, ok=(2,))
        self.assertIn("bee/new0.png", text)
        self.assertEqual(snapshot(self.out), before)

    def test_two_at_once_add_once_and_the_later_one_says_what_kept_it(self):
        argv = [support.BIN / "shardpack", "append", self.out, self.more]
        for _ in range(3):
            both = [subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]
            texts = [one.communicate(timeout=120)[1].decode() for one in both]
            statuses = {one.returncode for one in both}
            self.assertIn(0, statuses, texts)
            self.assertLessEqual(statuses, {0, 4}, texts)
            self.assertTrue(all("another process" in text for one, text in zip(both, texts) if one.returncode), texts)
            self.assertEqual(len(records_of(self.out)), 40)
            run("shardpack", "verify", self.out)
            run("shardpack", "convert", self.tree, "-o", self.out, "--shard-records", 7, "--overwrite")

    def test_new_classes_come_last_and_only_when_asked_for(self):
        self.write({"aardvark/1.png": encoded(pixels(5, 5, 1)), "zebra/1.png": encoded(pixels(5, 5, 2))})
        before = snapshot(self.out)
        _, text = run("shardpack", "append", self.out, self.more, ok=(2,))
        self.assertIn("aardvark", text)
        self.assertEqual(snapshot(self.out), before)
        run("shardpack", "append", self.out, self.more, "--new-classes")
        self.assertEqual(json.loads((self.out / "dataset.json").read_bytes())["classes"], ["ant", "bee", "cat", "aardvark", "zebra"])
        found = records_of(self.out)
        self.assertEqual([found[key][1] for key in ("ant/0/000.jpg", "aardvark/1.png", "zebra/1.png", "bee/new0.png")], [0, 3, 4, 1])
        run("shardpack", "verify", self.out)
        run("shardpack", "amend", self.out, "--drop", ledger(self.work / "l", ["zebra/1.png", "ant/0/000.jpg"]))
        run("shardpack", "verify", self.out)
        last = shards_of(self.out)[0]
        whole = last.read_bytes()
        last.write_bytes(whole[:-128])  # an old shard: its list of classes is the shorter one
        run("shardpack", "repair", last, "--in-place")
        self.assertEqual(last.read_bytes(), whole)

    def test_what_a_dataset_was_made_with_is_taken_from_it(self):
        out = self.work / "lossless"
        run("shardpack", "convert", self.tree, "-o", out, "--images", "lossless", "--shard-records", 4, "--compression", "zstd:5")
        options = json.loads((out / "dataset.json").read_bytes())["options"]
        run("shardpack", "append", out, self.more)
        self.assertEqual(json.loads((out / "dataset.json").read_bytes())["options"], options)
        self.assertEqual({row["encoding"] for row in listed(out)[30:]}, {"pixels"})
        self.assertEqual([shard["records"] for shard in json.loads((out / "dataset.json").read_bytes())["shards"]], [4] * 7 + [2] + [4, 4, 2])
        _, text = run("shardpack", "append", out, self.tree, "--images", "keep", ok=(2,))
        self.assertIn("made with lossless", text)
        run("shardpack", "append", out, self.more, "--images", "lossless")
        run("shardpack", "append", out, self.more, "--overwrite", ok=(2,))

    def test_labels_of_another_kind_are_refused(self):
        (self.more / "list.csv").write_text("path,label\nbee/new0.png,0.5\n")
        _, text = run("shardpack", "append", self.out, self.more / "list.csv", ok=(2,))
        self.assertIn("labels of different kinds", text)

    def test_bad_inputs_are_left_out_and_named(self):
        self.write({"ant/bad.png": b"no picture"})
        _, text = run("shardpack", "append", self.out, self.more, ok=(1,))
        self.assertIn("ant/bad.png", text)
        rows = [json.loads(line) for line in (self.out / "bad_inputs.jsonl").read_text().splitlines()]
        self.assertEqual([row["key"] for row in rows], ["ant/bad.png"])
        self.assertEqual(len(records_of(self.out)), 40)
        run("shardpack", "append", self.work / "none", self.more, ok=(2,))
        self.assertFalse((self.work / "none").exists())


class Statistics(support.TestCase):
    def test_what_remains_is_summed_up_as_before(self):
        files = make_tree(self.tree)
        run("shardpack", "convert", self.tree, "-o", self.out, "--statistics", "all", "--shard-records", 9)
        dropped = sorted(files)[::4]
        run("shardpack", "amend", self.out, "--drop", ledger(self.work / "l", dropped))
        sums = json.loads((self.out / "dataset.json").read_bytes())["statistics"]
        kept = [np.asarray(Image.open(io.BytesIO(c)).convert("RGB"), np.uint64).reshape(-1, 3) for k, c in files.items() if k not in dropped]
        self.assertEqual((sums["pictures"], sums["pixels"]), (len(kept), sum(len(a) for a in kept)))
        self.assertEqual(sums["sum"], [int(sum(a[:, c].sum() for a in kept)) for c in range(3)])
        self.assertEqual(sums["sum_of_squares"], [int(sum((a[:, c] ** 2).sum() for a in kept)) for c in range(3)])


class Extract(support.TestCase):
    def extracted(self, *arguments):
        folder = self.work / "files"
        run("shardpack", "extract", self.out, "-o", folder, *arguments)
        return snapshot(folder)

    def test_kept_pictures_come_back_byte_for_byte(self):
        files = make_tree(self.tree)
        run("shardpack", "convert", self.tree, "-o", self.out)
        self.assertEqual(sums_of(self.extracted()), sums_of(files))

    def test_pixels_become_png_with_the_same_pixels(self):
        files = {"ant/1.bmp": encoded(pixels(9, 7, 1), "BMP"), "ant/1.png": encoded(pixels(9, 7, 2)), "ant/2.PPM": encoded(pixels(4, 9, 3), "PPM"),
                 "ant/3.jpg": encoded(pixels(40, 30, 4), "JPEG"), "bee/4.tif": encoded(pixels(6, 6, 5), "TIFF"), "bee/5.webp": encoded(pixels(6, 6, 6), "WEBP")}
        for key, content in files.items():
            (self.tree / key).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / key).write_bytes(content)
        run("shardpack", "convert", self.tree, "-o", self.out, "--images", "lossless")
        found = self.extracted()
        names = {"ant/1.bmp": "ant/1.bmp.png", "ant/1.png": "ant/1.png", "ant/2.PPM": "ant/2.png", "ant/3.jpg": "ant/3.jpg",
                 "bee/4.tif": "bee/4.png", "bee/5.webp": "bee/5.webp"}
        self.assertEqual(sorted(found), sorted(names.values()))
        for key, name in names.items():
            was, now = Image.open(io.BytesIO(files[key])), Image.open(io.BytesIO(found[name]))
            self.assertTrue(np.array_equal(np.asarray(was.convert("RGB")), np.asarray(now.convert("RGB"))), key)
        self.assertEqual(Image.open(io.BytesIO(found["ant/2.png"])).format, "PNG")
        shown, _ = run("shardpack", "cat", self.out, "ant/1.bmp")
        self.assertTrue(np.array_equal(np.asarray(Image.open(io.BytesIO(shown))), pixels(9, 7, 1)))
        run("shardpack", "verify", self.out, "--decode")

    def test_members_of_archives_get_their_names_again(self):
        files = {"a/001.jpg": encoded(pixels(30, 20, 1), "JPEG"), "a/002.left.png": encoded(pixels(9, 9, 2)), "b/003.png": encoded(pixels(8, 8, 3))}
        with tarfile.open(self.work / "in.tar", "w") as tar:
            for name, content in files.items():
                for member, data in ((name, content), (name[: name.index(".")] + ".cls", b"3")):
                    info = tarfile.TarInfo(member)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        run("shardpack", "convert", self.work / "in.tar", "-o", self.out)
        self.assertEqual([row["key"] for row in listed(self.out)], ["a/001", "a/002", "b/003"])
        self.assertEqual(sums_of(self.extracted()), sums_of(files))
        run("shardpack", "extract", self.out, "-o", self.work / "out.tar", "--to", "tar")
        with tarfile.open(self.work / "out.tar") as tar:
            self.assertEqual({m.name: tar.extractfile(m).read() for m in tar}, files)


class Labels(support.TestCase):
    def pack(self, labels, extra=None):
        lines = []
        for i, label in enumerate(labels):
            path = self.tree / f"{i}.png"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(encoded(pixels(6 + i, 5, i)))
            lines.append(f'{{"path":"{i}.png","label":{label}{extra or ""}}}\n')
        (self.tree / "list.jsonl").write_text("".join(lines))
        run("shardpack", "convert", self.tree / "list.jsonl", "-o", self.out)

    def test_lists_and_fractions_are_shown_as_they_were_given(self):
        for labels in (["[1,5,-7]", "[]", "[9223372036854775807]"], ["0.1", "-2.5e-300", "123456789.125"]):
            self.pack(labels, ',"place":"Ulm, \\"here\\""')
            want = [json.loads(label) for label in labels]
            rows = listed(self.out)
            self.assertEqual([row["label"] for row in rows], want)
            self.assertEqual([row["metadata"] for row in rows], [{"place": 'Ulm, "here"'}] * 3)
            text, _ = run("shardpack", "list", self.out, "--format", "csv")
            table = list(csv.DictReader(io.StringIO(text.decode(), newline="")))
            self.assertEqual([json.loads(row["label"]) for row in table], want)
            self.assertEqual([json.loads(row["metadata"]) for row in table], [{"place": 'Ulm, "here"'}] * 3)
            step, _ = run("shardpack", "batch", self.out, "--batch-size", 3, "--shuffle", "none", "--json")
            self.assertEqual([sample["label"] for sample in json.loads(step)["samples"]], want)
            self.assertIn(labels[0].encode(), run("shardpack", "list", self.out)[0])
            run("shardpack", "verify", self.out, "--decode")
            for path in self.out.iterdir():
                path.unlink()
            self.out.rmdir()


if __name__ == "__main__":
    support.main()
