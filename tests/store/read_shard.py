"""A second reader of record shards, written from docs/formats/record_shard.md alone.

    python read_shard.py SHARD      checks everything the text says and prints the records as JSON lines
"""

import ctypes
import ctypes.util
import json
import pathlib
import struct
import sys

import xxhash

MUST_BE_KNOWN = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11}
ENCODINGS = ["unknown", "jpeg", "png", "webp", "bmp", "gif", "tiff", "pnm", "pixels"]
CODECS = ["stored", "zstd", "zstd-dictionary", "zstd-block"]
DICTIONARY_RECORD = 0xFFFFFFFF
MOST_BLOCK_CONTENT = 16 << 20


class Wrong(Exception):
    pass


def need(condition, message):
    if not condition:
        raise Wrong(message)


def xxh3(data):
    return xxhash.xxh3_64(data).intdigest()


def up(n, alignment):
    return -(-n // alignment) * alignment


def inflate(stored, raw_bytes, dictionary):
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    zstd.ZSTD_createDCtx.restype = ctypes.c_void_p
    zstd.ZSTD_decompress_usingDict.restype = ctypes.c_size_t
    zstd.ZSTD_decompress_usingDict.argtypes = [ctypes.c_void_p] + [ctypes.c_char_p, ctypes.c_size_t] * 3
    zstd.ZSTD_freeDCtx.argtypes = [ctypes.c_void_p]
    context = zstd.ZSTD_createDCtx()
    out = ctypes.create_string_buffer(raw_bytes + 1)
    size = zstd.ZSTD_decompress_usingDict(context, out, raw_bytes, stored, len(stored), dictionary, len(dictionary))
    zstd.ZSTD_freeDCtx(context)
    need(size == raw_bytes, "a payload does not decompress")
    return out.raw[:raw_bytes]


def content_size(frame):
    """The size that a zstd frame states: RFC 8878, 3.1.1.1."""
    need(frame[:4] == b"\x28\xb5\x2f\xfd" and len(frame) > 5, "a zstd frame")
    descriptor = frame[4]
    single, code = descriptor >> 5 & 1, descriptor >> 6
    at = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3]
    size = (single, 2, 4, 8)[code]
    need(size > 0 and at + size <= len(frame), "a zstd frame states no size")
    return int.from_bytes(frame[at : at + size], "little") + (256 if size == 2 else 0)


class Shard:
    def __init__(self, data):
        self.data = data
        self.read_header()
        self.read_footer()
        self.read_sections()
        self.check_gaps()
        self.blocks = {}
        self.records = [self.read_record(i) for i in range(self.num_records)]
        self.check_payload_region()
        self.check_lookup()
        self.check_classmates()
        self.class_names = self.read_class_names()

    def unpack(self, layout, at):
        return struct.unpack_from("<" + layout, self.data, at)

    def zero(self, begin, end, what):
        need(not any(self.data[begin:end]), f"{what}: bytes {begin} to {end} are not zero")

    def read_header(self):
        magic, version, size, flags, self.sync_marker = self.unpack("8sHHIQ", 0)
        need(magic == b"\x89SHPK\r\n\x1a", "no shard")
        need((version, size, flags & 0xFFFF) == (1, 64, 0), "version, length or flags of the header")
        self.zero(24, 56, "header")
        need(self.unpack("Q", 56)[0] == xxh3(self.data[:56]), "checksum of the header")

    def read_footer(self):
        at = self.footer = len(self.data) - 128
        magic, version, size, flags = self.unpack("8sHHI", at)
        need(magic == b"\x89SHPKEND" and (version, size, flags & 0xFFFF) == (1, 128, 0), "footer")
        need(self.unpack("Q", at + 120)[0] == xxh3(self.data[at : at + 120]), "checksum of the footer")
        (file_bytes, self.num_records, self.payload_end, self.index, self.block_table, self.section_table) = self.unpack("6Q", at + 16)
        self.num_blocks, self.num_sections = self.unpack("II", at + 64)
        blocks_xxh3, sections_xxh3, sync_marker = self.unpack("3Q", at + 72)
        self.zero(at + 96, at + 120, "footer")
        need(file_bytes == len(self.data) and sync_marker == self.sync_marker, "footer and header")
        need(blocks_xxh3 == xxh3(self.data[self.block_table : self.block_table + 8 * self.num_blocks]), "checksum of the block table")
        need(sections_xxh3 == xxh3(self.data[self.section_table : self.section_table + 48 * self.num_sections]), "checksum of the section table")
        need(self.index % 4096 == 0 and self.block_table % 64 == 0 and self.section_table % 64 == 0, "alignment")
        self.index_digest = xxhash.xxh3_128(self.data[self.block_table :]).hexdigest()
        self.file_digest = xxhash.xxh3_128(self.data).hexdigest()

    def read_sections(self):
        self.sections, self.gaps, blocks, end = {}, [], 0, self.payload_end
        for i in range(self.num_sections):
            entry = self.unpack("IIQQQIIIHH", self.section_table + 48 * i)
            number, flags, offset, size, block, num_blocks, first, column, kind, width = entry
            need(offset % 64 == 0 and offset >= end and offset + size <= self.block_table, f"place of section {number}")
            need(num_blocks == -(-size // block) and first == blocks, f"blocks of section {number}")
            for k in range(num_blocks):
                part = self.data[offset + k * block : offset + min(size, (k + 1) * block)]
                need(self.unpack("Q", self.block_table + 8 * (first + k))[0] == xxh3(part), f"checksum of section {number}, block {k}")
            need(number in MUST_BE_KNOWN or not flags & 1, f"section {number} is not known")
            if number == 2:
                need((kind, width, block) == (1, 8, 8 * 65536), "type of a column")
            self.sections[(number, column)] = self.data[offset : offset + size]
            self.gaps.append((end, offset))
            end, blocks = offset + size, blocks + num_blocks
        need(blocks == self.num_blocks, "number of blocks")
        self.gaps.append((end, self.block_table))

    def check_gaps(self):
        self.gaps += [(self.block_table + 8 * self.num_blocks, self.section_table), (self.section_table + 48 * self.num_sections, self.footer)]
        for begin, end in self.gaps:
            self.zero(begin, end, "padding")

    def column(self, number, i):
        values = self.sections.get((2, number))
        return 0 if values is None else struct.unpack_from("<Q", values, 8 * i)[0]

    def heap_entry(self, column, heap, i):
        position = self.column(column, i)
        if position == 0:
            return b""
        data = self.sections[(heap, 0)]
        (size,) = struct.unpack_from("<I", data, position - 1)
        need(position + 3 + size <= len(data), "an entry leaves its heap")
        return data[position + 3 : position + 3 + size]

    def read_record(self, i):
        row = struct.unpack_from("<QIIqIIBBBBIQQQ", self.sections[(1, 0)], 64 * i)
        offset, stored_bytes, raw_bytes, label, width, height, channels, depth, encoding, codec, flags, stored_xxh3, encoded_xxh3, key_at = row
        key = self.sections[(3, 0)][key_at >> 16 :][: key_at & 0xFFFF]
        need(len(key) == key_at & 0xFFFF and offset % 8 == 0, "a row's ranges")
        stored = self.data[offset : offset + stored_bytes]
        need(xxh3(stored) == stored_xxh3, f"checksum of payload {i}")
        metadata = self.heap_entry(1, 4, i)
        if codec == 3:
            begin, raw = self.read_from_block(i, row, key, metadata)
        else:
            need(self.column(3, i) == 0, f"record {i} is in no block")
            begin = self.read_record_header(offset, (i, stored_bytes, label, stored_xxh3 & 0xFFFFFFFF, encoding, codec), key, metadata)
            dictionary = self.sections[(9, 0)] if codec == 2 else b""
            raw = stored if codec == 0 else inflate(stored, raw_bytes, dictionary)
        need(len(raw) == raw_bytes and xxh3(raw) == encoded_xxh3, f"content of record {i}")
        return {"key": key, "label": label, "width": width, "height": height, "channels": channels, "bit_depth": depth,
                "encoding": ENCODINGS[encoding], "codec": CODECS[codec], "orientation": flags & 15, "raw": raw, "begin": begin,
                "end": offset + stored_bytes, "metadata": metadata, "side_data": self.heap_entry(2, 5, i)}

    def read_record_header(self, offset, fields, key, metadata):
        """Checks the header before the payload at `offset`, with or without metadata, and returns where it begins."""
        plain = 32 + up(len(key), 8)
        for shown in {metadata, b""}:
            size = plain + (up(4 + len(shown), 8) if shown else 0) + 8
            begin = offset - size
            if begin < 64 or self.unpack("Q", offset - 8)[0] != xxh3(self.data[begin : offset - 8]):
                continue
            marker, number, stored_bytes, label, low, key_bytes, encoding, codec = self.unpack("QIIqIHBB", begin)
            need(codec >> 7 == (1 if shown else 0), "flag of the metadata in a record header")
            found = (number, stored_bytes, label, low, encoding, codec & 0x7F)
            need((marker, key_bytes) == (self.sync_marker, len(key)) and found == fields, f"record header at {begin}")
            need(self.data[begin + 32 :][: len(key)] == key, f"key in the record header at {begin}")
            self.zero(begin + 32 + len(key), begin + plain, "record header")
            if shown:
                need(self.data[begin + plain : offset - 8].startswith(struct.pack("<I", len(shown)) + shown), "metadata in a record header")
                self.zero(begin + plain + 4 + len(shown), offset - 8, "record header")
            return begin
        raise Wrong(f"checksum of the record header before {offset}")

    def read_from_block(self, i, row, key, metadata):
        offset, stored_bytes, raw_bytes, label, encoding, stored_xxh3 = row[0], row[1], row[2], row[3], row[8], row[11]
        if offset not in self.blocks:
            begin = self.read_record_header(offset, (i, stored_bytes, 0, stored_xxh3 & 0xFFFFFFFF, 0, 3), b"", b"")
            frame = self.data[offset : offset + stored_bytes]
            size = content_size(frame)
            need(size <= MOST_BLOCK_CONTENT, "size of a block")
            content = inflate(frame, size, b"")
            self.blocks[offset] = (i, begin, stored_bytes, content, self.read_block_table(content))
        first, begin, size, content, table = self.blocks[offset]
        need(size == stored_bytes and i - first < len(table), "rows of one block")
        position = self.column(3, i)
        need(table[i - first] == (raw_bytes, encoding, label, key, metadata, position), f"record {i} in the table of its block")
        return begin, content[position : position + raw_bytes]

    def read_block_table(self, content):
        count, table_bytes = struct.unpack_from("<II", content)
        at, position, table = 8, table_bytes, []
        for _ in range(count):
            raw_bytes, key_bytes, encoding, reserved, label, metadata_bytes = struct.unpack_from("<IHBBqI", content, at)
            need(reserved == 0, "reserved byte in the table of a block")
            key = content[at + 20 : at + 20 + key_bytes]
            metadata = content[at + 20 + key_bytes :][:metadata_bytes]
            table.append((raw_bytes, encoding, label, key, metadata, position))
            at += 20 + key_bytes + metadata_bytes
            position += raw_bytes
        need(count > 0 and at == table_bytes and position == len(content), "table of a block")
        return table

    def dictionary_copy(self):
        """Checks the copy of the dictionary before record 0, and returns where record 0 begins."""
        dictionary = self.sections.get((9, 0))
        if dictionary is None or self.payload_end == 64 or self.unpack("I", 72)[0] != DICTIONARY_RECORD:
            return 64
        fields = (DICTIONARY_RECORD, len(dictionary), 0, xxh3(dictionary) & 0xFFFFFFFF, 0, 0)
        need(self.read_record_header(104, fields, b"", b"") == 64, "header of the copy of the dictionary")
        end = 104 + len(dictionary)
        need(self.data[104:end] == dictionary, "copy of the dictionary")
        self.zero(end, up(end, 8), "padding of the copy of the dictionary")
        return up(end, 8)

    def check_payload_region(self):
        end, before = self.dictionary_copy(), None
        for record in self.records:
            if record["codec"] == "zstd-block" and record["begin"] == before:
                continue  # in the block of the record before
            need(record["begin"] == end, "records follow one another")
            before, end = record["begin"], up(record["end"], 8)
            self.zero(record["end"], end, "padding of a payload")
        need(end == self.payload_end, "end of the payloads")
        for first, _, _, _, table in self.blocks.values():
            begins = [r["begin"] for r in self.records]
            need(begins.count(begins[first]) == len(table), "number of records of a block")

    def check_lookup(self):
        want = sorted((xxh3(r["key"]), i, 0) for i, r in enumerate(self.records))
        need(list(struct.iter_unpack("<QII", self.sections[(6, 0)])) == want, "key lookup")

    def check_classmates(self):
        order = sorted(range(self.num_records), key=lambda i: (self.records[i]["label"], i))
        need([i for (i,) in struct.iter_unpack("<I", self.sections[(8, 0)])] == order, "classmates")
        labels = sorted({r["label"] for r in self.records})
        counts = [sum(r["label"] == label for r in self.records) for label in labels]
        want = [(label, sum(counts[:k]), counts[k]) for k, label in enumerate(labels)]
        need(list(struct.iter_unpack("<qQQ", self.sections[(7, 0)])) == want, "labels")

    def read_class_names(self):
        data = self.sections.get((11, 0))
        if data is None:
            return []
        (count,), at, names = struct.unpack_from("<I", data), 4, []
        for _ in range(count):
            (size,) = struct.unpack_from("<I", data, at)
            names.append(data[at + 4 : at + 4 + size])
            at += 4 + size
        need(at == len(data), "class names")
        return names


def main():
    shard = Shard(pathlib.Path(sys.argv[1]).read_bytes())
    for record in shard.records:
        shown = {k: v.hex() if k == "raw" else repr(v)[2:-1] if isinstance(v, bytes) else v for k, v in record.items()}
        print(json.dumps(shown))
    print(json.dumps({"file_digest": shard.file_digest, "index_digest": shard.index_digest, "class_names": [repr(n)[2:-1] for n in shard.class_names]}))


if __name__ == "__main__":
    main()
