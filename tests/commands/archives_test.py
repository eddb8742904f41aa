"""Archives through the programs: what tarfile, zipfile, gzip and zstd make goes in, and comes out again."""

import gzip
import hashlib
import io
import json
import pathlib
import resource
import struct
import subprocess
import tarfile
import zipfile

import support
from support import encoded, listed, pixels, run


def png(seed):
    return encoded(pixels(9 + seed % 5, 7, seed))


def make_tar(path, entries, fmt=tarfile.PAX_FORMAT):
    with tarfile.open(path, "w", format=fmt) as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def example(picture, label, text):
    def entry(name, feature):
        return field(1, field(1, name) + field(2, feature))

    return field(
        1,
        entry(b"image/encoded", field(1, field(1, picture)))
        + entry(b"image/class/label", field(3, field(1, varint(label))))
        + entry(b"image/class/text", field(1, field(1, text))),
    )


class Archives(support.TestCase):
    def samples(self, count=40, first=0):
        entries, self.pictures = [], {}
        for i in range(first, first + count):
            key = f"part.{i % 3}/{i:05}"
            self.pictures[key] = png(i)
            entries += [(f"./{key}.png", png(i)), (f"./{key}.json", b'{"label": %d, "score": 1.50}' % (i * 3)), (f"./{key}.txt", b"caption")]
        return entries

    def convert(self, *sources, out=None, ok=(0,), **more):
        options = [word for name, value in more.items() for word in ("--" + name.replace("_", "-"), value)]
        return run("shardpack", "convert", *sources, "-o", out or self.out, "--progress", "none", *options, ok=ok)

    def check(self, want, out=None):
        """The dataset holds these pictures in this order."""
        out = out or self.out
        records = listed(out)
        self.assertEqual([r["key"] for r in records], list(want))
        for record, content in zip(records, want.values()):
            self.assertEqual(run("shardpack", "cat", out, record["index"], "--index")[0], content)
        run("shardpack", "verify", out, "--decode")
        return records

    def digest_of(self, folder):
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}

    def test_samples_keep_bytes_labels_metadata_and_order(self):
        self.convert(make_tar(self.work / "in.tar", self.samples()))
        for i, record in enumerate(self.check(self.pictures)):
            self.assertEqual((record["label"], record["class"]), (i * 3, None))
            self.assertEqual(record["metadata"], {"member": record["key"] + ".png", "json": {"score": 1.5}})

    def test_plain_and_compressed_tars_make_the_same_dataset(self):
        tar = make_tar(self.work / "in.tar", self.samples(200))
        gz = self.work / "in.tar.gz"
        gz.write_bytes(gzip.compress(tar.read_bytes()))
        subprocess.run(["zstd", "-q", tar], check=True)
        folders = []
        for n, path in enumerate((tar, gz, self.work / "in.tar.zst")):
            for threads in (1, 3):
                folders.append(self.work / f"out{n}.{threads}")
                self.convert(path, out=folders[-1], threads=threads, shard_records=30, compression="none")
        first = self.digest_of(folders[0])
        self.assertGreater(len(first), 6)
        for folder in folders[1:]:
            self.assertEqual(self.digest_of(folder), first)
        self.check(self.pictures, folders[2])

    def test_a_tar_comes_out_as_its_pictures_under_their_names(self):
        self.convert(make_tar(self.work / "in.tar", self.samples()))
        run("shardpack", "extract", self.out, "-o", self.work / "files")
        found = {str(p.relative_to(self.work / "files")): p.read_bytes() for p in (self.work / "files").rglob("*") if p.is_file()}
        self.assertEqual(found, {key + ".png": content for key, content in self.pictures.items()})

    def test_many_tars_with_few_descriptors(self):
        want, paths = {}, []
        for n in range(150):
            paths.append(make_tar(self.work / f"{n:03}.tar", self.samples(2, 2 * n), tarfile.USTAR_FORMAT))
            want.update(self.pictures)

        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (110, 110))

        run("shardpack", "convert", *paths, "-o", self.out, "--progress", "none", "--threads", "2", preexec_fn=few)
        self.check(want)

    def test_keys_that_clash_between_tars_get_their_names_in_front(self):
        one = make_tar(self.work / "one.tar", self.samples(4))
        two = make_tar(self.work / "two.tar", self.samples(4))
        self.convert(one, two)
        keys = [r["key"] for r in listed(self.out)]
        self.assertEqual(len(set(keys)), 8)
        self.assertTrue(keys[0].startswith("one") and keys[-1].startswith("two"), keys)

    def test_archives_that_are_not_whole_are_refused_in_both_policies(self):
        jpg = encoded(pixels(8, 8, 1), "JPEG")
        whole = make_tar(self.work / "whole.tar", self.samples(3)).read_bytes()
        cut = self.work / "cut.tar"
        cut.write_bytes(whole[: len(whole) // 3])
        scattered = make_tar(self.work / "scattered.tar", [("1.jpg", jpg), ("1.cls", b"0"), ("2.jpg", jpg), ("2.cls", b"0"), ("1.txt", b"")])
        twice = make_tar(self.work / "twice.tar", [("1.jpg", jpg), ("1.jpg", jpg), ("1.cls", b"0")])
        for path, word in ((cut, "cut off"), (scattered, "scattered"), (twice, "twice")):
            for policy in ("skip", "fail"):
                text = self.convert(path, ok=(3,), on_error=policy)[1]
                self.assertIn(path.name, text)
                self.assertIn(word, text)
                self.assertFalse((self.out / "dataset.json").exists())

    def test_a_bad_picture_in_an_archive_is_in_the_ledger(self):
        entries = [("1.png", png(1)), ("1.cls", b"0"), ("2.png", png(2)[:50]), ("2.cls", b"1")]
        tar = make_tar(self.work / "in.tar", entries)
        gz = self.work / "in.tgz"
        gz.write_bytes(gzip.compress(tar.read_bytes()))
        for n, path in enumerate((tar, gz)):
            out = self.work / f"out{n}"
            self.convert(path, out=out, ok=(1,))
            self.check({"1": png(1)}, out)
            ledger = [json.loads(line) for line in (out / "bad_inputs.jsonl").read_text().splitlines()]
            self.assertEqual([entry["key"] for entry in ledger], ["2"])
            self.assertIn(path.name, json.dumps(ledger[0]))
            self.assertIn(path.name, self.convert(path, out=self.work / f"fail{n}", ok=(3,), on_error="fail")[1])

    def test_imagenets_tar_of_tars(self):
        want, outer = {}, []
        for name in ("n02", "n01"):
            entries = [(f"{name}_{i}.JPEG", encoded(pixels(20, 12, i), "JPEG")) for i in range(6)]
            want.update({f"{name}/{key}": content for key, content in entries})
            outer.append((f"{name}.tar", make_tar(self.work / "inner.tar", entries).read_bytes()))
        self.convert(make_tar(self.work / "train.tar", outer))
        for record in self.check(want):
            self.assertEqual(record["class"], record["key"][:3])
            self.assertEqual(record["label"], ["n01", "n02"].index(record["class"]))

    def test_zips_of_class_folders(self):
        want = {f"{'dog cat'.split()[i % 2]}/{i}.png": png(i) for i in range(30)}
        path = self.work / "in.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for key, content in want.items():
                archive.writestr(key, content)
        self.convert(path, order="name")
        for record in self.check(dict(sorted(want.items()))):
            self.assertEqual((record["class"], record["label"]), (record["key"][:3], int(record["key"].startswith("dog"))))

    def test_tfrecords_plain_and_compressed(self):
        want = {f"{i:08}": png(i) for i in range(30)}
        content = b"".join(framed(example(png(i), i % 7, b"seven")) for i in range(30))
        for name, written in (("a.tfrecord", content), ("b.tfrecord", gzip.compress(content))):
            path, out = self.work / name, self.work / f"out.{name}"
            path.write_bytes(written)
            self.convert(path, out=out)
            for i, record in enumerate(self.check(want, out)):
                self.assertEqual((record["label"], record["metadata"]), (i % 7, {"image/class/text": "seven"}))

    def test_a_harmed_tfrecord_is_a_bad_input_alone(self):
        records = [bytearray(framed(example(png(i), i, b""))) for i in range(4)]
        records[2][70] ^= 1
        path = self.work / "in.tfrecord"
        path.write_bytes(b"".join(records))
        self.convert(path, ok=(1,))
        self.check({f"{i:08}": png(i) for i in (0, 1, 3)})
        self.assertIn("checksum", (self.out / "bad_inputs.jsonl").read_text())


if __name__ == "__main__":
    support.main()
