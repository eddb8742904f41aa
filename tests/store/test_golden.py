"""The golden shard as a second reader sees it, and the worked example of the format's text against its bytes."""

import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

try:
    import xxhash
except ImportError:
    print("skipped: this Python has no xxhash")
    sys.exit(77)

import read_shard

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/data/record_shard_v1.shard"
BLOCKS = ROOT / "tests/data/record_shard_v1_blocks.shard"
TEXT = ROOT / "docs/formats/record_shard.md"


class Golden(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = GOLDEN.read_bytes()
        cls.shard = read_shard.Shard(cls.data)

    def test_the_second_reader_finds_what_was_packed(self):
        keys = [r["key"] for r in self.shard.records]
        self.assertEqual(keys, [b"cat/1.jpg", b"cat/2.png", b"dog/1.bmp", b"dog/\xff\xfe.gif"])
        self.assertEqual([r["label"] for r in self.shard.records], [0, 0, 1, 1])
        self.assertEqual([r["codec"] for r in self.shard.records], ["stored", "zstd", "zstd-dictionary", "stored"])
        self.assertEqual([r["encoding"] for r in self.shard.records], ["jpeg", "png", "bmp", "gif"])
        self.assertEqual([(r["width"], r["height"], r["orientation"]) for r in self.shard.records], [(40, 30, 6), (7, 9, 1), (5, 5, 1), (1, 1, 8)])
        self.assertEqual(self.shard.records[1]["raw"], b"x" * 300)
        self.assertEqual(self.shard.records[2]["raw"], b"the quick brown fox jumps over the lazy cat")
        self.assertEqual(self.shard.records[3]["raw"], b"")
        self.assertEqual([r["metadata"] for r in self.shard.records], [b"", b'{"a":1}', b"", b'{"b":[2,3]}'])
        self.assertEqual([len(r["side_data"]) for r in self.shard.records], [0, 0, 9, 4])
        self.assertEqual(self.shard.class_names, [b"cat", b"dog", b"na\xefve"])

    def test_the_second_reader_finds_what_was_packed_in_blocks(self):
        records = read_shard.Shard(BLOCKS.read_bytes()).records
        self.assertEqual([r["key"] for r in records[:4]], [r["key"] for r in self.shard.records])
        self.assertEqual([r["raw"] for r in records[:4]], [r["raw"] for r in self.shard.records])
        self.assertEqual([r["metadata"] for r in records[:4]], [r["metadata"] for r in self.shard.records])
        self.assertEqual([r["key"] for r in records[4:]], [b"eel/1.ppm", b"eel/2.ppm", b"fox/1.png", b"fox/2.png"])
        self.assertEqual([r["label"] for r in records[4:]], [2, 2, 3, 3])
        self.assertEqual([r["codec"] for r in records[4:]], ["zstd-block"] * 4)
        self.assertEqual([r["encoding"] for r in records[4:]], ["pnm", "pnm", "png", "pixels"])
        raw = [b"P6 2 3 255 the first of a block", b"P6 2 3 255 the second of a block", b"", b"a block of its own"]
        self.assertEqual([r["raw"] for r in records[4:]], raw)
        self.assertEqual([r["metadata"] for r in records[4:]], [b"", b'{"label":[1,2]}', b"", b'{"c":null}'])
        self.assertEqual([records[k]["begin"] == records[4]["begin"] for k in range(4, 8)], [True, True, True, False])

    def test_the_second_reader_refuses_every_flipped_byte(self):
        for data in self.data, BLOCKS.read_bytes():
            for at in range(len(data)):
                bad = bytearray(data)
                bad[at] ^= 1
                with self.assertRaises(Exception, msg=f"byte {at} of {len(data)}"):
                    read_shard.Shard(bytes(bad))

    def check_example(self, text, data, least):
        shown = 0
        for line in text.splitlines():
            match = re.match(r"^([0-9a-f]{8})  ((?:[0-9a-f]{2} ?)+)", line)
            if match:
                want = bytes.fromhex(match[2])
                at = int(match[1], 16)
                self.assertEqual(data[at : at + len(want)], want, line)
                shown += len(want)
        self.assertGreater(shown, least)

    def test_the_worked_examples_are_the_golden_shards(self):
        one, two = TEXT.read_text().split("## Worked example: blocks")
        self.check_example(one, self.data, 400)
        self.check_example(two, BLOCKS.read_bytes(), 200)

    def test_the_digests_in_the_text_are_those_of_the_golden_shards(self):
        text = TEXT.read_text()
        for shard in self.shard, read_shard.Shard(BLOCKS.read_bytes()):
            self.assertTrue(shard.file_digest in text)
            self.assertTrue(shard.index_digest in text)

    def test_the_block_in_the_text_is_what_the_zstd_program_inflates(self):
        program = shutil.which("zstd")
        if program is None:
            self.skipTest("no zstd program")
        shard = read_shard.Shard(BLOCKS.read_bytes())
        offset, (_, _, size, content, _) = next(iter(shard.blocks.items()))
        shown = subprocess.run([program, "-dc"], input=shard.data[offset : offset + size], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(shown, content)
        self.assertTrue("\n".join(" ".join(f"{b:02x}" for b in content[k : k + 16]) for k in range(0, len(content), 16)) in TEXT.read_text())

    def test_the_manifests_example_has_the_digests_of_the_golden_shard(self):
        text = (ROOT / "docs/formats/manifest.md").read_text()
        manifest = json.loads(text.split("```json\n")[1].split("```")[0])
        self.assertEqual(manifest["shards"][0]["digest"], self.shard.file_digest)
        self.assertEqual(manifest["shards"][0]["index_digest"], self.shard.index_digest)
        content = b""
        for r in self.shard.records:
            encoding = read_shard.ENCODINGS.index(r["encoding"])
            content += struct.pack("<I", len(r["key"])) + r["key"] + struct.pack("<qI", r["label"], len(r["metadata"])) + r["metadata"]
            content += struct.pack("<BQ", encoding, read_shard.xxh3(r["raw"]))
        content += struct.pack("<I", len(self.shard.class_names)) + b"".join(struct.pack("<I", len(n)) + n for n in self.shard.class_names)
        self.assertEqual(manifest["dataset_digest"], xxhash.xxh3_128(content).hexdigest())


if __name__ == "__main__":
    unittest.main()
