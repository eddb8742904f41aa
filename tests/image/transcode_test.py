#!/usr/bin/env python3
"""Compares what packing makes of pictures with Pillow, numpy and jpegtran:  transcode_test.py IMAGE_PROBE [unittest's options]

The inputs are made by Pillow or byte by byte; image_probe.cc tells how the library is asked.
"""

import io
import os
import shutil
import struct
import subprocess
import sys
import unittest

import pixels_test as base
from pixels_test import Case, by_pillow, exif, picture, png_of, saved, upright, with_segment, without_segments

import numpy as np
from PIL import Image, ImageCms

ENCODINGS = {"jpeg": 1, "png": 2, "webp": 3, "bmp": 4, "gif": 5, "tiff": 6, "pnm": 7, "pixels": 8}
KEEP, LOSSLESS, JPEG, PIXELS = range(4)
CHROMA_KEEP, CHROMA_444, CHROMA_422, CHROMA_420 = range(4)
DECODE, HEADER, NONE = range(3)
JPEGTRAN = shutil.which("jpegtran")


def varints(data):
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value, shift = 0, 0
    assert shift == 0
    return numbers


def segments(jpeg):
    """(marker, body, place behind it) up to the first scan."""
    at = 2
    while True:
        marker, size = jpeg[at + 1], struct.unpack(">H", jpeg[at + 2 : at + 4])[0]
        yield marker, jpeg[at + 4 : at + 2 + size], at + 2 + size
        at += 2 + size
        if marker == 0xDA:
            return


def frame_of(jpeg):
    """Marker, and [(h, v)] of the components, width, height."""
    for marker, body, _ in segments(jpeg):
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xCC):
            factors = [(body[7 + 3 * i] >> 4, body[7 + 3 * i] & 15) for i in range(body[5])]
            height, width = struct.unpack(">HH", body[1:5])
            return marker, factors, width, height


def mcu_rows(jpeg):
    _, factors, _, height = frame_of(jpeg)
    # A component alone in its scan has MCUs of one block, whatever its factors say.
    rows = 8 * (1 if len(factors) == 1 else max(v for _, v in factors))
    return -(-height // rows)


def with_jpegtran(jpeg, *options):
    done = subprocess.run([JPEGTRAN, *options], input=jpeg, stdout=subprocess.PIPE, check=True)
    return done.stdout


class Worked(Case):
    def ask(self, request, body):
        good, answer = self.library.ask(request, body)
        self.assertTrue(good, answer)
        return answer

    def refused_by(self, request, body):
        good, answer = self.library.ask(request, body)
        self.assertFalse(good, "it was accepted")
        return answer

    def baseline(self, jpeg):
        """The JPEG and its side data, or None."""
        answer = self.ask(b"B", jpeg)
        if answer[:4] == b"\0\0\0\0":
            return None
        size = struct.unpack("<I", answer[4:8])[0]
        return answer[8 : 8 + size], answer[8 + size :]

    def work(self, data, images, quality=90, chroma=CHROMA_KEEP, resize=(0, 0, 0), verify=DECODE, statistics=False,
             large=1 << 31, request=None):
        head = struct.pack("<9I", images, quality, chroma, *resize, verify, statistics, large)
        if request == "refused":
            return self.refused_by(b"W", head + data)
        answer = self.ask(b"W", head + data)
        names = ("encoding", "width", "height", "channels", "depth", "orientation")
        numbers = struct.unpack("<8I", answer[:32])
        result = dict(zip(names, numbers))
        result["sums"] = struct.unpack("<8Q", answer[32:96])
        result["bytes"] = answer[96 : 96 + numbers[6]]
        result["side"] = answer[96 + numbers[6] :]
        self.assertEqual(len(result["side"]), numbers[7])
        return result

    def samples(self, answer):
        width, height, channels, depth, orientation, maximum = struct.unpack("<6I", answer[:24])
        kind = np.uint8 if depth == 8 else "<u2"
        return np.frombuffer(answer, kind, offset=24).reshape(height, width, channels), orientation, maximum

    def check_rows(self, jpeg, side):
        """The side data against the markers found here; the markers against the picture's size."""
        starts = np.cumsum(varints(side)).tolist()
        first = [place for marker, _, place in segments(jpeg) if marker == 0xDA][0]
        want, at = [first], first
        while True:
            at = jpeg.index(b"\xff", at)
            marker = jpeg[at + 1]
            at += 2
            if 0xD0 <= marker <= 0xD7:
                self.assertEqual(marker - 0xD0, (len(want) - 1) % 8)
                want.append(at)
            elif marker != 0:
                self.assertEqual(marker, 0xD9)
                break
        self.assertEqual(at, len(jpeg))
        self.assertEqual(starts, want)
        self.assertEqual(len(want), mcu_rows(jpeg))


class Baseline(Worked):
    def check(self, jpeg, label=None):
        made = self.baseline(jpeg)
        self.assertIsNotNone(made, label)
        out, side = made
        self.assertEqual(frame_of(out)[0], 0xC0, label)
        self.assertEqual(frame_of(out)[1:], frame_of(jpeg)[1:], label)
        self.check_rows(out, side)
        before, after = Image.open(io.BytesIO(jpeg)), Image.open(io.BytesIO(out))
        self.assertEqual(before.mode, after.mode, label)
        self.assertTrue((np.asarray(before) == np.asarray(after)).all(), label)
        self.assertTrue((self.decoded(out) == self.decoded(jpeg)).all(), label)
        self.assertEqual(self.baseline(out), made, f"{label}: doing it again changes it")
        self.assertEqual(self.ask(b"Q", struct.pack("<I", len(jpeg)) + jpeg + out), b"\1\0\0\0", label)
        if JPEGTRAN:  # the same coefficients give the same file
            options = ("-copy", "none", "-optimize")
            self.assertEqual(with_jpegtran(jpeg, *options), with_jpegtran(out, *options), label)
        return out, side

    def test_every_subsampling_size_and_coding(self):
        for width, height in [(1, 1), (1, 9), (9, 1), (8, 8), (16, 16), (17, 15), (33, 31), (97, 71), (40, 300)]:
            for subsampling in ("4:4:4", "4:2:2", "4:2:0", "4:1:1"):
                for options in ({}, {"progressive": True}, {"restart_marker_blocks": 3}, {"quality": 3},
                                {"quality": 100, "progressive": True}):
                    data = saved(picture(width, height), "JPEG", subsampling=subsampling, **options)
                    self.check(data, (width, height, subsampling, options))

    def test_grey_of_any_sampling_factors(self):
        data = bytearray(saved(picture(45, 33), "JPEG", "L"))
        self.check(bytes(data))
        at = data.index(b"\xff\xc0")
        for factors in (0x22, 0x41, 0x14):  # without meaning for a single component
            data[at + 11] = factors
            self.check(bytes(data), factors)

    @unittest.skipUnless(JPEGTRAN, "no jpegtran")
    def test_arithmetic_and_odd_codings_that_jpegtran_writes(self):
        data = saved(picture(61, 47), "JPEG", subsampling="4:2:0")
        scans = b"0; 1; 2;\n"
        script = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"scans-{os.getpid()}")
        with open(script, "wb") as out:
            out.write(scans)
        try:
            for options in (["-arithmetic"], ["-arithmetic", "-progressive"], ["-scans", script], ["-restart", "1"],
                            ["-restart", "3B"], ["-rotate", "90"], ["-grayscale"], ["-scans", script, "-arithmetic"]):
                self.check(with_jpegtran(data, *options), options)
        finally:
            os.remove(script)

    @unittest.skipUnless(shutil.which("cjpeg"), "no cjpeg")
    def test_odd_sampling_factors(self):
        ppm = saved(picture(61, 47), "PPM")
        for sample in ("1x2", "2x1,1x2", "1x1,2x2,1x1", "3x1", "1x4", "4x2", "2x2,2x1,1x2", "2x2,1x1,2x2"):
            for options in ((), ("-progressive",)):
                done = subprocess.run(["cjpeg", "-sample", sample, *options], input=ppm, stdout=subprocess.PIPE)
                self.assertEqual(done.returncode, 0, sample)
                self.check(done.stdout, (sample, options))

    def test_inks_and_rgb_keep_their_meaning(self):
        for size in [(48, 36), (37, 41), (1, 1)]:
            inks = np.dstack([picture(*size, 1), picture(*size, 2)[..., :1]])
            out = io.BytesIO()
            Image.frombytes("CMYK", size, inks.tobytes()).save(out, "JPEG", quality=95)
            data = out.getvalue()
            self.check(data)
            self.check(without_segments(data, 0xEE))
            at = data.index(b"Adobe") + 11
            self.check(data[:at] + b"\2" + data[at + 1 :])
        rgb = saved(picture(40, 24), "JPEG", keep_rgb=True)
        self.check(rgb)
        self.check(without_segments(rgb, 0xEE))
        self.check(without_segments(saved(picture(40, 24), "JPEG"), 0xE0))

    def test_orientation_and_profile_stay_and_other_metadata_goes(self):
        profile = bytes(range(256)) * 300
        plain = saved(picture(48, 32), "JPEG", icc_profile=profile, comment=b"a comment")
        for orientation in range(1, 9):
            data = with_segment(plain, 0xE1, b"Exif\0\0" + exif(orientation, True) + b"camera" * 99)
            data = with_segment(data, 0xED, b"Photoshop 3.0\0" + bytes(500))
            out, _ = self.check(data, orientation)
            image = Image.open(io.BytesIO(out))
            self.assertEqual(image.getexif().get(0x0112, 1), orientation)
            self.assertEqual(image.info["icc_profile"], profile)
            self.assertNotIn(b"camera", out)
            self.assertNotIn(b"Photoshop", out)
            self.assertNotIn(b"a comment", out)
            self.assertEqual(self.probed(out)["orientation"], orientation)
            self.assertTrue((self.decoded(out) == upright(by_pillow(plain), orientation)).all())

    def test_a_profile_that_says_srgb_goes_and_another_stays(self):
        srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        xyz = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
        version_2 = bytearray(bytes(128) + struct.pack(">I4sII", 1, b"desc", 144, 40))
        version_2 += b"desc" + struct.pack(">II", 0, 18) + b"sRGB IEC61966-2.1\0" + bytes(10)
        for profile, stays in ((srgb, False), (bytes(version_2), False), (xyz, True), (srgb[:200], True), (b"", None)):
            out, _ = self.check(saved(picture(40, 24), "JPEG", icc_profile=profile))
            if stays is not None:
                self.assertEqual(b"ICC_PROFILE" in out, stays)

    def test_the_density_stays_and_the_thumbnail_of_jfif_goes(self):
        data = saved(picture(40, 24), "JPEG", dpi=(300, 200))
        at = 2 + 2 + 2 + 12
        thumbnail = data[:at] + b"\1\1" + b"\xab\xcd\xef" + data[at + 2 :]
        thumbnail = thumbnail[:4] + struct.pack(">H", 16 + 3) + thumbnail[6:]
        out, _ = self.check(thumbnail)
        self.assertEqual(Image.open(io.BytesIO(out)).info["dpi"], (300, 200))
        self.assertNotIn(b"\xab\xcd\xef", out)

    def test_bytes_after_the_end_go(self):
        data = saved(picture(40, 24), "JPEG")
        self.assertEqual(self.check(data + b"trailing \xff\xd8"), self.check(data))

    def test_what_baseline_cannot_hold_is_left_alone(self):
        # A table of 16 bits, made by hand: marker DQT with precision 1.
        data = saved(picture(40, 24), "JPEG", "L", qtables=[[8] * 64])
        at = data.index(b"\xff\xdb")
        table = b"".join(struct.pack(">H", 300) for _ in range(64))
        deep = data[:at] + b"\xff\xdb" + struct.pack(">H", 2 + 1 + 128) + b"\x10" + table + data[at + 69 :]
        deep = deep.replace(b"\xff\xc0", b"\xff\xc1", 1)
        self.decoded(deep)
        self.assertIsNone(self.baseline(deep))
        worked = self.work(deep, LOSSLESS)
        self.assertEqual((worked["bytes"], worked["side"]), (deep, b""))

    def test_a_progressive_picture_that_lacks_scans_is_left_alone(self):
        data = saved(picture(64, 64), "JPEG", "L", progressive=True)
        scans = [at for at in range(len(data)) if data[at : at + 2] == b"\xff\xda"]
        for keep in range(1, len(scans)):
            # libjpeg smooths what it does not have yet; so it would not in a sequential picture.
            cut = data[: data.rindex(b"\xff\xc4", 0, scans[keep])] + b"\xff\xd9"
            if self.library.ask(b"D", cut)[0]:
                self.assertIsNone(self.baseline(cut), keep)
                self.assertEqual(self.work(cut, LOSSLESS)["bytes"], cut)

    def test_damage_is_refused(self):
        for options in ({}, {"progressive": True}, {"restart_marker_blocks": 2}):
            data = saved(picture(80, 64), "JPEG", quality=60, **options)
            for size in range(0, len(data), 17):
                self.refused_by(b"B", data[:size])
            self.assertIn("truncated", self.refused_by(b"B", data[:-1]))
            self.assertIn("corrupt", self.refused_by(b"B", data[: len(data) // 2] + b"\xff\xd9"))
            self.baseline(data)  # and the next picture is none the worse

    def test_other_pixels_are_told_apart(self):
        a, b = saved(picture(40, 24), "JPEG", quality=90), saved(picture(40, 24), "JPEG", quality=91)
        flipped = with_segment(a, 0xE1, b"Exif\0\0" + exif(6))
        for other in (b, flipped, saved(picture(40, 24), "PNG"), saved(picture(40, 25), "JPEG")):
            self.assertEqual(self.ask(b"Q", struct.pack("<I", len(a)) + a + other), bytes(4))
        c = picture(20, 10).copy()
        one = saved(c, "PNG")
        c[9, 19, 2] ^= 1
        self.assertEqual(self.ask(b"Q", struct.pack("<I", len(one)) + one + saved(c, "PNG")), bytes(4))

    def test_random_damage_never_ends_the_process(self):
        rng = np.random.default_rng(4)
        for options in ({}, {"progressive": True}, {"restart_marker_blocks": 1, "subsampling": "4:2:0"}):
            data = with_segment(saved(picture(50, 40), "JPEG", **options), 0xE1, b"Exif\0\0" + exif(6))
            for _ in range(150):
                bent = bytearray(data)
                for at in rng.integers(0, len(bent), rng.choice([1, 2, 8])):
                    bent[at] = rng.integers(0, 256)
                self.library.ask(b"B", bytes(bent))
                self.library.ask(b"W", struct.pack("<9I", LOSSLESS, 90, 0, 0, 0, 0, 0, 0, 0) + bytes(bent))


class FilteredPixels(Worked):
    def check(self, data, want=None, orientation=1, label=None):
        """`want`: the samples as the file has them, [H, W, C]."""
        pixels = self.ask(b"F", data)
        got, turned, maximum = self.samples(self.ask(b"f", pixels))
        again = self.samples(self.ask(b"N", data))
        self.assertTrue((got == again[0]).all() and (turned, maximum) == again[1:], label)
        self.assertEqual(turned, orientation, label)
        if want is not None:
            self.assertEqual(got.shape, want.shape, label)
            self.assertTrue((got == want).all(), label)
        height, width, channels = got.shape
        self.assertEqual(len(pixels), 16 + height * (1 + width * channels * got.itemsize), label)
        self.assertTrue((self.decoded(pixels) == self.decoded(data)).all(), label)
        info = self.probed(pixels)
        self.assertEqual((info["encoding"], info["channels"], info["depth"], info["orientation"]),
                         (ENCODINGS["pixels"], channels, 8 * got.itemsize, orientation), label)
        self.assertTrue((self.by_document(pixels) == got).all(), label)
        worked = self.work(data, LOSSLESS)
        self.assertEqual((worked["bytes"], worked["encoding"], worked["side"]), (pixels, ENCODINGS["pixels"], b""), label)
        return pixels

    def by_document(self, data):
        """docs/formats/pixels.md, in Python."""
        magic, version, shape, maximum, width, height = struct.unpack("<4sBBHII", data[:16])
        self.assertEqual((magic, version), (b"\x91SPX", 1))
        channels, deep = (shape & 3) + 1, shape >> 2 & 1
        at, rows = 16, [[0] * (width * channels)]
        for _ in range(height):
            kind, at = data[at], at + 1
            size = width * channels * (1 + deep)
            if deep:
                folded = np.frombuffer(data, "<u2", width * channels, at).astype(int)
                differences = [v >> 1 if v % 2 == 0 else -(v >> 1) - 1 for v in folded.tolist()]
            else:
                differences = list(data[at : at + size])
            at += size
            above, row = rows[-1], []
            for i, difference in enumerate(differences):
                a = row[i - channels] if i >= channels else 0
                c = above[i - channels] if i >= channels else 0
                b = above[i]
                p = a + b - c
                nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                guess = [0, a, b, (a + b) // 2, nearest][kind]
                row.append((guess + difference) % (65536 if deep else 256))
            rows.append(row)
        self.assertEqual(at, len(data))
        return np.array(rows[1:]).reshape(height, width, channels)

    def test_every_colour_type_and_depth_of_png(self):
        rng = np.random.default_rng(3)
        kinds = [(0, 1, d) for d in (1, 2, 4, 8, 16)] + [(2, 3, d) for d in (8, 16)]
        kinds += [(3, 1, d) for d in (1, 2, 4, 8)] + [(4, 2, d) for d in (8, 16)] + [(6, 4, d) for d in (8, 16)]
        for colour_type, channels, depth in kinds:
            for width, height in [(1, 1), (5, 3), (33, 17)]:
                samples = rng.integers(0, 1 << depth, (height, width, channels))
                palette = rng.integers(0, 256, (1 << min(depth, 8), 3), np.uint8)
                palette[0] = (1, 2, 3)
                samples[0, 0, 0] = 0
                before = [(b"PLTE", palette.tobytes())] if colour_type == 3 else []
                want = palette[samples[..., 0]] if colour_type == 3 else samples * (255 if depth < 8 else 1) // (
                    (1 << depth) - 1 if depth < 8 else 1)
                for interlaced in (False, True):
                    data = png_of(samples, depth, colour_type, before, interlaced=interlaced)
                    self.check(data, want, label=(colour_type, depth, width, height, interlaced))

    def test_smooth_pictures_use_every_filter(self):
        seen = set()
        deep = (picture(64, 48).astype(np.uint32) * 257 + 3).astype(np.uint16)
        for array, depth in ((picture(64, 48), 8), (deep, 16), (picture(64, 48)[..., :1], 8), (deep[..., :1], 16)):
            smooth = np.cumsum(np.cumsum(array.astype(np.int64) % 5, axis=0), axis=1) % (1 << depth)
            for samples in (array.astype(np.int64), smooth):
                data = png_of(samples, depth, 2 if samples.shape[2] == 3 else 0)
                pixels = self.check(data, samples)
                stride = 1 + samples.shape[1] * samples.shape[2] * depth // 8
                seen |= set(pixels[16::stride])
        self.assertEqual(seen, {0, 1, 2, 3, 4})

    def test_transparency_is_kept_as_a_channel(self):
        rgb = picture(20, 14)
        alpha = np.tile(np.array([0, 255, 40, 200], np.uint8), (14, 5))
        rgba = np.dstack([rgb, alpha])
        self.check(png_of(rgba, 8, 6), rgba)
        colour = [int(v) for v in rgb[0, 0]]
        keyed = np.dstack([rgb, np.where((rgb == rgb[0, 0]).all(2), 0, 255)])
        self.check(png_of(rgb, 8, 2, [(b"tRNS", struct.pack(">HHH", *colour))]), keyed)
        index = np.indices((14, 20)).sum(0)[..., None] % 4
        palette = np.array([[9, 8, 7], [200, 0, 0], [0, 201, 3], [4, 5, 202]], np.uint8)
        chunks = [(b"PLTE", palette.tobytes()), (b"tRNS", bytes([0, 255, 10]))]
        opacity = np.array([0, 255, 10, 255])[index[..., 0]]
        self.check(png_of(index, 8, 3, chunks), np.dstack([palette[index[..., 0]], opacity]))

    def test_palettes_of_greys_alone_become_grey(self):
        index = np.indices((14, 20)).sum(0)[..., None] % 4
        shades = np.array([9, 200, 0, 77], np.uint8)
        palette = np.repeat(shades[:, None], 3, axis=1)
        chunks = [(b"PLTE", palette.tobytes())]
        self.check(png_of(index, 8, 3, chunks), shades[index])
        opacity = np.array([0, 255, 10, 255], np.uint8)[index]
        self.check(png_of(index, 8, 3, chunks + [(b"tRNS", bytes([0, 255, 10]))]), np.dstack([shades[index], opacity]))
        grey = picture(20, 14)[..., :1]
        for kind in ("BMP", "GIF"):
            self.check(saved(grey[..., 0], kind), grey, label=kind)
        three = np.repeat(grey, 3, axis=2)
        self.check(saved(three, "PNG"), three)  # says that it is RGB

    def test_orientation_stays_to_be_obeyed(self):
        rgb = picture(33, 21)
        for orientation in range(1, 9):
            pixels = self.check(png_of(rgb, 8, 2, [(b"eXIf", exif(orientation))]), rgb, orientation)
            self.assertTrue((self.decoded(pixels) == upright(rgb, orientation)).all())
            info = self.probed(pixels)
            self.assertEqual((info["height"], info["width"]), upright(rgb, orientation).shape[:2])
            self.check(saved(rgb, "TIFF", tiffinfo={274: orientation}), rgb, orientation)

    def test_16_bits_of_tiff_and_pnm_are_rounded_and_those_of_png_are_cut(self):
        deep = np.arange(65536).reshape(256, 256, 1)
        cut = self.check(png_of(deep, 16, 0), deep)
        self.assertTrue((self.decoded(cut)[..., 0] == deep[..., 0] >> 8).all())
        rounded = (deep[..., 0] * 255 + 32767) // 65535
        for data in (saved(deep[..., 0].astype(np.uint16), "TIFF"),
                     b"P5 256 256 65535\n" + deep.astype(">u2").tobytes()):
            pixels = self.check(data, deep)
            self.assertTrue((self.decoded(pixels)[..., 0] == rounded).all())

    def test_pnm_of_every_kind_and_largest_value(self):
        rng = np.random.default_rng(2)
        for maximum in (1, 7, 100, 255, 256, 1000, 1023, 4095, 65534, 65535):
            for kind, channels in ((b"P5", 1), (b"P6", 3)):
                values = rng.integers(0, maximum + 1, (7, 13, channels))
                raw = values.astype(">u2" if maximum > 255 else np.uint8).tobytes()
                want = values if maximum > 255 else (values * 255 + maximum // 2) // maximum
                pixels = self.check(kind + b" 13 7 %d\n" % maximum + raw, want, label=(maximum, kind))
                eight = (values * 255 + maximum // 2) // maximum
                self.assertTrue((self.decoded(pixels) == np.broadcast_to(eight, (7, 13, 3))).all(), maximum)
        bits = picture(13, 7)[..., 1] > 120
        self.check(saved(picture(13, 7), "PPM", "1"))
        self.check(b"P1\n13 7\n" + b"".join(b"01"[int(v) :][:1] for v in bits.reshape(-1)), (~bits * 255)[..., None])
        self.check(b"P2 3 2 300 0 1 299 300 301 9", np.array([0, 1, 299, 300, 300, 9]).reshape(2, 3, 1))

    def test_bmp(self):
        for mode in ("1", "L", "P", "RGB"):
            data = saved(picture(32, 9), "BMP", mode)
            want = by_pillow(data)
            self.check(data, want[..., :1] if mode in ("1", "L") else want, label=mode)
        rgb = picture(6, 5)
        for alpha in (np.full((5, 6), 0), np.full((5, 6), 255)):
            bgra = np.dstack([rgb[..., ::-1], alpha]).astype(np.uint8)
            self.check(base.bmp(6, -5, 32, bgra.tobytes()), rgb)
        alpha = picture(6, 5, 3)[..., 0]
        bgra = np.dstack([rgb[..., ::-1], alpha])
        for height, rows in ((-5, bgra), (5, bgra[::-1])):
            self.check(base.bmp(6, height, 32, rows.tobytes()), np.dstack([rgb, alpha]))
        values = np.random.default_rng(1).integers(0, 1 << 15, (4, 6)).astype("<u2")
        self.check(base.bmp(6, 4, 16, values.tobytes()))

    def test_gif(self):
        for size in [(1, 1), (7, 5), (61, 37)]:
            data = saved(picture(*size), "GIF")
            self.check(data, by_pillow(data) if size != (1, 1) else None, label=size)
        index = (np.indices((14, 20)).sum(0) % 4).astype(np.uint8)
        image = Image.fromarray(index, "P")
        image.putpalette([9, 8, 7, 200, 0, 0, 0, 201, 3, 4, 5, 202])
        out = io.BytesIO()
        image.save(out, "GIF", transparency=2)
        want = np.asarray(Image.open(io.BytesIO(out.getvalue())).convert("RGBA"))
        self.check(out.getvalue(), want)

    def test_tiff(self):
        for mode, channels in (("1", 1), ("L", 1), ("RGB", 3), ("RGBA", 4)):
            for compression in ("raw", "tiff_lzw", "tiff_deflate", "packbits"):
                array = picture(33, 21)
                data = saved(array, "TIFF", mode, compression=compression)
                want = np.asarray(Image.open(io.BytesIO(data)).convert("L" if mode == "1" else mode))
                self.check(data, want.reshape(21, 33, channels), label=(mode, compression))
        self.check(saved(picture(33, 21), "TIFF", "P"))
        deep = picture(33, 21)[..., 1].astype(np.uint16) * 256 + 77
        self.check(saved(deep, "TIFF", compression="tiff_lzw"), deep[..., None].astype(int))

    def test_what_samples_cannot_hold_is_kept(self):
        inks = saved(picture(33, 21), "TIFF", "CMYK")
        lossy = saved(picture(33, 21), "TIFF", compression="jpeg")
        webp = saved(picture(33, 21), "WEBP", lossless=True)
        alpha = saved(picture(33, 21), "TIFF", "RGBA")
        tag = struct.pack("<HHIHH", 338, 3, 1, 2, 0)  # ExtraSamples: alpha that stands beside the colours
        self.assertEqual(alpha.count(tag), 1)
        multiplied = alpha.replace(tag, struct.pack("<HHIHH", 338, 3, 1, 1, 0))
        self.check(alpha)
        masked = base.bmp(6, 4, 32, bytes(96), compression=3, masks=struct.pack("<III", 0xFF, 0xFF00, 0xFF0000))
        for data in (inks, lossy, webp, multiplied, masked):
            worked = self.work(data, LOSSLESS)
            self.assertEqual((worked["bytes"], worked["side"]), (data, b""))

    def test_filtered_pixels_stay_as_they_are(self):
        pixels = self.ask(b"F", saved(picture(33, 21), "PNG"))
        for images in (KEEP, LOSSLESS):
            self.assertEqual(self.work(pixels, images)["bytes"], pixels)

    def test_rows_equal_those_of_the_whole(self):
        for kind in ("PNG", "TIFF"):
            for mode in ("RGB", "L", "RGBA"):
                pixels = self.ask(b"F", saved(picture(33, 21), kind, mode))
                want = self.decoded(pixels)
                for first, end in ((0, 1), (3, 9), (20, 21), (0, 100)):
                    answer = self.ask(b"S", struct.pack("<II", first, end) + pixels)
                    self.assertTrue((base.pixels_of(answer)[first:end] == want[first:end]).all())

    def test_a_palette_of_colours_is_not_filtered(self):
        index = np.random.default_rng(5).integers(0, 200, (64, 64, 1))
        palette = np.random.default_rng(6).integers(0, 256, (256, 3), np.uint8)
        pixels = self.ask(b"F", png_of(index, 8, 3, [(b"PLTE", palette.tobytes())]))
        self.assertEqual(set(pixels[16 :: 1 + 64 * 3]), {0})

    def test_cut_and_bent_bytes_are_refused_or_give_a_picture(self):
        for data in (saved(picture(12, 9), "PNG"), png_of(picture(12, 9)[..., :2].astype(int) * 257, 16, 4)):
            pixels = self.ask(b"F", data)
            self.never_whole_when_cut(pixels)
            self.assertIn("truncated", self.refused_by(b"f", pixels[:-1]))
            self.assertIn("truncated", self.refused_by(b"P", pixels[:9]))
            self.assertIn("after the last row", self.refused_by(b"P", pixels + b"\0"))
            bent = bytearray(pixels)
            bent[16] = 5
            for request in (b"D", b"f"):
                self.assertIn("row filter 5", self.refused_by(request, bytes(bent)))
            self.survives_flips(pixels, rounds=300)
            for at, value, word in ((4, 2, "version 2"), (5, 0xC0, "unknown bits"), (11, 0xFF, "")):
                bent = bytearray(pixels)
                bent[at] |= value
                if at == 4:
                    bent[at] = value
                for request in (b"P", b"D", b"f"):
                    self.assertIn(word, self.refused_by(request, bytes(bent)))
        self.refused_by(b"f", saved(picture(3, 3), "PNG"))
        eight = bytearray(self.ask(b"F", saved(picture(3, 3), "PNG")))
        eight[6] = 9
        self.assertIn("largest value", self.refused_by(b"P", bytes(eight)))
        empty = struct.pack("<4sBBHII", b"\x91SPX", 1, 2, 0, 0, 1) + b"\0"
        self.assertIn("0x1", self.refused_by(b"P", empty))


class PngWriting(Worked):
    def written(self, data):
        return Image.open(io.BytesIO(self.ask(b"G", data)))

    def test_eight_bits(self):
        rgb = picture(33, 21)
        alpha = picture(33, 21, 4)[..., :1]
        for samples, colour_type, mode in ((rgb[..., :1], 0, "L"), (np.dstack([rgb[..., :1], alpha]), 4, "LA"),
                                           (rgb, 2, "RGB"), (np.dstack([rgb, alpha]), 6, "RGBA")):
            image = self.written(png_of(samples, 8, colour_type))
            self.assertEqual(image.mode, mode)
            self.assertTrue((np.asarray(image).reshape(samples.shape) == samples).all(), mode)

    def test_sixteen_bits(self):
        deep = np.random.default_rng(1).integers(0, 65536, (21, 33, 1))
        image = self.written(png_of(deep, 16, 0))
        self.assertTrue((np.asarray(image).astype(int) == deep[..., 0]).all())
        for channels, colour_type in ((1, 0), (2, 4), (3, 2), (4, 6)):
            deep = np.random.default_rng(1).integers(0, 65536, (21, 33, channels))
            png = self.ask(b"G", png_of(deep, 16, colour_type))
            self.assertEqual((png[24], png[25]), (16, colour_type))
            self.assertTrue((self.samples(self.ask(b"N", png))[0] == deep).all(), colour_type)

    def test_a_smaller_largest_value_is_stretched(self):
        values = np.random.default_rng(2).integers(0, 1001, (7, 13, 1))
        image = self.written(b"P5 13 7 1000\n" + values.astype(">u2").tobytes())
        self.assertTrue((np.asarray(image).astype(int) == (values[..., 0] * 65535 + 500) // 1000).all())

    def test_orientation(self):
        for orientation in range(1, 9):
            png = self.ask(b"G", saved(picture(33, 21), "TIFF", tiffinfo={274: orientation}))
            self.assertEqual(Image.open(io.BytesIO(png)).getexif().get(0x0112, 1), orientation)
            self.assertEqual(b"eXIf" in png, orientation != 1)
            self.assertTrue((self.decoded(png) == upright(picture(33, 21), orientation)).all())


def pillow_resized(rgb, size):
    return np.asarray(Image.fromarray(rgb).resize(size, Image.BILINEAR))


class Reencoded(Worked):
    def jpeg(self, rgb, grey=0, quality=90, chroma=420):
        answer = self.ask(b"J", struct.pack("<5I", rgb.shape[1], rgb.shape[0], grey, quality, chroma) + rgb.tobytes())
        size = struct.unpack("<I", answer[4:8])[0]
        return answer[8 : 8 + size], answer[8 + size :]

    def test_jpegs_decode_as_those_that_pillow_writes(self):
        for size in [(1, 1), (16, 16), (17, 33), (97, 71)]:
            for chroma, name in ((444, "4:4:4"), (422, "4:2:2"), (420, "4:2:0")):
                for quality in (1, 50, 90, 100):
                    data, side = self.jpeg(picture(*size), 0, quality, chroma)
                    self.check_rows(data, side)
                    want = saved(picture(*size), "JPEG", quality=quality, subsampling=name)
                    self.assertEqual(frame_of(data), frame_of(want))
                    self.assertTrue((by_pillow(data) == by_pillow(want)).all(), (size, chroma, quality))
                    self.same(data)
            data, side = self.jpeg(picture(*size), 1, 80)
            self.check_rows(data, side)
            want = saved(np.ascontiguousarray(picture(*size)[..., 0]), "JPEG", quality=80)
            self.assertEqual(Image.open(io.BytesIO(data)).mode, "L")
            self.assertTrue((by_pillow(data) == by_pillow(want)).all())

    def test_pictures_are_decoded_turned_and_encoded(self):
        rgb = picture(48, 32)
        for orientation in range(1, 9):
            data = png_of(rgb, 8, 2, [(b"eXIf", exif(orientation))])
            worked = self.work(data, JPEG, quality=85, chroma=CHROMA_444)
            turned = np.ascontiguousarray(upright(rgb, orientation))
            want = saved(turned, "JPEG", quality=85, subsampling="4:4:4")
            self.assertEqual((worked["encoding"], worked["orientation"]), (ENCODINGS["jpeg"], 1))
            self.assertEqual((worked["height"], worked["width"]), turned.shape[:2])
            self.assertTrue((by_pillow(worked["bytes"]) == by_pillow(want)).all())
            self.check_rows(worked["bytes"], worked["side"])

    def test_chroma_is_that_of_the_source_or_the_one_asked_for(self):
        def factors(worked):
            return frame_of(worked["bytes"])[1][0]

        for name, want in (("4:4:4", (1, 1)), ("4:2:2", (2, 1)), ("4:2:0", (2, 2)), ("4:1:1", (2, 2))):
            data = saved(picture(48, 32), "JPEG", subsampling=name)
            self.assertEqual(factors(self.work(data, JPEG)), want)
            self.assertEqual(factors(self.work(data, JPEG, chroma=CHROMA_422)), (2, 1))
        self.assertEqual(factors(self.work(saved(picture(48, 32), "PNG"), JPEG)), (2, 2))
        self.assertEqual(factors(self.work(saved(picture(48, 32), "PNG"), JPEG, chroma=CHROMA_444)), (1, 1))

    def test_grey_stays_grey(self):
        grey = np.ascontiguousarray(picture(48, 32)[..., 0])
        for data in (saved(grey, "PNG"), saved(grey, "JPEG", quality=95), saved(grey, "BMP"), saved(grey, "GIF"),
                     saved(grey, "TIFF"), saved(grey, "PPM"), saved(np.dstack([grey] * 3), "PNG")):
            for images, encoding in ((JPEG, "jpeg"), (PIXELS, "pixels")):
                worked = self.work(data, images)
                self.assertEqual((worked["channels"], worked["encoding"]), (1, ENCODINGS[encoding]))
        self.assertEqual(self.work(saved(picture(48, 32), "PNG"), PIXELS)["channels"], 3)

    def test_colour_spaces_are_brought_to_rgb(self):
        inks = np.dstack([picture(48, 36, 1), picture(48, 36, 2)[..., :1]])
        out = io.BytesIO()
        Image.frombytes("CMYK", (48, 36), inks.tobytes()).save(out, "JPEG", quality=95)
        for data in (out.getvalue(), saved(picture(48, 36), "JPEG", keep_rgb=True)):
            worked = self.work(data, PIXELS)
            self.assertTrue((self.decoded(worked["bytes"]) == by_pillow(data)).all())
            want = by_pillow(saved(by_pillow(data), "JPEG", quality=90, subsampling="4:4:4"))
            worked = self.work(data, JPEG, chroma=CHROMA_444)
            self.assertTrue((by_pillow(worked["bytes"]) == want).all())

    def test_pixels_have_eight_bits_and_no_alpha(self):
        rgba = np.dstack([picture(33, 21), picture(33, 21, 4)[..., :1]])
        deep = picture(33, 21).astype(int) * 257
        for data in (png_of(rgba, 8, 6), png_of(deep, 16, 2), saved(picture(33, 21), "WEBP", lossless=True)):
            worked = self.work(data, PIXELS)
            self.assertEqual((worked["encoding"], worked["channels"], worked["depth"]), (ENCODINGS["pixels"], 3, 8))
            self.assertTrue((self.decoded(worked["bytes"]) == picture(33, 21)).all())

    def test_the_short_side_is_shrunk_and_the_ratio_kept(self):
        for (width, height), size in (((97, 61), (50, 32)), ((61, 97), (32, 50)), ((300, 40), (240, 32)),
                                      ((33, 400), (32, 387))):
            rgb = picture(width, height)
            worked = self.work(saved(rgb, "PNG"), PIXELS, resize=(32, 0, 0))
            self.assertEqual((worked["width"], worked["height"]), size)
            self.assertTrue((self.decoded(worked["bytes"]) == pillow_resized(rgb, size)).all())
        for size in ((31, 90), (32, 32), (500, 32)):  # as small as that already
            worked = self.work(saved(picture(*size), "PNG"), PIXELS, resize=(32, 0, 0))
            self.assertEqual((worked["width"], worked["height"]), size)

    def test_width_and_height_are_met_exactly_by_pictures_that_are_as_large(self):
        rgb = picture(97, 61)
        worked = self.work(saved(rgb, "PNG"), PIXELS, resize=(0, 40, 50))
        self.assertEqual((worked["width"], worked["height"]), (40, 50))
        self.assertTrue((self.decoded(worked["bytes"]) == pillow_resized(rgb, (40, 50))).all())
        for size in ((39, 90), (90, 49), (40, 50)):
            worked = self.work(saved(picture(*size), "PNG"), PIXELS, resize=(0, 40, 50))
            self.assertEqual((worked["width"], worked["height"]), size)

    def test_resizing_follows_turning(self):
        rgb = picture(97, 61)
        data = png_of(rgb, 8, 2, [(b"eXIf", exif(6))])
        turned = np.ascontiguousarray(upright(rgb, 6))
        worked = self.work(data, JPEG, quality=95, chroma=CHROMA_444, resize=(0, 40, 70))
        want = saved(pillow_resized(turned, (40, 70)), "JPEG", quality=95, subsampling="4:4:4")
        self.assertTrue((by_pillow(worked["bytes"]) == by_pillow(want)).all())

    def test_statistics_are_those_of_what_is_stored(self):
        data = saved(picture(61, 47), "JPEG", quality=40)
        turned = with_segment(data, 0xE1, b"Exif\0\0" + exif(6))
        for source in (turned, saved(picture(61, 47), "PNG")):
            for images in (KEEP, LOSSLESS, JPEG, PIXELS):
                resize = (20, 0, 0) if images >= JPEG else (0, 0, 0)
                for verify in (DECODE, NONE):
                    worked = self.work(source, images, quality=30, resize=resize, verify=verify, statistics=True)
                    pixels = self.decoded(worked["bytes"]).reshape(-1, 3).astype(np.int64)
                    want = (1, len(pixels), *pixels.sum(0).tolist(), *(pixels ** 2).sum(0).tolist())
                    self.assertEqual(worked["sums"], want)
        self.assertEqual(self.work(data, LOSSLESS)["sums"], (0,) * 8)

    def test_large_pictures_come_out_the_same(self):
        for data in (saved(picture(97, 61), "JPEG"), saved(picture(97, 61), "PNG")):
            for images in (KEEP, LOSSLESS, JPEG, PIXELS):
                self.assertEqual(self.work(data, images, large=0), self.work(data, images))

    def test_bad_pictures_are_refused_in_every_mode(self):
        for data in (saved(picture(40, 32), "JPEG")[:-40], saved(picture(40, 32), "PNG")[:-40], b"", b"no picture"):
            for images in (KEEP, LOSSLESS, JPEG, PIXELS):
                self.work(data, images, request="refused")
        cut = saved(picture(40, 32), "JPEG")[:-1]
        self.assertIn("truncated", self.work(cut, KEEP, verify=HEADER, request="refused"))
        self.assertEqual(self.work(cut, KEEP, verify=NONE)["bytes"], cut)


class EverySimdTarget(unittest.TestCase):
    """libjpeg-turbo's own switches turn its SIMD off."""

    def answers(self, environment):
        process = subprocess.Popen([base.PROBE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env={**os.environ, **environment})
        requests = b""
        for size in [(16, 16), (97, 71), (250, 130)]:
            rgb = picture(*size)
            for chroma in (444, 422, 420):
                for quality in (20, 75, 95):
                    body = struct.pack("<5I", *size, 0, quality, chroma) + rgb.tobytes()
                    requests += b"J" + struct.pack("<I", len(body)) + body
            body = struct.pack("<5I", *size, 1, 80, 420) + rgb.tobytes()
            requests += b"J" + struct.pack("<I", len(body)) + body
            for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
                for progressive in (False, True):
                    data = saved(rgb, "JPEG", subsampling=subsampling, progressive=progressive)
                    requests += b"B" + struct.pack("<I", len(data)) + data
        return process.communicate(requests)[0]

    def test_the_bytes_do_not_depend_on_simd(self):
        want = self.answers({})
        self.assertGreater(len(want), 100000)
        for switch in ("JSIMD_FORCENONE", "JSIMD_FORCESSE2", "JSIMD_NOHUFFENC"):
            self.assertTrue(self.answers({switch: "1"}) == want, switch)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    base.PROBE = sys.argv.pop(1)
    unittest.main(verbosity=1)
