"""The golden shard as a second reader sees it, and the worked example of the format's text against its bytes."""

import json
import pathlib
import re
import struct
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

    def test_the_second_reader_refuses_every_flipped_byte(self):
        for at in range(len(self.data)):
            bad = bytearray(self.data)
            bad[at] ^= 1
            with self.assertRaises(Exception, msg=f"byte {at}"):
                read_shard.Shard(bytes(bad))

    def test_the_worked_example_is_the_golden_shard(self):
        shown = 0
        for line in TEXT.read_text().splitlines():
            match = re.match(r"^([0-9a-f]{8})  ((?:[0-9a-f]{2} ?)+)", line)
            if match:
                want = bytes.fromhex(match[2])
                at = int(match[1], 16)
                self.assertEqual(self.data[at : at + len(want)], want, line)
                shown += len(want)
        self.assertGreater(shown, 400)

    def test_the_digests_in_the_text_are_those_of_the_golden_shard(self):
        text = TEXT.read_text()
        self.assertIn(self.shard.file_digest, text)
        self.assertIn(self.shard.index_digest, text)

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
