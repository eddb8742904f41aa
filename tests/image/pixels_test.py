#!/usr/bin/env python3
"""Compares libshard/image with Pillow:  pixels_test.py IMAGE_PROBE [unittest's options]

Every input is made here, by Pillow or byte by byte; image_probe.cc tells how the library is asked.
"""

import base64
import io
import random
import struct
import subprocess
import sys
import unittest
import zlib

try:
    import numpy as np
    import PIL
    from PIL import Image, ImageOps
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PROBE = None


class Library:
    """A running image_probe."""

    def __init__(self):
        self.process = subprocess.Popen([PROBE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request, body):
        """(True, bytes) or (False, message)."""
        self.process.stdin.write(request + struct.pack("<I", len(body)) + body)
        self.process.stdin.flush()
        head = self.process.stdout.read(5)
        if len(head) != 5:
            raise AssertionError(f"image_probe ended with {self.process.wait()}")
        answer = self.process.stdout.read(struct.unpack("<I", head[1:])[0])
        return (True, answer) if head[:1] == b"k" else (False, answer.decode())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def pixels_of(answer):
    width, height = struct.unpack("<II", answer[:8])
    return np.frombuffer(answer, np.uint8, offset=8).reshape(height, width, 3)


def picture(width, height, seed=0):
    """Slopes, edges and grain, so that a wrong row, channel or rounding shows."""
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(seed).integers(0, 40, (height, width, 3))
    base = np.stack([x * 255 // max(width, 1), y * 255 // max(height, 1), ((x // 7 + y // 5) % 2) * 180], axis=2)
    return np.clip(base + noise - 20, 0, 255).astype(np.uint8)


def saved(array, kind, mode=None, **options):
    image = Image.fromarray(array)
    if mode:
        image = image.convert(mode)
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def by_pillow(data):
    """Upright 8-bit RGB as Pillow has it; 16-bit samples by their high byte."""
    image = Image.open(io.BytesIO(data))
    image.load()
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        high = (np.asarray(image).astype(np.int64) >> 8).astype(np.uint8)
        return np.repeat(high[..., None], 3, axis=2)
    return np.asarray(image.convert("RGB"))


def exif(orientation, big_endian=False, long_value=False):
    order = ">" if big_endian else "<"
    kind, value = (4, struct.pack(order + "I", orientation)) if long_value else (
        3, struct.pack(order + "HH", orientation, 0))
    tiff = (b"MM" if big_endian else b"II") + struct.pack(order + "HIH", 42, 8, 1)
    return tiff + struct.pack(order + "HHI", 0x0112, kind, 1) + value + struct.pack(order + "I", 0)


def upright(stored, orientation):
    """What EXIF's eight orientations mean, by numpy."""
    return {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
        8: lambda a: np.rot90(a, 1),
    }[orientation](stored)


def with_segment(jpeg, marker, body):
    return jpeg[:2] + bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def without_segments(jpeg, marker):
    out, at = jpeg[:2], 2
    while jpeg[at + 1] != 0xDA:
        size = 2 + struct.unpack(">H", jpeg[at + 2 : at + 4])[0]
        if jpeg[at + 1] != marker:
            out += jpeg[at : at + size]
        at += size
    return out + jpeg[at:]


PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def packed_rows(samples, depth):
    """samples [H, W, C] -> the bytes of each row."""
    rows = []
    for row in samples.reshape(samples.shape[0], -1):
        if depth == 16:
            rows.append(row.astype(">u2").tobytes())
        else:
            bits = (row[:, None].astype(np.uint8) >> np.arange(depth - 1, -1, -1)) & 1
            rows.append(np.packbits(bits.reshape(-1)).tobytes())
    return rows


def png_of(samples, depth, colour_type, before=(), after=(), interlaced=False):
    height, width = samples.shape[:2]
    passes = [samples]
    if interlaced:
        steps = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
        passes = [samples[y::dy, x::dx] for y, x, dy, dx in steps]
    raw = b"".join(b"\0" + row for p in passes if p.size for row in packed_rows(p, depth))
    head = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, int(interlaced))
    parts = [PNG_SIGNATURE, chunk(b"IHDR", head)] + [chunk(*c) for c in before]
    parts += [chunk(b"IDAT", zlib.compress(raw))] + [chunk(*c) for c in after] + [chunk(b"IEND", b"")]
    return b"".join(parts)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = Library()

    @classmethod
    def tearDownClass(cls):
        cls.library.close()

    def decoded(self, data):
        good, answer = self.library.ask(b"D", data)
        self.assertTrue(good, answer)
        return pixels_of(answer)

    def refused(self, data, word=""):
        for request in (b"D", b"P") if word != "decode" else (b"D",):
            good, answer = self.library.ask(request, data)
            self.assertFalse(good, f"{request} accepted it")
        if word != "decode":
            self.assertIn(word, answer)
        return answer

    def probed(self, data):
        good, answer = self.library.ask(b"P", data)
        self.assertTrue(good, answer)
        return dict(zip(("encoding", "width", "height", "channels", "depth", "orientation"),
                        struct.unpack("<6I", answer)))

    def same(self, data, want=None, within=0, label=None):
        want = by_pillow(data) if want is None else want
        got = self.decoded(data)
        self.assertEqual(got.shape, want.shape, label)
        far = int(np.abs(got.astype(int) - want.astype(int)).max())
        self.assertLessEqual(far, within, label)
        info = self.probed(data)
        self.assertEqual((info["height"], info["width"]), want.shape[:2], label)

    def never_whole_when_cut(self, data, up_to=None, step=1):
        up_to = len(data) if up_to is None else up_to
        for size in list(range(0, up_to, step)) + [up_to - 1]:
            good, _ = self.library.ask(b"D", data[:size])
            self.assertFalse(good, f"the first {size} of {len(data)} bytes were taken for the whole")

    def survives_flips(self, data, rounds=150, seed=0):
        """Damage is refused or gives a picture; it never ends the process (a closed pipe would fail in ask())."""
        rng = random.Random(seed)
        for _ in range(rounds):
            bent = bytearray(data)
            for _ in range(rng.choice([1, 1, 2, 8])):
                bent[rng.randrange(len(bent))] = rng.randrange(256)
            self.library.ask(b"D", bytes(bent))
            self.library.ask(b"P", bytes(bent))
            self.library.ask(b"S", struct.pack("<II", 9, rng.randrange(9, 30)) + bytes(bent))


class Jpeg(Case):
    def test_every_subsampling_size_and_quality_equals_pillow(self):
        for width, height in [(1, 1), (1, 9), (9, 1), (8, 8), (16, 16), (17, 15), (33, 31), (97, 71), (250, 130)]:
            for subsampling in ("4:4:4", "4:2:2", "4:2:0", "4:1:1"):
                for quality in (5, 75, 98):
                    for progressive in (False, True):
                        data = saved(picture(width, height), "JPEG", quality=quality, subsampling=subsampling,
                                     progressive=progressive, optimize=quality == 98)
                        self.same(data, label=(width, height, subsampling, quality, progressive))

    def test_grey_is_copied_to_three_channels(self):
        data = saved(picture(45, 33), "JPEG", "L")
        self.same(data)
        self.assertEqual(self.probed(data)["channels"], 1)

    def test_restart_markers_change_nothing(self):
        for blocks in (1, 2, 5):
            self.same(saved(picture(70, 50), "JPEG", restart_marker_blocks=blocks))

    def test_rgb_jpegs_are_known_by_adobe_marker_and_by_component_names(self):
        data = saved(picture(40, 24), "JPEG", keep_rgb=True, quality=95)
        self.same(data)
        self.same(without_segments(data, 0xEE))
        ycbcr = without_segments(saved(picture(40, 24), "JPEG"), 0xE0)  # names 1, 2, 3
        self.same(ycbcr)

    def test_adobe_transform_0_means_rgb_unless_there_is_a_jfif_marker(self):
        adobe = b"Adobe\0\x64\0\0\0\0\0"
        plain = without_segments(saved(picture(40, 24), "JPEG"), 0xE0)
        self.same(with_segment(plain, 0xEE, adobe))
        jfif_first = saved(picture(40, 24), "JPEG")
        at = 2 + 2 + struct.unpack(">H", jfif_first[4:6])[0]
        both = jfif_first[:at] + b"\xff\xee" + struct.pack(">H", len(adobe) + 2) + adobe + jfif_first[at:]
        self.same(both, by_pillow(jfif_first))

    def test_inverted_inks_equal_pillow(self):
        for size in [(48, 36), (37, 41), (1, 1)]:
            inks = np.dstack([picture(*size, 1), picture(*size, 2)[..., :1]])
            out = io.BytesIO()
            Image.frombytes("CMYK", size, inks.tobytes()).save(out, "JPEG", quality=95)
            data = out.getvalue()
            self.same(data)
            self.assertEqual(self.probed(data)["channels"], 4)
            at = data.index(b"Adobe") + 11
            ycck = data[:at] + b"\2" + data[at + 1 :]
            self.same(ycck)

    def test_inks_without_adobe_marker_are_not_inverted(self):
        inks = np.dstack([picture(48, 36, 1), picture(48, 36, 2)[..., :1]])
        out = io.BytesIO()
        Image.frombytes("CMYK", (48, 36), inks.tobytes()).save(out, "JPEG", quality=95)
        data = without_segments(out.getvalue(), 0xEE)
        # Pillow inverts every four-component JPEG: undo it.
        stored = 255 - np.asarray(Image.open(io.BytesIO(data))).astype(np.uint8)
        want = np.asarray(Image.frombytes("CMYK", (48, 36), stored.tobytes()).convert("RGB"))
        self.same(data, want)

    def test_all_orientations_in_both_byte_orders_and_types(self):
        data = saved(picture(48, 32), "JPEG")
        stored = by_pillow(data)
        for orientation in range(1, 9):
            for big_endian in (False, True):
                for long_value in (False, True):
                    body = b"Exif\0\0" + exif(orientation, big_endian, long_value)
                    turned = with_segment(data, 0xE1, body)
                    self.same(turned, upright(stored, orientation), label=(orientation, big_endian, long_value))
                    self.assertEqual(self.probed(turned)["orientation"], orientation)

    def test_an_orientation_out_of_range_or_in_broken_exif_counts_as_upright(self):
        data = saved(picture(48, 32), "JPEG")
        bodies = [exif(0), exif(9), exif(65535), exif(6)[:-7], exif(6)[:9], b"II*\0\xff\xff\xff\xff", b"XX" + exif(6)[2:], b""]
        for body in bodies:
            self.same(with_segment(data, 0xE1, b"Exif\0\0" + body), by_pillow(data), label=body)

    def test_rows_of_a_picture_equal_those_of_the_whole(self):
        rng = random.Random(5)
        for size in [(61, 83), (1, 40), (250, 131), (33, 200), (40, 40)]:
            for subsampling in ("4:4:4", "4:2:2", "4:2:0", "4:1:1", "grey"):
                for options in ({}, {"progressive": True}, {"restart_marker_blocks": 2}):
                    mode = "L" if subsampling == "grey" else None
                    data = saved(picture(*size), "JPEG", mode, **options, subsampling=0 if mode else subsampling)
                    want = by_pillow(data)
                    ranges = [(0, 1), (0, 17), (size[1] - 1, size[1]), (0, size[1]), (0, 1000)]
                    for first in (rng.randrange(size[1]) for _ in range(6)):
                        ranges.append((first, rng.randint(first, size[1])))
                    for first, end in ranges:
                        good, answer = self.library.ask(b"S", struct.pack("<II", first, end) + data)
                        self.assertTrue(good, answer)
                        where = (size, subsampling, options, first, end)
                        self.assertTrue((pixels_of(answer)[first:end] == want[first:end]).all(), where)

    def test_rows_of_a_turned_picture_are_those_of_the_upright_one(self):
        data = saved(picture(61, 83), "JPEG")
        want = by_pillow(data)
        for orientation in range(2, 9):
            turned = with_segment(data, 0xE1, b"Exif\0\0" + exif(orientation))
            good, answer = self.library.ask(b"S", struct.pack("<II", 3, 9) + turned)
            self.assertTrue((pixels_of(answer)[3:9] == upright(want, orientation)[3:9]).all(), orientation)

    def test_a_cut_file_is_truncated_at_every_length(self):
        for options in ({}, {"progressive": True}, {"restart_marker_blocks": 2}):
            data = saved(picture(40, 32), "JPEG", quality=60, **options)
            self.never_whole_when_cut(data)
            self.assertIn("truncated", self.library.ask(b"D", data[:-1])[1])
            self.assertIn("truncated", self.library.ask(b"D", data[: len(data) * 3 // 4])[1])

    def test_a_cut_file_with_an_end_marker_glued_on_is_corrupt(self):
        data = saved(picture(64, 64), "JPEG")
        good, answer = self.library.ask(b"D", data[: len(data) // 2] + b"\xff\xd9")
        self.assertFalse(good)
        self.assertIn("corrupt", answer)

    def test_stray_bytes_before_markers_and_after_the_end_are_allowed(self):
        data = saved(picture(40, 32), "JPEG")
        self.same(data + b"anything \xff\xd8\xff")
        at = data.index(b"\xff\xdb")
        self.same(data[:at] + b"stray" + data[at:], by_pillow(data))
        self.same(data[:-2] + b"\0\0" + data[-2:], by_pillow(data))

    def test_more_than_8_bits_and_unknown_processes_are_refused_by_name(self):
        data = bytearray(saved(picture(40, 32), "JPEG"))
        at = data.index(b"\xff\xc0")
        deep = bytearray(data)
        deep[at + 4] = 12
        self.refused(bytes(deep), "12 bits a sample are not supported")
        lossless = bytearray(data)
        lossless[at + 1] = 0xC3
        self.refused(bytes(lossless), "process 3 is not supported")
        two = bytearray(data)
        two[at + 9] = 2
        self.refused(bytes(two))
        flat = bytearray(data)
        flat[at + 5 : at + 7] = b"\0\0"
        self.refused(bytes(flat), "40x0")

    def test_a_small_file_with_a_large_size_is_refused_from_its_header(self):
        data = bytearray(saved(picture(40, 32), "JPEG"))
        at = data.index(b"\xff\xc0")
        data[at + 5 : at + 9] = struct.pack(">HH", 65000, 65000)
        self.refused(bytes(data))
        data[at + 5 : at + 9] = struct.pack(">HH", 8000, 8000)
        self.refused(bytes(data), "cannot hold")

    def test_a_progressive_file_of_endless_scans_is_refused(self):
        data = saved(picture(64, 64), "JPEG", "L", progressive=True)
        at = data.rindex(b"\xff\xda")
        last_scan = data[at:-2]
        good, _ = self.library.ask(b"D", data[:at] + last_scan * 3000 + data[-2:])
        self.assertFalse(good)

    def test_tables_of_the_picture_before_are_not_used(self):
        optimised = saved(picture(64, 64, 1), "JPEG", quality=30, optimize=True)
        plain = saved(picture(64, 64), "JPEG")
        for _ in range(70):
            self.decoded(optimised)
            self.same(without_segments(plain, 0xC4))  # as in Motion JPEG: the standard ones are meant
            self.refused(without_segments(plain, 0xDB), "decode")

    def test_arithmetic_coding_is_decoded(self):
        want = Image.open(io.BytesIO(base64.b64decode(HUFFMAN_TWIN)))
        for data in (ARITHMETIC, ARITHMETIC_PROGRESSIVE):
            self.same(base64.b64decode(data), np.asarray(want.convert("RGB")))
            self.never_whole_when_cut(base64.b64decode(data), step=3)

    def test_random_damage_never_ends_the_process(self):
        for i, options in enumerate(({}, {"progressive": True}, {"restart_marker_blocks": 1, "subsampling": "4:2:0"})):
            self.survives_flips(saved(picture(50, 40), "JPEG", **options), seed=i)
        self.survives_flips(base64.b64decode(ARITHMETIC), seed=9)
        self.survives_flips(with_segment(saved(picture(20, 20), "JPEG"), 0xE1, b"Exif\0\0" + exif(6))[:160], seed=10)


class Png(Case):
    def test_every_colour_type_depth_and_interlacing(self):
        rng = np.random.default_rng(3)
        kinds = [(0, 1, d) for d in (1, 2, 4, 8, 16)] + [(2, 3, d) for d in (8, 16)]
        kinds += [(3, 1, d) for d in (1, 2, 4, 8)] + [(4, 2, d) for d in (8, 16)] + [(6, 4, d) for d in (8, 16)]
        for colour_type, channels, depth in kinds:
            for width, height in [(1, 1), (5, 3), (8, 8), (33, 17)]:
                samples = rng.integers(0, 1 << depth, (height, width, channels))
                palette = rng.integers(0, 256, (1 << min(depth, 8), 3), np.uint8)
                before = [(b"PLTE", palette.tobytes())] if colour_type == 3 else []
                if colour_type == 3:
                    want = palette[samples[..., 0]]
                else:
                    top = (1 << depth) - 1
                    eight = samples >> 8 if depth == 16 else samples * 255 // top
                    colour = eight[..., :3] if channels >= 3 else np.repeat(eight[..., :1], 3, axis=2)
                    want = colour.astype(np.uint8)
                for interlaced in (False, True):
                    data = png_of(samples, depth, colour_type, before, interlaced=interlaced)
                    self.same(data, want, label=(colour_type, depth, width, height, interlaced))
                    self.assertEqual(self.probed(data)["depth"], depth)

    def test_transparency_is_dropped_and_colours_under_it_stay(self):
        rgb = picture(20, 14)
        rgba = np.dstack([rgb, np.tile(np.array([0, 255, 40, 200], np.uint8), (14, 5))])
        self.same(png_of(rgba, 8, 6), rgb)
        self.same(png_of(rgb, 8, 2, [(b"tRNS", struct.pack(">HHH", *(int(v) for v in rgb[0, 0])))]), rgb)
        index = np.indices((14, 20)).sum(0)[..., None] % 4
        palette = np.array([[9, 8, 7], [200, 0, 0], [0, 201, 3], [4, 5, 202]], np.uint8)
        chunks = [(b"PLTE", palette.tobytes()), (b"tRNS", bytes([0, 255, 10]))]
        self.same(png_of(index, 8, 3, chunks), palette[index[..., 0]])

    def test_gamma_profiles_and_broken_metadata_change_nothing(self):
        rgb = picture(20, 14)
        chunks = [(b"gAMA", struct.pack(">I", 20000)), (b"iCCP", b"x\0\0" + zlib.compress(b"no profile" * 9)),
                  (b"zTXt", b"k\0\0" + b"not zlib"), (b"sRGB", b"\x09")]
        self.same(png_of(rgb, 8, 2, chunks), rgb)
        bomb = (b"zTXt", b"k\0\0" + zlib.compress(bytes(200 << 20), 9))
        self.same(png_of(rgb, 8, 2, [bomb]), rgb)

    def test_exif_before_and_after_the_pixels(self):
        rgb = picture(20, 14)
        for orientation in range(1, 9):
            for where in ({"before": [(b"eXIf", exif(orientation, True))]}, {"after": [(b"eXIf", exif(orientation))]}):
                data = png_of(rgb, 8, 2, **where)
                self.same(data, upright(rgb, orientation), label=(orientation, where))
        self.same(png_of(rgb, 8, 2, [(b"eXIf", exif(77))]), rgb)
        spoilt = bytearray(png_of(rgb, 8, 2, [(b"eXIf", exif(6))]))
        spoilt[spoilt.index(b"eXIf") + 5] ^= 1  # its checksum fails: not obeyed
        self.same(bytes(spoilt), rgb)

    def test_a_cut_file_is_truncated_at_every_length(self):
        data = png_of(picture(20, 14), 8, 2)
        self.never_whole_when_cut(data)
        self.assertIn("truncated", self.library.ask(b"D", data[:-5])[1])
        self.same(data + b"anything")

    def test_short_pixel_data_and_wrong_checksums_are_errors(self):
        rgb = picture(20, 14)
        whole = png_of(rgb, 8, 2)
        head = whole[: whole.index(b"IDAT") - 4]
        raw = b"".join(b"\0" + row for row in packed_rows(rgb, 8))
        end = chunk(b"IEND", b"")
        for body in (zlib.compress(raw[:-61]), zlib.compress(raw)[:-9], b"", zlib.compress(raw)[:-1] + b"\0"):
            good, answer = self.library.ask(b"D", head + chunk(b"IDAT", body) + end)
            self.assertFalse(good, len(body))
        flipped = bytearray(whole)
        flipped[whole.index(b"IDAT") + 30] ^= 4
        self.assertFalse(self.library.ask(b"D", bytes(flipped))[0])
        self.same(head + chunk(b"IDAT", zlib.compress(raw + bytes(50))) + end, rgb)  # too much is harmless

    def test_every_flipped_bit_of_the_pixel_data_is_noticed(self):
        data = png_of(picture(6, 5), 8, 2)
        start, end = data.index(b"IDAT"), data.index(b"IEND") - 4
        for at in range(start, end):
            for bit in range(8):
                bent = bytearray(data)
                bent[at] ^= 1 << bit
                self.assertFalse(self.library.ask(b"D", bytes(bent))[0], (at, bit))

    def test_a_picture_over_the_limit_is_refused_from_its_header(self):
        head = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
        bomb = PNG_SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")
        self.refused(bomb, "60000x60000 = 3600000000 pixels are over the limit of 536870912")
        head = struct.pack(">IIBBBBB", 20000, 20000, 8, 2, 0, 0, 0)
        small = PNG_SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")
        self.refused(small, "truncated: 69 bytes cannot hold 20000x20000 pixels")

    def test_random_damage_never_ends_the_process(self):
        self.survives_flips(png_of(picture(20, 14), 8, 2, [(b"eXIf", exif(6))]))
        self.survives_flips(png_of(picture(20, 14)[..., :1] >> 4, 4, 3, [(b"PLTE", bytes(48))], interlaced=True))


class Webp(Case):
    def test_lossy_lossless_and_alpha_equal_pillow(self):
        for size in [(1, 1), (16, 16), (61, 37)]:
            rgb = picture(*size)
            rgba = np.dstack([rgb, picture(*size, 5)[..., 0]])
            self.same(saved(rgb, "WEBP", quality=70))
            self.same(saved(rgb, "WEBP", lossless=True), rgb)
            self.same(saved(rgba, "WEBP", quality=70, alpha_quality=80))
            self.same(saved(rgba, "WEBP", lossless=True, exact=True), rgb)

    def test_the_first_frame_of_an_animation(self):
        frames = [Image.fromarray(picture(33, 21, i)) for i in range(3)]
        out = io.BytesIO()
        frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
        self.same(out.getvalue(), picture(33, 21, 0))

    def test_orientation_is_obeyed(self):
        rgb = picture(33, 21)
        for orientation in range(1, 9):
            for prefix in (b"", b"Exif\0\0"):
                data = saved(rgb, "WEBP", lossless=True, exif=prefix + exif(orientation))
                self.same(data, upright(rgb, orientation), label=orientation)

    def test_a_cut_file_is_truncated_at_every_length(self):
        for options in ({"quality": 60}, {"lossless": True}, {"lossless": True, "exif": exif(1)}):
            data = saved(picture(33, 21), "WEBP", **options)
            self.never_whole_when_cut(data)
            self.refused(data[:-1], "truncated")
        self.same(data + b"anything")

    def test_random_damage_never_ends_the_process(self):
        self.survives_flips(saved(picture(33, 21), "WEBP", quality=60, exif=exif(3)))
        self.survives_flips(saved(np.dstack([picture(33, 21), picture(33, 21)[..., 0]]), "WEBP", lossless=True))


def bmp(width, height, bits, rows, colours=b"", compression=0, header_bytes=40, masks=b""):
    """BMP from ready-packed rows; a negative height writes them from the top."""
    info = struct.pack("<IiiHHIIiiII", header_bytes, width, height, 1, bits, compression, len(rows), 0, 0, len(colours) // 4, 0)
    if header_bytes == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    offset = 14 + len(info) + len(masks) + len(colours)
    return b"BM" + struct.pack("<IHHI", offset + len(rows), 0, 0, offset) + info + masks + colours + rows


class Bmp(Case):
    def test_what_pillow_writes_comes_back(self):
        for size in [(1, 1), (7, 5), (32, 9)]:
            for mode in ("1", "L", "P", "RGB", "RGBA"):
                data = saved(picture(*size), "BMP", mode)
                self.same(data, label=(size, mode))
                self.never_whole_when_cut(data)

    def test_rows_from_the_top_and_old_headers(self):
        rgb = picture(6, 5)
        bgr = b"".join(row[:, ::-1].tobytes() + bytes(2) for row in rgb)
        self.same(bmp(6, -5, 24, bgr), rgb)
        self.same(bmp(6, 5, 24, bgr, header_bytes=12), rgb[::-1])

    def test_16_bits_a_pixel(self):
        values = np.random.default_rng(1).integers(0, 1 << 15, (4, 6)).astype("<u2")
        self.same(bmp(6, 4, 16, values.tobytes()))
        masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F)
        self.same(bmp(6, 4, 16, values.tobytes(), compression=3, masks=masks))

    def test_run_lengths(self):
        colours = bytes([0, 0, 250, 0, 0, 240, 0, 0, 230, 9, 9, 0, 5, 6, 7, 0])
        runs = bytes([4, 1, 2, 2, 0, 0, 0, 6, 0, 1, 2, 3, 2, 1, 0, 0, 1, 3, 5, 0, 0, 1])
        data = bmp(6, 3, 8, runs, colours, compression=1)
        self.same(data)
        self.never_whole_when_cut(data)

    def test_random_damage_never_ends_the_process(self):
        for mode in ("1", "P", "RGB"):
            self.survives_flips(saved(picture(12, 9), "BMP", mode))


class Gif(Case):
    def test_still_interlaced_and_animated(self):
        for size in [(1, 1), (7, 5), (61, 37)]:
            for interlace in (0, 1):
                self.same(saved(picture(*size), "GIF", interlace=interlace))
        frames = [Image.fromarray(picture(33, 21, i)) for i in range(3)]
        out = io.BytesIO()
        frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
        self.same(out.getvalue())

    def test_a_frame_smaller_than_its_canvas(self):
        inner = saved(picture(9, 7), "GIF")
        at = inner.index(b"\x2c\0\0\0\0")
        for x, y in [(3, 2), (0, 0), (10, 11)]:  # the last one leaves the screen, which grows
            moved = bytearray(inner)
            moved[6:10] = struct.pack("<HH", 16, 12)
            moved[at + 1 : at + 5] = struct.pack("<HH", x, y)
            self.same(bytes(moved), label=(x, y))
            control = b"\x21\xf9\x04\x01\0\0\x05\0"
            self.same(bytes(moved[:at] + control + moved[at:]), label=(x, y, "transparent"))

    def test_a_cut_file_is_truncated_at_every_length(self):
        data = saved(picture(20, 14), "GIF")
        self.never_whole_when_cut(data)
        self.refused(data[:-1], "truncated")

    def test_too_few_codes_are_an_error(self):
        data = saved(picture(20, 14), "GIF")
        at = data.index(b"\x2c\0\0\0\0")
        short = data[: at + 11] + bytes([20]) + data[at + 12 : at + 32] + b"\0;"
        self.assertFalse(self.library.ask(b"D", short)[0])

    def test_random_damage_never_ends_the_process(self):
        self.survives_flips(saved(picture(20, 14), "GIF"))


class Tiff(Case):
    def test_compressions_and_modes(self):
        for mode in ("1", "L", "P", "RGB", "RGBA", "CMYK"):
            for compression in ("raw", "tiff_lzw", "tiff_deflate", "packbits"):
                data = saved(picture(33, 21), "TIFF", mode, compression=compression)
                want = picture(33, 21) if mode == "RGBA" else None
                # A TIFF palette has 16 bits, which are rounded where Pillow takes the high byte.
                self.same(data, want, within=1 if mode in ("CMYK", "P") else 0, label=(mode, compression))

    def test_fax_and_jpeg_inside(self):
        self.same(saved(picture(33, 21), "TIFF", "1", compression="group4"))
        self.same(saved(picture(33, 21), "TIFF", compression="jpeg"), within=2)

    def test_16_bits_are_scaled(self):
        deep = picture(33, 21)[..., 1].astype(np.uint16) * 256 + 77
        want = ((deep.astype(int) * 255 + 32767) // 65535).astype(np.uint8)
        self.same(saved(deep, "TIFF"), np.repeat(want[..., None], 3, axis=2))

    def test_orientation_tag(self):
        rgb = picture(33, 21)
        for orientation in range(1, 9):
            for compression in ("raw", "jpeg"):
                data = saved(rgb, "TIFF", tiffinfo={274: orientation}, compression=compression)
                want = upright(rgb, orientation)
                self.same(data, want if compression == "raw" else None, 0 if compression == "raw" else 2,
                          (orientation, compression))

    def test_a_cut_file_is_refused_at_every_length(self):
        for compression in ("raw", "tiff_lzw"):
            data = saved(picture(20, 14), "TIFF", compression=compression)
            self.never_whole_when_cut(data)

    def test_what_is_not_supported_is_said(self):
        self.refused(saved(picture(9, 9)[..., 0].astype(np.float32), "TIFF"), "not supported")
        self.refused(b"II+\0\x08\0\0\0" + bytes(40), "BigTIFF")

    def test_random_damage_never_ends_the_process(self):
        for compression in ("raw", "tiff_lzw", "jpeg", "packbits"):
            self.survives_flips(saved(picture(20, 14), "TIFF", compression=compression))


class Pnm(Case):
    def test_binary_and_text(self):
        rgb = picture(13, 7)
        grey, bits = rgb[..., 1], rgb[..., 1] > 120
        self.same(saved(rgb, "PPM"), rgb)
        self.same(saved(grey, "PPM"), np.repeat(grey[..., None], 3, axis=2))
        self.same(saved(rgb, "PPM", "1"))
        text = b" ".join(str(int(v)).encode() for v in rgb.reshape(-1))
        self.same(b"P3 #note\n13 # and another\n7\n255\n" + text + b"\n", rgb)
        text = b"\n".join(str(int(v)).encode() for v in grey.reshape(-1))
        self.same(b"P2\n13 7 255\n" + text, np.repeat(grey[..., None], 3, axis=2))
        text = b"".join(b"01"[int(v) :][:1] for v in bits.reshape(-1))
        self.same(b"P1\n13 7\n" + text, np.repeat((~bits * 255).astype(np.uint8)[..., None], 3, axis=2))

    def test_other_maxima_are_scaled(self):
        values = np.random.default_rng(2).integers(0, 1024, (7, 13, 3))
        want = np.floor(values * 255 / 1023 + 0.5).astype(np.uint8)
        self.same(b"P6 13 7 1023\n" + values.astype(">u2").tobytes(), want)
        values = np.random.default_rng(2).integers(0, 8, (7, 13, 3))
        want = np.floor(values * 255 / 7 + 0.5).astype(np.uint8)
        self.same(b"P6 13 7 7\n" + values.astype(np.uint8).tobytes(), want)
        self.same(b"P6 13 7 7\n" + values.astype(np.uint8).tobytes())

    def test_a_cut_file_is_truncated_at_every_length(self):
        for mode in ("RGB", "L", "1"):
            data = saved(picture(13, 7), "PPM", mode)
            self.never_whole_when_cut(data)
            self.refused(data[:-1], "truncated")
        text = b"P3\n3 1\n255\n1 2 3 40 50 60 7 8 9"
        self.never_whole_when_cut(text)  # each number here is needed

    def test_random_damage_never_ends_the_process(self):
        self.survives_flips(saved(picture(13, 7), "PPM"))
        self.survives_flips(b"P3 2 2 255 " + b"12 " * 12)


class Other(Case):
    def test_no_bytes_and_no_image_are_said(self):
        self.refused(b"", "empty file (0 bytes)")
        for data in (b"\0", b"<!DOCTYPE html>", b"BMW is a maker of cars, not a picture", b"P9 1 1 1 ", bytes(100)):
            self.refused(data, "not an image of a known format")

    def test_pictures_are_written_as_png_and_ppm(self):
        for size in [(1, 1), (31, 17)]:
            rgb = picture(*size)
            body = struct.pack("<II", *size) + rgb.tobytes()
            for request, kind in ((b"E", "PNG"), (b"e", "PPM")):
                good, data = self.library.ask(request, body)
                self.assertTrue(good)
                image = Image.open(io.BytesIO(data))
                self.assertEqual((image.format, image.mode), (kind, "RGB"))
                self.assertTrue((np.asarray(image) == rgb).all())


def runs_vertical_pass_first(size, new_size):
    """Pillow 13's rule, for the releases before it."""
    lost_width, lost_height = size[0] - new_size[0], size[1] - new_size[1]
    return lost_height > 0 and lost_height > 2 * lost_width


def resized_by_pillow(image, size):
    if int(PIL.__version__.split(".")[0]) >= 13:
        return np.asarray(image.resize(size, Image.BILINEAR))
    return in_two_steps(image, size, runs_vertical_pass_first(image.size, size))


def in_two_steps(image, size, vertical_first):
    between = (image.width, size[1]) if vertical_first else (size[0], image.height)
    return np.asarray(image.resize(between, Image.BILINEAR).resize(size, Image.BILINEAR))


class Resize(Case):
    """With Resizer and with ResizeReference."""

    def resized(self, request, image, size, window):
        head = struct.pack("<8I", *image.size, *size, *window)
        good, answer = self.library.ask(request, head + image.tobytes())
        self.assertTrue(good, answer)
        return np.frombuffer(answer, np.uint8).reshape(window[3], window[2], 3)

    def check(self, image, size, window=None):
        x, y, w, h = window = window or (0, 0, *size)
        want = resized_by_pillow(image, size)[y : y + h, x : x + w]
        for request in (b"R", b"r"):
            got = self.resized(request, image, size, window)
            self.assertTrue((got == want).all(), (image.size, size, window, request))

    def test_random_sizes_and_windows_equal_pillow(self):
        rng = random.Random(1)
        sizes = [1, 2, 3, 4, 5, 8, 17, 31, 64, 100, 224, 301]
        for i in range(500):
            sw, sh, w, h = (rng.choice(sizes) for _ in range(4))
            array = grain(sw, sh, i)
            if i % 3 == 0:
                array = (array > 127).astype(np.uint8) * 255  # the ends of the range, where clipping happens
            self.check(Image.fromarray(array), (w, h), random_window(rng, w, h))

    def test_both_sides_of_the_border_between_the_orders_equal_pillow(self):
        rng = random.Random(2)
        told = 0
        for i in range(240):
            sw, w, h = (rng.randint(1, 160) for _ in range(3))
            sh = h + 2 * (sw - w) + i % 4 - 1  # the rule asks whether sh - h exceeds 2 (sw - w)
            if sh < 1:
                continue
            image = Image.fromarray(grain(sw, sh, i))
            self.check(image, (w, h), random_window(rng, w, h))
            told += (in_two_steps(image, (w, h), True) != in_two_steps(image, (w, h), False)).any()
        self.assertGreater(told, 50)  # else no test of the order

    def test_extreme_shapes_equal_pillow(self):
        for n in (2, 3, 100, 101, 997, 3000):
            for narrow in (1, 2, 7):
                for sw, sh in ((narrow, n), (n, narrow)):
                    image = Image.fromarray(grain(sw, sh, n))
                    for size in ((1, 1), (2, 1), (1, 2), (5, 300), (300, 5), (224, n - 1), (sw, n + 1), (n - 1, sh)):
                        self.check(image, size)
        for sw, sh in ((9, 901), (9, 900), (9, 899), (29, 2901)):  # about 100 times as high as wide
            for size in ((8, 890), (224, 224), (30, 3000), (1, 3)):
                self.check(Image.fromarray(grain(sw, sh, sw)), size)

    def test_large_pictures_equal_pillow(self):
        image = Image.fromarray(picture(3000, 2000))
        for size in [(224, 224), (1, 1), (2999, 7), (3000, 100), (100, 2000), (3001, 2003), (640, 427)]:
            self.check(image, size)
        self.check(image, (256, 171), (16, 3, 224, 160))
        upright = image.transpose(Image.TRANSPOSE)
        for size in [(224, 224), (427, 640), (1999, 3)]:
            self.check(upright, size)
        self.check(upright, (256, 384), (16, 80, 224, 224))

    def test_crops_of_training_equal_pillow(self):
        whole = Image.fromarray(picture(500, 375))
        rng = random.Random(7)
        for _ in range(80):
            w, h = rng.randint(20, 500), rng.randint(20, 375)
            x, y = rng.randint(0, 500 - w), rng.randint(0, 375 - h)
            self.check(whole.crop((x, y, x + w, y + h)), (224, 224))


def grain(width, height, seed):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def random_window(rng, width, height):
    x, y = rng.randrange(width), rng.randrange(height)
    return x, y, rng.randint(1, width - x), rng.randint(1, height - y)


# picture(24, 20) as baseline Huffman, arithmetic, and arithmetic progressive JPEG: quality 70, then jpegtran.
HUFFMAN_TWIN = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAoHBwgHBgoICAgLCgoLDhgQDg0NDh0VFhEYIx8lJCIfIiEmKzcvJik0KSEiMEExNDk7Pj4+JS5ESU"
    "M8SDc9Pjv/2wBDAQoLCw4NDhwQEBw7KCIoOzs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozv/wAARCAAU"
    "ABgDASIAAhEBAxEB/8QAGQABAQADAQAAAAAAAAAAAAAAAAUDBAYH/8QAJxAAAQQBAwMDBQAAAAAAAAAAAQACAxEEBRIhIjFxEyNCMmGRsdH/xA"
    "AYAQACAwAAAAAAAAAAAAAAAAAEBgADB//EACYRAAECBAMJAAAAAAAAAAAAAAEAAgMEBXESFCEREzEyQlGBscH/2gAMAwEAAhEDEQA/APPsXRJI"
    "nbjRDTbiAeKVbHwmzXG1nPFbvt3VnH06ZzuY3bCOemvKrRaVFtJhG6QgfSb8qGeaGOEHRnUDzG3jS6pp1R1BJUXE0o4/U8EsqgR3/CLrcbTnOd"
    "77eD2sVRRAMn4rRslnBrezuP1PUCojAMRWaGGN0XaiWnkHz/Fs4MEfqt4+VftEQFXJzkG49rF6USr5xYvTHT8q8CkREr1wnNmwT9JE7pf/2Q=="
)
ARITHMETIC = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAoHBwgHBgoICAgLCgoLDhgQDg0NDh0VFhEYIx8lJCIfIiEmKzcvJik0KSEiMEExNDk7Pj4+JS5ESU"
    "M8SDc9Pjv/2wBDAQoLCw4NDhwQEBw7KCIoOzs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozv/yQARCAAU"
    "ABgDASIAAhEBAxEB/8wACgAQEAUBEBEF/9oADAMBAAIRAxEAPwD/AK9DP6BKalSBBb+pXbbhVCdvxh3CaFTwqW5qH+BBEspSj7xOOfDBXlbzhp"
    "UqwfJRst1XPvqrQiAU1/TdlZYKAlOECGnzQUhllTMrK078d9zXfh2TNwIDpgxwZkx5gN7PyxIqnK+PNO6QoYxilq4dDEFB8sEF81xgTy8oaCXw"
    "FZGVAOouAl2lfUIo7szL7o/ZXiJD9Iy/re0SjipPMc2Qh3Q5u0wg5taBcDnihqfYu5f5UpDlKUqphoD/2Q=="
)
ARITHMETIC_PROGRESSIVE = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAoHBwgHBgoICAgLCgoLDhgQDg0NDh0VFhEYIx8lJCIfIiEmKzcvJik0KSEiMEExNDk7Pj4+JS5ESU"
    "M8SDc9Pjv/2wBDAQoLCw4NDhwQEBw7KCIoOzs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozv/ygARCAAU"
    "ABgDASIAAhEBAxEB/8wABgAQARD/2gAMAwEAAhADEAAAAf8AVQ/nZePJgKUQQRkZFCb+tEyGTZD/zAAEEAX/2gAIAQEAAQUCHoqjdGtLobdcLI"
    "lSsG5vWUosEP/MAAQRBf/aAAgBAwEBPwEVD1BMxAlRITz/zAAEEQX/2gAIAQIBAT8BhfQHT5SxdIEiraFVOEyOSExWdMKA/8wABBAF/9oACAEB"
    "AAY/Av6SWYTVWP/MAAQQBf/aAAgBAQABPyHV77siqyTDLEwzCmqcIJoP9loZD9wQQ0Yw/9oADAMBAAIAAwAAABDTlP8A/8wABBEF/9oACAEDAQ"
    "E/ENZWfZDvRv/MAAQRBf/aAAgBAgEBPxCwSkoE/vs87L1GDMKh4FIlqecGvc6w/8wABBAF/9oACAEBAAE/EDb6rPc85HximxbO62qRQVI3bt+m"
    "buz95ojMiOV6gAFa1Xp3OS7YjEhkibOVw9g61tD/2Q=="
)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROBE = sys.argv.pop(1)
    unittest.main(verbosity=1)
