"""convert, list, cat, extract and shardinfo against Pillow, hashlib and tarfile."""

import csv
import hashlib
import io
import json
import os
import statistics
import subprocess
import tarfile

import numpy as np
from PIL import Image

import support
from support import encoded, listed, make_tree, pixels, run


class Convert(support.TestCase):
    def setUp(self):
        super().setUp()
        self.files = make_tree(self.tree)

    def convert(self, *more, ok=(0,)):
        return run("shardpack", "convert", self.tree, "-o", self.out, "--progress", "none", *more, ok=ok)

    def test_records_are_listed_in_order_of_keys_with_labels_and_sizes(self):
        self.convert()
        records = listed(self.out)
        self.assertEqual([r["key"] for r in records], sorted(self.files))
        for i, record in enumerate(records):
            content = self.files[record["key"]]
            with Image.open(io.BytesIO(content)) as image:
                self.assertEqual((record["width"], record["height"]), image.size)
                self.assertEqual(record["encoding"], {"JPEG": "jpeg", "PPM": "pnm"}.get(image.format, image.format.lower()))
            self.assertEqual(record["index"], i)
            self.assertEqual(record["class"], record["key"].split("/")[0])
            self.assertEqual(record["label"], ["ant", "bee", "cat"].index(record["class"]))
            self.assertEqual((record["raw_bytes"], record["channels"], record["metadata"]), (len(content), 3, None))

    def test_stored_bytes_lie_where_the_list_says(self):
        self.convert("--shard-records", 7)
        for record in listed(self.out):
            shard = (self.out / record["shard"]).read_bytes()
            stored = shard[record["offset"] : record["offset"] + record["stored_bytes"]]
            if record["codec"] == "stored":
                self.assertEqual(stored, self.files[record["key"]])
            self.assertRegex(record["checksum"], "^[0-9a-f]{16}$")

    def test_cat_gives_the_bytes_that_went_in_by_key_and_by_index(self):
        self.convert()
        for i, key in enumerate(sorted(self.files)):
            self.assertEqual(run("shardpack", "cat", self.out, key)[0], self.files[key])
            self.assertEqual(run("shardpack", "cat", self.out, i)[0], self.files[key])
        self.assertIn("no record has the key", run("shardpack", "cat", self.out, "0", "--key", ok=(2,))[1])
        self.assertIn("30 records", run("shardpack", "cat", self.out, "30", ok=(2,))[1])

    def test_decoded_pictures_are_pillows(self):
        self.convert()
        for key, content in self.files.items():
            expected = np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)
            for form in ("png", "ppm"):
                got = np.asarray(Image.open(io.BytesIO(run("shardpack", "cat", self.out, key, "--decode", form)[0]))).astype(int)
                self.assertEqual(got.shape, expected.shape)
                # Another release of libwebp or libjpeg may round otherwise; everything else is exact.
                self.assertLessEqual(np.abs(got - expected).max(), 2 if key.endswith(("jpg", "webp")) else 0, key)

    def test_extract_gives_the_files_again(self):
        self.convert()
        run("shardpack", "extract", self.out, "-o", self.work / "again", "--progress", "none")
        again = {str(p.relative_to(self.work / "again")): p.read_bytes() for p in (self.work / "again").rglob("*") if p.is_file()}
        self.assertEqual(again, self.files)

    def test_extract_to_tar_is_read_by_tarfile_and_is_always_the_same(self):
        long = "ant/" + "d" * 120 + "/" + "n" * 130 + ".png"
        split = "ant/" + "e" * 60 + "/" + "m" * 60 + ".png"
        for key in (long, split, "ant/\u00e9t\u00e9.png"):
            self.files[key] = encoded(pixels(4, 4))
            (self.tree / key).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / key).write_bytes(self.files[key])
        deep = b"ant/" + b"/".join(c * 200 for c in (b"q", b"r", b"s")) + b".png"
        for raw in (b"ant/" + b"\xff" * 120 + b".png", b"ant/\xfe.png", b"ant/new\nline=.png", b"ant/" + b"f" * 245 + b".png", deep):
            path = os.fsencode(self.tree) + b"/" + raw
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(self.files[long])
            self.files[os.fsdecode(raw)] = self.files[long]
        self.convert()
        for name, locale in (("a.tar", "C"), ("b.tar", "C.UTF-8")):
            run("shardpack", "extract", self.out, "-o", self.work / name, "--to", "tar", "--progress", "none", env={**os.environ, "LC_ALL": locale})
        with tarfile.open(self.work / "a.tar") as tar:
            members = tar.getmembers()
            self.assertEqual({m.name: tar.extractfile(m).read() for m in members}, self.files)
        self.assertEqual({(m.mode, m.uid, m.gid, m.mtime, m.uname, m.gname) for m in members}, {(0o644, 0, 0, 0, "", "")})
        self.assertEqual((self.work / "a.tar").read_bytes(), (self.work / "b.tar").read_bytes())
        self.assertIn("exists", run("shardpack", "extract", self.out, "-o", self.work / "a.tar", "--to", "tar", ok=(2,))[1])

    def test_a_disk_that_is_full_while_extracting_is_status_4_and_leaves_no_half_file(self):
        self.files["bee/large.png"] = encoded(pixels(64, 64))
        (self.tree / "bee/large.png").write_bytes(self.files["bee/large.png"])
        self.convert()
        for output, kind in (("some.tar", "tar"), ("some", "folder")):
            program = [str(support.BIN / "shardpack"), "extract", str(self.out), "-o", str(self.work / output), "--to", kind]
            limited = subprocess.run(["bash", "-c", 'trap "" XFSZ; ulimit -f 2; exec "$@"', "bash", *program], stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(limited.returncode, 4)
            self.assertEqual(limited.stderr.count(b"\n"), 1, limited.stderr)
        self.assertFalse((self.work / "some.tar").exists())
        for path in (self.work / "some").rglob("*.*"):
            self.assertEqual(path.read_bytes(), self.files[str(path.relative_to(self.work / "some"))])

    def test_json_of_convert_and_shardinfo_agree_with_the_files(self):
        lines = self.convert("--json", "--shard-records", 7, "--name", "insects")[0].splitlines()
        result = json.loads(lines[-1])
        info = json.loads(run("shardinfo", self.out, "--json")[0])
        self.assertEqual((result["records"], result["shards"], result["classes"], result["bad_inputs"]), (30, 5, 3, 0))
        self.assertEqual(result["bytes_in"], sum(map(len, self.files.values())))
        shards = sorted(self.out.glob("*.shard"))
        self.assertEqual(result["bytes_out"], sum(p.stat().st_size for p in shards))
        self.assertTrue(result["sealed"])
        self.assertEqual(result["dataset_digest"], info["dataset_digest"])
        self.assertEqual((info["name"], info["classes"]), ("insects", ["ant", "bee", "cat"]))
        self.assertEqual([s["file"] for s in info["shards"]], [p.name for p in shards])
        sizes = [Image.open(io.BytesIO(c)).size for c in self.files.values()]
        for k, name in enumerate(("width", "height")):
            values = [s[k] for s in sizes]
            self.assertEqual(info[name], {"min": min(values), "median": statistics.median_low(values), "max": max(values)})
            self.assertNotIn(name + "_histogram", info)
            full = json.loads(run("shardinfo", self.out, "--json", "--histograms", "--layout")[0])
            self.assertEqual(full[name + "_histogram"], sorted([v, values.count(v)] for v in set(values)))
        for shard, path in zip(full["shards"], shards):
            sections = {s["section"]: s for s in shard["layout"]}
            rows, keys = sections["rows"], sections["keys"]
            self.assertEqual(rows["bytes"], 64 * shard["records"])  # a row is 64 bytes
            listed = [os.fsencode(k) for k in sorted(self.files)][7 * shards.index(path):][:shard["records"]]
            self.assertEqual(path.read_bytes()[keys["offset"]:][:keys["bytes"]], b"".join(listed))
        self.assertIn("--records", run("shardinfo", self.out, "--json", "--records", 3, ok=(2,))[1])
        self.assertEqual(sum(info["encodings"].values()), 30)
        self.assertEqual(sum(c["raw_bytes"] for c in info["codecs"].values()), result["bytes_in"])

    def test_csv_is_read_by_the_csv_module(self):
        odd = 'ant/comma, "quote".png'
        self.files[odd] = encoded(pixels(4, 4))
        (self.tree / odd).write_bytes(self.files[odd])
        self.convert()
        rows = list(csv.DictReader(io.StringIO(run("shardpack", "list", self.out, "--format", "csv")[0].decode(), newline="")))
        self.assertEqual([r["key"] for r in rows], sorted(self.files))

    def test_names_that_are_not_utf8_are_kept_and_written_in_hexadecimal(self):
        folder = os.fsencode(self.tree) + b"/d\xe9j\xe0"
        os.mkdir(folder)
        with open(folder + b"/1.png", "wb") as file:
            file.write(encoded(pixels(4, 4)))
        self.convert()
        last = listed(self.out)[-1]
        self.assertEqual(bytes.fromhex(last["key_hex"]), b"d\xe9j\xe0/1.png")
        self.assertEqual(bytes.fromhex(last["class_hex"]), b"d\xe9j\xe0")
        self.assertEqual(json.loads(run("shardinfo", self.out, "--json")[0])["classes"][3], {"hex": b"d\xe9j\xe0".hex()})
        self.assertIn("d\\xe9j\\xe0", run("shardinfo", self.out)[0].decode())

    def test_classes_are_pinned_by_a_file_or_by_another_dataset(self):
        (self.work / "names.txt").write_text("zebra\ncat\nbee\nant\n")
        self.convert("--classes", self.work / "names.txt")
        self.assertEqual({r["class"]: r["label"] for r in listed(self.out)}, {"cat": 1, "bee": 2, "ant": 3})
        other = self.work / "other"
        run("shardpack", "convert", self.tree, "-o", other, "--classes", self.out, "--progress", "none")
        self.assertEqual(json.loads(run("shardinfo", other, "--json")[0])["classes"], ["zebra", "cat", "bee", "ant"])
        (self.work / "names.txt").write_text("cat\nbee\n")
        third = self.work / "third"
        text = run("shardpack", "convert", self.tree, "-o", third, "--classes", self.work / "names.txt", ok=(2,))[1]
        self.assertIn("class ant", text)

    def test_output_is_the_same_for_any_number_of_threads(self):
        digests = set()
        for threads in (1, 2, 7):
            out = self.work / f"t{threads}"
            run("shardpack", "convert", self.tree, "-o", out, "--threads", threads, "--progress", "none", "--shard-size", "20KB")
            digests.add(tuple((p.name, hashlib.sha256(p.read_bytes()).hexdigest()) for p in sorted(out.iterdir())))
        self.assertEqual(len(digests), 1)

    def test_verify_finds_no_damage_and_then_a_flipped_byte(self):
        self.convert()
        self.assertIn(b"30 records", run("shardpack", "verify", self.out, "--decode")[0])
        record = listed(self.out)[3]
        shard = self.out / record["shard"]
        damaged = bytearray(shard.read_bytes())
        damaged[record["offset"]] ^= 0x10
        shard.write_bytes(damaged)
        result = json.loads(run("shardpack", "verify", self.out, "--json", ok=(3,))[0])
        self.assertFalse(result["ok"])
        self.assertIn((3, record["key"]), [(f["record"], f["key"]) for f in result["faults"]])
        run("shardpack", "cat", self.out, record["key"], ok=(3,))
        self.assertEqual(run("shardpack", "cat", self.out, 4)[0], self.files[sorted(self.files)[4]])


if __name__ == "__main__":
    support.main()
