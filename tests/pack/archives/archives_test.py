"""Archives as sources, against what Python's tarfile, zipfile, gzip and the zstd program make, and records written by hand."""

import gzip
import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import unittest
import zipfile
import zlib

PROBE = None


class Found:
    """What a scan found and what reading gave."""

    def __init__(self, text):
        *lines, last = [json.loads(line) for line in text.splitlines()]
        self.stream, self.ignored, self.warnings = last["stream"], last["ignored"], last["warnings"]
        self.classes = [bytes.fromhex(name) for name in last.get("classes", [])]
        self.inputs = lines
        for line in lines:
            for name in ("key", "label", "metadata", "content", "described"):
                line[name] = bytes.fromhex(line[name + "_hex"])

    def keys(self):
        return [line["key"].decode("utf-8", "surrogateescape") for line in self.inputs]

    def contents(self):
        return {key: line["content"] for key, line in zip(self.keys(), self.inputs)}

    def labels(self):
        return [line["label_number"] if line["label_kind"] == "integer" else (line["label_kind"], line["label"].decode()) for line in self.inputs]

    def metadata(self):
        return [json.loads(line["metadata"]) if line["metadata"] else None for line in self.inputs]


class TestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)

    def probe(self, kind, path, *more):
        done = subprocess.run([PROBE, kind, path, *more], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        found = Found(done.stdout.decode())
        for line in found.inputs:
            self.assertTrue(line["as_planned"] or more, line)
            if found.stream and not line["bad"] and not more:
                self.assertTrue(line["sample_is_content"], line["key"])
        order = [line["sequence"] for line in found.inputs]
        self.assertEqual(order, sorted(set(order)))
        return found

    def refused(self, kind, path, *words):
        done = subprocess.run([PROBE, kind, path], capture_output=True, timeout=120)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 3, text)
        self.assertEqual(len(text.splitlines()), 1, text)
        for word in (path.name, *words):
            self.assertIn(word, text)
        return text


def picture(seed, size=700):
    """Bytes that no compressor makes anything of. A scan looks at names and labels only."""
    out = bytearray()
    state = seed * 2654435761 % 2**32 + 1
    while len(out) < size:
        state = state * 6364136223846793005 % 2**64 + 1442695040888963407
        out += struct.pack("<Q", state & 2**64 - 1)
    return bytes(out[:size])


def make_tar(path, entries, fmt=tarfile.USTAR_FORMAT, **options):
    """From (name, content); content None: a folder; ("link", target): a symbolic link, ("hard", target): a hard one."""
    with tarfile.open(path, "w", format=fmt, **options) as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            elif isinstance(content, tuple):
                info.type = tarfile.SYMTYPE if content[0] == "link" else tarfile.LNKTYPE
                info.linkname = content[1]
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def samples(count, size=700):
    entries = []
    for i in range(count):
        entries += [(f"s/{i:04}.jpg", picture(i, size + i)), (f"s/{i:04}.cls", str(i * 3).encode())]
    return entries


def zstd(path, *options):
    subprocess.run(["zstd", "-q", "-f", *options, path, "-o", f"{path}.zst"], check=True)
    return pathlib.Path(f"{path}.zst")


class Tars(TestCase):
    def check_samples(self, path, count, size=700):
        found = self.probe("tar", path)
        self.assertEqual(found.keys(), [f"s/{i:04}" for i in range(count)])
        self.assertEqual(list(found.contents().values()), [picture(i, size + i) for i in range(count)])
        self.assertEqual(found.labels(), [i * 3 for i in range(count)])
        self.assertEqual(found.metadata(), [{"member": f"s/{i:04}.jpg"} for i in range(count)])
        return found

    def test_plain_tars_of_every_kind_are_read_by_place(self):
        for fmt in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            found = self.check_samples(make_tar(self.work / "in.tar", samples(50), fmt), 50)
            self.assertFalse(found.stream)

    def test_compressed_tars_are_known_by_their_content_and_streamed(self):
        tar = make_tar(self.work / "in.tar", samples(300, 3000))
        self.assertTrue(self.check_samples(zstd(tar), 300, 3000).stream)
        self.assertTrue(self.check_samples(zstd(tar, "--long=27", "-B100000"), 300, 3000).stream)
        odd = self.work / "in.jpeg"
        odd.write_bytes(gzip.compress(tar.read_bytes(), 1))
        self.assertTrue(self.check_samples(odd, 300, 3000).stream)

    def test_several_gzip_members_and_zstd_frames_are_one_stream(self):
        content = make_tar(self.work / "in.tar", samples(40)).read_bytes()
        half = len(content) // 3
        path = self.work / "in.tar.gz"
        path.write_bytes(gzip.compress(content[:half]) + gzip.compress(b"") + gzip.compress(content[half:]) + bytes(1000))
        self.check_samples(path, 40)
        parts = []
        for n, part in enumerate((content[:half], content[half:])):
            (self.work / f"part{n}").write_bytes(part)
            parts.append(zstd(self.work / f"part{n}").read_bytes())
        skippable = struct.pack("<II", 0x184D2A53, 5) + b"hello"
        path = self.work / "in.tar.zst"
        path.write_bytes(skippable + parts[0] + skippable + parts[1])
        self.check_samples(path, 40)

    def test_keys_end_at_the_first_dot_of_the_last_part(self):
        entries = [
            ("./train.v1", None),
            ("./train.v1/0001.jpg", picture(1)),
            ("./train.v1/0001.cls", b"7\n"),
            ("./train.v1/0002.json", b'{"label": 3, "who": "me"}'),
            ("./train.v1/0002.png", picture(2)),
            ("./train.v1/0002.txt", b"a caption"),
            ("./22.0/0001.JPEG", picture(3)),
            ("./22.0/0001.CLS", b" 300 "),
            ("a.b/noext/1.seg.png", picture(4)),
            ("a.b/noext/1.png", picture(5)),
            ("a.b/noext/1.cls", b"-9223372036854775808"),
        ]
        found = self.probe("tar", make_tar(self.work / "in.tar", entries))
        self.assertEqual(found.keys(), ["train.v1/0001", "train.v1/0002", "22.0/0001", "a.b/noext/1"])
        self.assertEqual(found.labels(), [7, 3, 300, -(2**63)])
        self.assertEqual(found.metadata()[1], {"member": "train.v1/0002.png", "json": {"who": "me"}})
        self.assertEqual(list(found.contents().values()), [picture(1), picture(2), picture(3), picture(5)])
        self.assertEqual(found.ignored, 2)  # the caption, the mask

    def test_labels_of_every_kind_are_kept_exactly(self):
        cases = [
            (("cls", b"tabby cat"), ("class", "tabby cat")),
            (("cls", b"0.1"), ("float", "0.1")),
            (("cls", b"nan"), ("class", "nan")),
            (("cls", b"007"), 7),
            (("cls", b"+5"), 5),
            (("json", b'{"label": 9223372036854775807}'), 2**63 - 1),
            (("json", b'{"label": "caf\\u00e9"}'), ("class", "caf\u00e9")),
            (("json", b'{"label": [1, 5,\n-7]}'), ("list", "[1,5,-7]")),
            (("json", b'{"label": []}'), ("list", "[]")),
            (("json", b'{"label": 2.50}'), ("float", "2.5")),
            (("json", b'{"l\\u0061bel": 1e300}'), ("float", "1e+300")),
            (("json", b'\xef\xbb\xbf {"label":4}\n'), 4),
        ]
        for (extension, text), label in cases:
            found = self.probe("tar", make_tar(self.work / "in.tar", [("1.jpg", picture(1)), (f"1.{extension}", text)]))
            self.assertEqual(found.labels(), [label], text)

    def test_a_cls_is_the_label_where_there_is_a_json_too(self):
        entries = [("1.json", b'{"label": 4, "x": [1, {"label": 2}]}'), ("1.jpg", picture(1)), ("1.cls", b"6")]
        found = self.probe("tar", make_tar(self.work / "in.tar", entries))
        self.assertEqual((found.labels(), found.metadata()), ([6], [{"member": "1.jpg", "json": {"x": [1, {"label": 2}]}}]))

    def test_json_keeps_every_digit_and_escape(self):
        text = b' { "a" : 1.10000000000000000000001 , "label":1, "b":12345678901234567890123, "c":"\\u00e9 }\\"{ , x", "d" : [ ] , "e":{ } } '
        found = self.probe("tar", make_tar(self.work / "in.tar", [("1.jpg", picture(1)), ("1.json", text)]))
        want = b'{"member":"1.jpg","json":{"a":1.10000000000000000000001,"b":12345678901234567890123,"c":"\\u00e9 }\\"{ , x","d":[],"e":{}}}'
        self.assertEqual(found.inputs[0]["metadata"], want)

    def test_labels_that_cannot_be_read_are_refused_with_archive_and_member(self):
        cases = [
            (("cls", b"  \n"), "empty"),
            (("cls", b"9223372036854775808"), "64 bits"),
            (("json", b'{"label": 1'), "JSON"),
            (("json", b"[1]"), "object"),
            (("json", b'{"label": true}'), "label"),
            (("json", b'{"label": null}'), "label"),
            (("json", b'{"label": [1, 2.5]}'), "label"),
            (("json", b'{"label": {"a": 1}}'), "label"),
            (("json", b'{"label": 1, "label": 2}'), "two"),
            (("json", b'{"label": 99999999999999999999}'), "64 bits"),
            (("json", b'{"name": "\xff", "label": 1}'), "JSON"),
        ]
        for (extension, text), word in cases:
            path = make_tar(self.work / "in.tar", [("a/1.jpg", picture(1)), (f"a/1.{extension}", text)])
            self.refused("tar", path, f"a/1.{extension}", word)
        path = make_tar(self.work / "in.tar", [("a/1.jpg", picture(1)), ("a/1.json", b'{"a": 1}')])
        self.refused("tar", path, "a/1", "no label")

    def test_samples_that_are_not_whole_are_refused(self):
        jpg, cls = picture(1), b"0"
        cases = [
            ([("1.jpg", jpg), ("1.cls", cls), ("2.jpg", jpg), ("2.jpg", jpg), ("2.cls", cls)], ["2.jpg", "twice", "duplicate"]),
            ([("./1.jpg", jpg), ("1.jpg", jpg), ("1.cls", cls)], ["1.jpg", "twice"]),
            ([("1.jpg", jpg), ("2.jpg", jpg), ("1.cls", cls), ("2.cls", cls)], ["sample 1 ", "no label", "together"]),
            ([("1.jpg", jpg), ("1.cls", cls), ("2.jpg", jpg), ("2.cls", cls), ("1.txt", b"")], ["1.txt", "scattered"]),
            ([("1.cls", cls), ("2.jpg", jpg), ("2.cls", cls)], ["sample 1 ", "no picture", "missing"]),
            ([("1.jpg", jpg), ("1.png", jpg), ("1.cls", cls)], ["1.jpg", "1.png", "several pictures"]),
            ([("1.a.jpg", jpg), ("1.b.jpg", jpg), ("1.cls", cls)], ["1.a.jpg", "1.b.jpg"]),
            ([("a/../../1.jpg", jpg), ("a/../../1.cls", cls)], ["a/../../1.jpg", "leads out"]),
        ]
        for entries, words in cases:
            tar = make_tar(self.work / "in.tar", entries)
            self.refused("tar", tar, *words)
            self.refused("tar", zstd(tar), *words)

    def test_members_that_are_no_part_of_a_sample_are_passed_over(self):
        entries = [
            ("README.md", b"hello"),
            ("s", None),
            ("s/1.jpg", picture(1)),
            ("s/1.cls", b"1"),
            ("s/.hidden.jpg", picture(2)),
            ("s/._1.jpg", b"AppleDouble"),
            (".git/2.jpg", picture(2)),
            ("__MACOSX/s/3.jpg", picture(2)),
            ("s/link.jpg", ("link", "1.jpg")),
            ("s/hard.jpg", ("hard", "s/1.jpg")),
            ("s/2.jpg", picture(3)),
            ("s/2.cls", b"2"),
        ]
        found = self.probe("tar", make_tar(self.work / "in.tar", entries))
        self.assertEqual(found.keys(), ["s/1", "s/2"])
        self.assertEqual(found.ignored, 7)
        self.assertEqual(len(found.warnings), 1)
        self.assertIn("README.md", found.warnings[0])

    def test_names_are_kept_byte_for_byte(self):
        composed, decomposed = unicodedata.normalize("NFC", "\u00e9"), unicodedata.normalize("NFD", "\u00e9")
        names = ["s/" + composed, "s/" + decomposed, "s/b\udce9", "s/" + "long_" * 40 + composed, "s/back\\slash\n"]
        entries = []
        for i, name in enumerate(names):
            entries += [(name + ".jpg", picture(i)), (name + ".cls", str(i).encode())]
        for fmt in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            path = make_tar(self.work / "in.tar", entries, fmt, encoding="utf-8", errors="surrogateescape")
            for one in (path, zstd(path)):
                found = self.probe("tar", one)
                self.assertEqual(found.keys(), names)
                self.assertEqual(list(found.contents().values()), [picture(i) for i in range(len(names))])
                self.assertEqual(found.metadata()[1], {"member": names[1] + ".jpg"})
                self.assertEqual(found.metadata()[2], {"member_hex": "732f62e92e6a7067"})

    def test_long_names_split_by_ustar_do_not_run_together(self):
        stem = "folder" * 20 + "/" + "part" * 20
        entries = []
        for i in range(3):
            entries += [(f"{stem}{i}.jpg", picture(i)), (f"{stem}{i}.cls", str(i).encode())]
        for fmt in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            found = self.probe("tar", make_tar(self.work / "in.tar", entries, fmt))
            self.assertEqual(found.keys(), [f"{stem}{i}" for i in range(3)])
            self.assertEqual(found.labels(), [0, 1, 2])

    def test_a_tar_that_is_cut_off_is_refused_wherever_it_is_cut(self):
        tar = make_tar(self.work / "in.tar", samples(3)).read_bytes()
        used = 3 * (512 + 1024 + 512 + 512)
        for size in [*range(1, used + 1, 97), *range(512, used + 1, 512)]:
            cut = self.work / "cut.tar"
            cut.write_bytes(tar[:size])
            self.refused("tar", cut)
        cut.write_bytes(tar[: used + 512])  # half an end marker is one
        self.check_samples(cut, 3)
        cut.write_bytes(b"")
        self.refused("tar", cut, "empty")

    def test_a_compressed_tar_that_is_cut_off_or_damaged_is_refused(self):
        tar = make_tar(self.work / "in.tar", samples(3))
        packed = {"gz": gzip.compress(tar.read_bytes()), "zst": zstd(tar).read_bytes()}
        for extension, content in packed.items():
            cut = self.work / f"cut.{extension}"
            for size in range(5, len(content) - 10, 131):
                cut.write_bytes(content[:size])
                self.refused("tar", cut)
        harmed = bytearray(packed["gz"])
        harmed[len(harmed) // 2] ^= 1
        cut = self.work / "harmed.gz"
        cut.write_bytes(harmed)
        self.refused("tar", cut)

    def test_a_header_that_is_damaged_is_refused(self):
        content = bytearray(make_tar(self.work / "in.tar", samples(3)).read_bytes())
        content[512 + 1024 + 5] ^= 1  # in the name of the second member
        path = self.work / "harmed.tar"
        path.write_bytes(content)
        self.refused("tar", path, "s/0000.jpg")

    def test_other_files_are_no_tars(self):
        for content in (b"hello", b"x" * 5000, picture(1, 5000), b"\x89PNG\r\n\x1a\n" + bytes(3000)):
            path = self.work / "other.tar"
            path.write_bytes(content)
            self.refused("tar", path, "tar")

    def test_sparse_files_are_refused(self):
        sparse = self.work / "1.jpg"
        with open(sparse, "wb") as file:
            file.truncate(1 << 20)
            file.seek(600000)
            file.write(picture(1))
        (self.work / "1.cls").write_bytes(b"1")
        for fmt in ("gnu", "pax"):
            path = self.work / "sparse.tar"
            subprocess.run(["tar", "-C", self.work, "--sparse", f"--format={fmt}", "-cf", path, "1.jpg", "1.cls"], check=True)
            self.refused("tar", path, "1.jpg")

    def test_a_tar_made_anew_since_the_scan_is_noticed(self):
        first, second = make_tar(self.work / "in.tar", samples(4)), make_tar(self.work / "new.tar", samples(4)[2:] + samples(1))
        found = self.probe("tar", first, "--change", second)
        self.assertEqual({line["as_planned"] for line in found.inputs}, {False})
        for line in found.inputs:
            self.assertIn("changed", line["error"])

    def test_a_compressed_tar_made_anew_since_the_scan_is_noticed(self):
        first, second = make_tar(self.work / "in.tar", samples(4)), make_tar(self.work / "new.tar", samples(4)[2:] + samples(1))
        path = self.work / "in.gz"
        path.write_bytes(gzip.compress(first.read_bytes()))
        (self.work / "new.gz").write_bytes(gzip.compress(second.read_bytes()))
        found = self.probe("tar", path, "--change", self.work / "new.gz")
        for line in found.inputs:
            self.assertIn("changed", line["error"])


class TarsOfTars(TestCase):
    def setUp(self):
        super().setUp()
        self.inner = {}
        for c, name in enumerate(("n01440764", "n01443537", "empty", "n01484850")):
            entries = [(f"{name}_{i}.JPEG", picture(10 * c + i, 600 * i + 1)) for i in range(5)]
            path = make_tar(self.work / f"{name}.tar", [] if name == "empty" else entries + [("notes.txt", b"x")])
            self.inner[name] = (path.read_bytes(), {} if name == "empty" else dict(entries))

    def check(self, found):
        want = {f"{name}/{key}": content for name, (_, entries) in self.inner.items() for key, content in entries.items()}
        self.assertEqual(found.contents(), want)
        self.assertEqual(found.labels(), [("class", key.split("/")[0]) for key in want])
        self.assertEqual(found.classes, [name.encode() for name in self.inner])
        self.assertEqual(found.ignored, 3)

    def test_each_inner_tar_is_a_class(self):
        for fmt in (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT):
            entries = [(f"./{name}.tar", content) for name, (content, _) in self.inner.items()]
            outer = make_tar(self.work / "train.tar", entries, fmt)
            found = self.probe("tar", outer)
            self.assertFalse(found.stream)
            self.check(found)
            found = self.probe("tar", zstd(outer))
            self.assertTrue(found.stream)
            self.check(found)

    def test_a_picture_beside_tars_is_refused(self):
        entries = [("n1.tar", self.inner["n01440764"][0]), ("stray.jpg", picture(1))]
        self.refused("tar", make_tar(self.work / "train.tar", entries), "stray.jpg")

    def test_an_inner_tar_that_is_cut_off_is_refused(self):
        content = self.inner["n01443537"][0]
        for size in (0, 100, 512, 3000, 512 * 8):
            outer = make_tar(self.work / "train.tar", [("n1.tar", self.inner["n01440764"][0]), ("n2.tar", content[:size])])
            self.refused("tar", outer, "n2.tar")
            self.refused("tar", zstd(outer), "n2.tar")

    def test_a_member_twice_in_an_inner_tar_is_refused(self):
        inner = make_tar(self.work / "n1.tar", [("1.jpg", picture(1)), ("2.jpg", picture(2)), ("1.jpg", picture(3))])
        self.refused("tar", make_tar(self.work / "train.tar", [("n1.tar", inner.read_bytes())]), "n1.tar", "1.jpg", "twice")


class Zips(TestCase):
    def make(self, entries, name="in.zip", **options):
        path = self.work / name
        with zipfile.ZipFile(path, "w", **options) as archive:
            for key, content in entries:
                archive.writestr(key, content)
        return path

    def test_top_folders_are_classes(self):
        entries = [(f"{'cat dog'.split()[i % 2]}/{'deep/' * (i % 3)}{i}.JPG", picture(i, i * 50)) for i in range(40)]
        more = [("cat/notes.txt", b"x"), ("root.jpg", b"y"), ("cat/.hidden.jpg", b"z"), ("__MACOSX/cat/._1.jpg", b"z"), ("bird/", b"")]
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
            found = self.probe("zip", self.make(entries + more, compression=method))
            self.assertEqual(found.contents(), dict(entries))
            self.assertEqual(found.labels(), [("class", key.split("/")[0]) for key, _ in entries])
            self.assertEqual(found.classes, [b"bird", b"cat", b"dog"])
            self.assertEqual(found.ignored, 4)
            self.assertEqual(len(found.warnings), 1)
            self.assertIn("root.jpg", found.warnings[0])

    def test_labels_beside_pictures_make_samples(self):
        entries = [("s.1/1.jpg", picture(1)), ("s.1/1.cls", b"5"), ("s.1/2.png", picture(2)), ("s.1/2.cls", b"6")]
        found = self.probe("zip", self.make(entries, compression=zipfile.ZIP_DEFLATED))
        self.assertEqual((found.keys(), found.labels()), (["s.1/1", "s.1/2"], [5, 6]))
        self.assertEqual(found.metadata()[0], {"member": "s.1/1.jpg"})
        entries = [("a/1.jpg", picture(1)), ("a/1.json", b'{"label": [1], "x": 2}')]
        found = self.probe("zip", self.make(entries))
        self.assertEqual((found.keys(), found.labels()), (["a/1"], [("list", "[1]")]))
        # Other JSON, as annotation tools leave it, makes no samples of class folders.
        entries = [("a/1.jpg", picture(1)), ("a/1.json", b'{"shapes": []}')]
        found = self.probe("zip", self.make(entries))
        self.assertEqual((found.keys(), found.labels()), (["a/1.jpg"], [("class", "a")]))

    def test_a_sample_without_label_is_refused(self):
        self.refused("zip", self.make([("1.jpg", b"x"), ("1.cls", b"1"), ("2.jpg", b"x")]), "sample 2 ", "no label")

    def test_names_are_kept_byte_for_byte(self):
        entries = [("c/\u00e9.jpg", b"1"), ("c/e\u0301.jpg", b"2")]
        self.assertEqual(self.probe("zip", self.make(entries)).contents(), dict(entries))
        # No flag says UTF-8: written by old programs.
        path = self.make([("c/XX.jpg", b"1")])
        content = path.read_bytes()
        path.write_bytes(content.replace(b"c/XX.jpg", b"c/X\xe9.jpg"))
        self.assertEqual([line["key"] for line in self.probe("zip", path).inputs], [b"c/X\xe9.jpg"])

    def test_a_harmed_member_is_bad_and_others_are_not(self):
        entries = [(f"c/{i}.jpg", picture(i)) for i in range(5)]
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            path = self.make(entries, compression=method)
            content = bytearray(path.read_bytes())
            at = content.index(b"c/2.jpg") + 200
            content[at] ^= 1
            path.write_bytes(content)
            found = self.probe("zip", path)
            self.assertEqual([bool(line["error"]) for line in found.inputs], [False, False, True, False, False])
            self.assertIn("checksum", found.inputs[2]["error"]) if method == zipfile.ZIP_STORED else None

    def patched(self, change):
        """Three members; `change` gets the second's record of the directory."""
        path = self.make([(f"c/{i}.jpg", picture(i)) for i in range(3)], compression=zipfile.ZIP_DEFLATED)
        content = bytearray(path.read_bytes())
        at = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 1)
        change(content, at)
        path.write_bytes(content)
        return self.probe("zip", path)

    def test_sizes_that_cannot_be_true_are_bad(self):
        def bomb(content, at):
            content[at + 24 : at + 28] = struct.pack("<I", 0xFFFFFFF0)

        def longer(content, at):
            content[at + 24 : at + 28] = struct.pack("<I", 701)

        def shorter(content, at):
            content[at + 24 : at + 28] = struct.pack("<I", 699)

        self.assertIn("cannot be true", self.patched(bomb).inputs[1]["bad"])
        for change in (longer, shorter):
            errors = [line["error"] for line in self.patched(change).inputs]
            self.assertTrue(errors[1])
            self.assertEqual((errors[0], errors[2]), ("", ""))

    def test_encrypted_members_and_unknown_methods_are_bad_with_the_reason(self):
        def encrypt(content, at):
            content[at + 8] |= 1

        def other_method(content, at):
            content[at + 10 : at + 12] = struct.pack("<H", 97)

        self.assertIn("encrypted", self.patched(encrypt).inputs[1]["bad"])
        self.assertIn("not supported", self.patched(other_method).inputs[1]["bad"])

    def test_links_are_passed_over(self):
        path = self.work / "in.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("c/1.jpg", picture(1))
            link = zipfile.ZipInfo("c/2.jpg")
            link.create_system, link.external_attr = 3, 0o120777 << 16
            archive.writestr(link, "1.jpg")
        found = self.probe("zip", path)
        self.assertEqual((found.keys(), found.ignored), (["c/1.jpg"], 1))

    def test_zip64_is_read(self):
        path = self.work / "in.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for i in range(70000):  # more than 16 bits count
                archive.writestr(f"c/{i}.jpg", b"x%d" % i)
            with archive.open(zipfile.ZipInfo("c/last.jpg"), "w", force_zip64=True) as member:
                member.write(picture(1))
        contents = self.probe("zip", path).contents()
        self.assertEqual(len(contents), 70001)
        self.assertEqual((contents["c/69999.jpg"], contents["c/last.jpg"]), (b"x69999", picture(1)))

    def test_a_zip_that_is_cut_off_or_none_is_refused(self):
        content = self.make([("c/1.jpg", picture(1)), ("c/2.jpg", picture(2))]).read_bytes()
        for size in (0, 3, 10, 500, len(content) - 30, len(content) - 1):
            cut = self.work / "cut.zip"
            cut.write_bytes(content[:size])
            self.refused("zip", cut)
        cut.write_bytes(b"hello, this is no archive")
        self.refused("zip", cut, "zip")

    def test_a_zip_whose_directory_points_to_a_field_that_is_missing_is_damaged(self):
        path = self.make([("c/1.jpg", picture(1))])
        content = bytearray(path.read_bytes())
        entry = content.rindex(b"PK\x01\x02")
        content[entry + 42 : entry + 46] = b"\xff" * 4  # the member's place is said to stand in a zip64 field
        path.write_bytes(content)
        self.refused("zip", path, "damaged")

    def test_all_pictures_below_one_folder_are_warned_of(self):
        found = self.probe("zip", self.make([("pets/cat/1.jpg", b"1"), ("pets/dog/2.jpg", b"2")]))
        self.assertEqual(found.labels(), [("class", "pets")] * 2)
        self.assertIn("only class", found.warnings[0])

    def test_names_that_lead_out_are_refused(self):
        self.refused("zip", self.make([("c/../../1.jpg", b"1")]), "leads out")

    def test_a_zip_made_anew_since_the_scan_is_noticed(self):
        first, second = self.make([("c/1.jpg", picture(1))]), self.make([("c/1.jpg", picture(2))], "new.zip")
        self.assertIn("changed", self.probe("zip", first, "--change", second).inputs[0]["error"])


def crc32c(data):
    """Bit by bit, from the polynomial."""
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
    n &= 2**64 - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(value, packed=True):
    """bytes, str, int, float, or a list of one kind."""
    values = value if isinstance(value, list) else [value]
    if not values or isinstance(values[0], int):
        if packed:
            return field(3, field(1, b"".join(varint(v) for v in values)))
        return field(3, b"".join(varint(1 << 3) + varint(v) for v in values))
    if isinstance(values[0], float):
        if packed:
            return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
        return field(2, b"".join(varint(1 << 3 | 5) + struct.pack("<f", v) for v in values))
    return field(1, b"".join(field(1, v.encode() if isinstance(v, str) else v) for v in values))


def example(features, packed=True):
    entries = b"".join(field(1, field(1, name.encode()) + field(2, feature(value, packed))) for name, value in features.items())
    return field(1, entries)


class Tfrecords(TestCase):
    def make(self, examples, name="in.tfrecord", wrap=lambda content: content):
        path = self.work / name
        path.write_bytes(wrap(b"".join(framed(e if isinstance(e, bytes) else example(e)) for e in examples)))
        return path

    def numbered(self, count, **more):
        return [{"image/encoded": picture(i, 100 + i), "image/class/label": i * 7 - 3, **more} for i in range(count)]

    def check(self, found, count):
        self.assertEqual(found.keys(), [f"{i:08}" for i in range(count)])
        self.assertEqual(list(found.contents().values()), [picture(i, 100 + i) for i in range(count)])
        self.assertEqual(found.labels(), [i * 7 - 3 for i in range(count)])
        self.assertEqual({line["bad"] + line["error"] for line in found.inputs}, {""})

    def test_the_checksum_here_is_the_known_one(self):
        self.assertEqual((crc32c(b"123456789"), crc32c(bytes(32))), (0xE3069283, 0x8A9136AA))

    def test_pictures_and_labels_of_plain_files_are_read_by_place(self):
        found = self.probe("tfrecord", self.make(self.numbered(20)))
        self.assertFalse(found.stream)
        self.check(found, 20)

    def test_compressed_files_are_streamed(self):
        for wrap in (gzip.compress, zlib.compress, lambda c: zlib.compress(c, 1)):
            found = self.probe("tfrecord", self.make(self.numbered(30), wrap=wrap))
            self.assertTrue(found.stream)
            self.check(found, 30)

    def test_numbers_are_read_packed_or_not(self):
        records = [example(e, packed=False) for e in self.numbered(3)]
        self.check(self.probe("tfrecord", self.make(records)), 3)

    def test_labels_of_every_kind(self):
        cases = [
            ([1, 5, -7], ("list", "[1,5,-7]")),
            (0.5, ("float", "0.5")),
            (0.1, ("float", "0.10000000149011612")),
            ("tench", ("class", "tench")),
            (-(2**63), -(2**63)),
        ]
        for packed in (True, False):
            for value, label in cases:
                record = example({"image/encoded": b"x", "image/class/label": value}, packed)
                self.assertEqual(self.probe("tfrecord", self.make([record])).labels(), [label])

    def test_other_names_of_features(self):
        path = self.make([{"image": b"abc", "y": 4, "image/encoded": b"other", "image/class/label": 9}])
        found = self.probe("tfrecord", path, "--image", "image", "--label", "y")
        self.assertEqual((list(found.contents().values()), found.labels()), ([b"abc"], [4]))

    def test_a_feature_that_the_first_record_lacks_is_named_with_those_it_has(self):
        path = self.make([{"image": b"abc", "label": 4}])
        self.refused("tfrecord", path, "record 0", "image/encoded", "image, label", "--image-feature")
        path = self.make([{"image/encoded": b"abc", "label": 4}])
        self.refused("tfrecord", path, "image/class/label", "--label-feature")

    def test_file_names_are_keys_where_every_record_has_its_own(self):
        records = self.numbered(3)
        for i, record in enumerate(records):
            record["image/filename"] = f"n01/{i}.JPEG"
        found = self.probe("tfrecord", self.make(records))
        self.assertEqual(found.keys(), ["n01/0.JPEG", "n01/1.JPEG", "n01/2.JPEG"])
        self.assertEqual(found.metadata(), [None] * 3)
        for change in ({"image/filename": "n01/0.JPEG"}, {"image/filename": ""}, {"image/filename": "../x"}, {"image/filename": ["a", "b"]}):
            other = [*records[:2], {**records[2], **change}]
            self.assertEqual(self.probe("tfrecord", self.make(other)).keys(), [f"{i:08}" for i in range(3)])
        other = [*records[:2], self.numbered(3)[2]]
        found = self.probe("tfrecord", self.make(other))
        self.assertEqual(found.keys(), [f"{i:08}" for i in range(3)])
        self.assertEqual(found.metadata()[0], {"image/filename": "n01/0.JPEG"})

    def test_small_features_are_metadata(self):
        more = {
            "image/class/text": "t\u00eanch",
            "image/height": 480,
            "score": 0.25,
            "bbox": [0.5, 0.25],
            "mask": b"\xff\xfe",
            "text": "x" * 5000,
            "label": "other",
            "nothing": [],
        }
        found = self.probe("tfrecord", self.make(self.numbered(1, **more)))
        want = {"image/class/text": "t\u00eanch", "image/height": 480, "score": 0.25, "label": "other"}
        self.assertEqual(found.metadata(), [want])
        found = self.probe("tfrecord", self.make([{"image/encoded": b"x", "image/class/label": [1, 2], "label": "other"}]))
        self.assertEqual(found.metadata(), [{"feature/label": "other"}])

    def test_a_record_whose_bytes_contradict_their_checksum_is_bad_alone(self):
        records = [framed(example(e)) for e in self.numbered(5)]
        for harmed in (0, 2, 4):
            content = [bytearray(r) for r in records]
            content[harmed][60] ^= 4
            path = self.work / "in.tfrecord"
            path.write_bytes(b"".join(content))
            found = self.probe("tfrecord", path)
            self.assertEqual(found.keys(), [f"{i:08}" for i in range(5)])
            self.assertEqual([bool(line["bad"]) for line in found.inputs], [i == harmed for i in range(5)])
            self.assertIn(f"record {harmed} at byte {sum(map(len, records[:harmed]))}", found.inputs[harmed]["bad"])
            self.assertIn("checksum", found.inputs[harmed]["bad"])
            contents = list(found.contents().values())
            for i in set(range(5)) - {harmed}:
                self.assertEqual(contents[i], picture(i, 100 + i))

    def test_a_record_without_picture_or_label_behind_the_first_is_bad(self):
        records = [*self.numbered(1), {"image/class/label": 1}, {"image/encoded": b"x"}, {"image/encoded": 5, "image/class/label": 1}, b"\xff\xff"]
        bad = [line["bad"] for line in self.probe("tfrecord", self.make(records)).inputs]
        self.assertEqual(bad[0], "")
        self.assertIn("image/encoded", bad[1])
        self.assertIn("no label", bad[2])
        self.assertIn("no bytes", bad[3])
        self.assertIn("tf.train.Example", bad[4])

    def test_a_damaged_length_names_file_record_and_offset(self):
        records = [framed(example(e)) for e in self.numbered(3)]
        records[1] = bytes([records[1][0] ^ 1]) + records[1][1:]
        path = self.work / "in.tfrecord"
        path.write_bytes(b"".join(records))
        self.refused("tfrecord", path, "record 1", f"byte {len(records[0])}", "length")

    def test_a_file_that_is_cut_off_is_refused_wherever_it_is_cut(self):
        records = [framed(example(e)) for e in self.numbered(2)]
        content = b"".join(records)
        for size in range(1, len(content)):
            if size == len(records[0]):
                continue  # nothing shows that there was more
            path = self.work / "cut.tfrecord"
            path.write_bytes(content[:size])
            text = self.refused("tfrecord", path)
            if size > len(records[0]):
                self.assertIn("record 1 at byte", text)
        packed = gzip.compress(content)
        for size in range(18, len(packed) - 1, 7):
            path.write_bytes(packed[:size])
            self.refused("tfrecord", path)

    def test_other_files_are_refused(self):
        for content in (b"", b"hello", picture(3, 3000), bytes(100)):
            path = self.work / "other.tfrecord"
            path.write_bytes(content)
            self.refused("tfrecord", path)

    def test_protoc_writes_the_same_bytes_as_the_hand(self):
        if shutil.which("protoc") is None:
            self.skipTest("no protoc")
        schema = self.work / "example.proto"
        schema.write_text(
            'syntax = "proto3"; message BytesList { repeated bytes value = 1; } message FloatList { repeated float value = 1 [packed = true]; }'
            "message Int64List { repeated int64 value = 1 [packed = true]; }"
            "message Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }"
            "message Features { map<string, Feature> feature = 1; } message Example { Features features = 1; }"
        )
        text = (
            'features { feature { key: "image/encoded" value { bytes_list { value: "\\377\\330pic" } } }'
            ' feature { key: "image/class/label" value { int64_list { value: -5 } } }'
            ' feature { key: "score" value { float_list { value: 0.25 } } } }'
        )
        record = subprocess.run(["protoc", f"--proto_path={self.work}", "--encode=Example", schema], input=text.encode(), capture_output=True, check=True).stdout
        found = self.probe("tfrecord", self.make([record]))
        self.assertEqual((list(found.contents().values()), found.labels(), found.metadata()), ([b"\xff\xd8pic"], [-5], [{"score": 0.25}]))

    def test_a_file_made_anew_since_the_scan_is_noticed(self):
        first = self.make(self.numbered(2))
        second = self.make([{**e, "image/encoded": picture(9, len(e["image/encoded"]))} for e in self.numbered(2)], "new.tfrecord")
        for line in self.probe("tfrecord", first, "--change", second).inputs:
            self.assertIn("changed", line["error"])


if __name__ == "__main__":
    PROBE = sys.argv.pop(1)
    unittest.main()
