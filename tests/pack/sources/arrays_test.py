"""HDF5 files with arrays of images and labels as sources, against what h5py wrote."""

import os
import struct
import sys
import unittest

try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import probed
from probed import SourceCase


def samples_of(pixels):
    """Filtered pixels as docs/formats/pixels.md says, in whole numbers of NumPy, a sample at a time."""
    magic, version, shape, maximum, width, height = struct.unpack_from("<4sBBHII", pixels)
    assert (magic, version, shape >> 3, maximum) == (b"\x91SPX", 1, 0, 0)
    channels, depth = (shape & 3) + 1, 16 if shape & 4 else 8
    rows = np.frombuffer(pixels, np.uint8, offset=16).reshape(height, -1)
    out = np.zeros((height, width, channels), np.int64)
    zeros = np.zeros((width, channels), np.int64)
    for y in range(height):
        stored = rows[y, 1:].view("<u2" if depth == 16 else np.uint8).astype(np.int64).reshape(width, channels)
        if depth == 16:
            stored = np.where(stored & 1, -((stored + 1) // 2), stored // 2)
        above = out[y - 1] if y else zeros
        for x in range(width):
            a, b, c = (out[y, x - 1] if x else zeros[0]), above[x], (above[x - 1] if x else zeros[0])
            p = a + b - c
            near = np.abs(p - np.stack([a, b, c])).argmin(axis=0)
            prediction = [0 * a, a, b, (a + b) // 2, np.choose(near, [a, b, c])][rows[y, 0]]
            out[y, x] = (stored[x] + prediction) % 2**depth
    return out.astype(np.uint16 if depth == 16 else np.uint8)


class ArraysCase(SourceCase):
    def write(self, images, labels, name="data.h5", classes=None, images_options=None, **more):
        with h5py.File(self.work / name, "w", **more) as file:
            file.create_dataset("images", data=images, **(images_options or {}))
            if labels is not None:
                file["labels"] = labels
            if classes is not None:
                file["class_names"] = classes
        return self.work / name

    def random(self, *shape, dtype=np.uint8, seed=1):
        draw = np.random.default_rng(seed)
        # Half of it smooth, so that every filter is met.
        noise = draw.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
        ramp = np.arange(noise[0].size).reshape(noise[0].shape).astype(dtype)
        return np.where(np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) % 2 == 0, noise, ramp)

    def check(self, path, hwc, labels):
        found = self.probe("auto", path)
        self.assertEqual(found.keys(), [f"{n:06}" for n in range(len(hwc))])
        self.assertEqual(found.labels(), labels)
        for one, image in zip(found.inputs, hwc, strict=True):
            self.assertEqual(one.error, "")
            np.testing.assert_array_equal(samples_of(one.content), image)
        return found


class Arrays(ArraysCase):
    def test_images_with_channels_last_first_or_none_come_out_as_they_are(self):
        labels = [5, -3, 2**62, 0, 1, 2]
        for shape in ((6, 7, 5, 3), (6, 7, 5, 1), (6, 7, 5, 4)):
            images = self.random(*shape)
            self.check(self.write(images, labels), images, labels)
        for shape in ((6, 3, 8, 5), (6, 1, 8, 5), (6, 4, 8, 5)):
            images = self.random(*shape)
            self.check(self.write(images, labels), images.transpose(0, 2, 3, 1), labels)
        images = self.random(6, 9, 11)
        found = self.check(self.write(images, labels), images[..., None], labels)
        self.assertEqual(found.kinds(), {"integer"})
        self.assertEqual(found.inputs[3].described, f"{self.work}/data.h5: images[3]")

    def test_every_way_of_storing_them_gives_the_same(self):
        images = self.random(40, 6, 5, 3)
        labels = list(range(40))
        for options in ({}, {"chunks": (1, 6, 5, 3)}, {"chunks": (7, 4, 4, 2), "compression": "gzip"}, {"chunks": True, "shuffle": True, "fletcher32": True}):
            self.check(self.write(images, labels, images_options=options), images, labels)
        self.check(self.write(images, labels, userblock_size=1024), images, labels)
        self.check(self.write(images, labels, libver="latest"), images, labels)
        images = self.random(6, 7, 5, 3, dtype=np.uint16)
        for dtype in ("<u2", ">u2"):
            self.check(self.write(images.astype(dtype), labels[:6]), images, labels[:6])
            self.check(self.write(images.astype(dtype).transpose(0, 3, 1, 2), labels[:6]), images, labels[:6])

    def test_what_was_never_written_is_the_fill_value(self):
        with h5py.File(self.work / "data.h5", "w") as file:
            file.create_dataset("images", (3, 7, 5, 3), np.uint8, fillvalue=9)
            file["labels"] = [1, 2, 3]
        self.check(self.work / "data.h5", np.full((3, 7, 5, 3), 9, np.uint8), [1, 2, 3])

    def test_image_files_of_any_length_come_out_byte_for_byte(self):
        contents = [os.urandom(length) for length in (1, 1000, 0, 70_000)]
        for dtype in (np.uint8, np.int8):
            with h5py.File(self.work / "data.hdf5", "w") as file:
                images = file.create_dataset("images", (4,), h5py.vlen_dtype(dtype))
                for number, content in enumerate(contents):
                    images[number] = np.frombuffer(content, dtype)
                file["labels"] = np.array([[3], [1], [4], [1]], np.uint8)
            found = self.probe("auto", self.work / "data.hdf5")
            self.assertEqual([i.content for i in found.inputs], contents)
            self.assertEqual(found.labels(), [3, 1, 4, 1])
        opaque = np.array([np.void(content.ljust(1000, b"\0")) for content in contents[:2]])
        found = self.probe("auto", self.write(opaque, [1, 2]))
        self.assertEqual([i.content for i in found.inputs], [content.ljust(1000, b"\0") for content in contents[:2]])

    def test_whole_labels_with_names_are_classes_in_the_files_order(self):
        images = self.random(4, 3, 5)
        names = ["zebra", "ape", "käfer", "unused"]
        fixed = np.array([name.encode() for name in names])
        for classes in (names, fixed):
            found = self.check(self.write(images, np.array([2, 0, 1, 2], np.uint16), classes=classes), images[..., None], ["käfer", "zebra", "ape", "käfer"])
            self.assertEqual((found.classes, found.kinds()), (names, {"class"}))
        self.refused("auto", self.write(images, [0, 1, 2, 4], classes=names), "labels[3]", "the label 4", "4 classes")
        self.refused("auto", self.write(images, [0, 1, 2, -1], classes=names), "labels[3]", "the label -1")

    def test_fractional_labels_are_kept_to_the_last_bit(self):
        images = self.random(4, 3, 5)
        for dtype in (np.float16, np.float32, np.float64):
            labels = np.array([0.1, -2.5, 1e-5, 3], dtype)
            found = self.probe("auto", self.write(images, labels))
            self.assertEqual([float(i.label_text) for i in found.inputs], [float(label) for label in labels])
            self.assertEqual(found.kinds(), {"float"})
        self.refused("auto", self.write(images, [0.5, float("nan"), 1, 2]), "labels[1]", "finite")

    def test_whole_labels_of_each_width_are_exact(self):
        images = self.random(2, 3, 5)
        for dtype in (np.int8, np.uint8, np.int16, np.uint32, np.int64, ">i8", ">u2"):
            limits = np.iinfo(dtype)
            self.assertEqual(self.probe("auto", self.write(images, np.array([limits.min, limits.max], dtype))).labels(), [limits.min, limits.max])
        self.refused("auto", self.write(images, np.array([0, 2**64 - 1], np.uint64)), "18446744073709551615", "image 1", "64 bits")

    def test_labels_past_those_read_at_once_are_in_step_with_their_images(self):
        count = 66_000
        images = np.arange(count * 2, dtype=np.uint32).astype(np.uint8).reshape(count, 1, 2)
        labels = np.arange(count, dtype=np.int64) * 3
        found = self.probe("auto", self.write(images, labels))
        self.assertEqual(found.labels(), labels.tolist())
        self.assertEqual([i.content[-2] for i in found.inputs[-3:]], [images[n, 0, 0] for n in (-3, -2, -1)])


class Refused(ArraysCase):
    def test_pictures_of_fractions_and_odd_types_are_refused_with_what_to_do(self):
        for images, words in ((np.zeros((2, 4, 5, 3), np.float32), "scale them to uint8"), (np.zeros((2, 4, 5), np.int32), "uint8 and uint16"),
                              (np.zeros((2, 4, 5), np.int8), "uint8 and uint16"), (np.zeros((2, 4, 5), np.bool_), "neither"),
                              (np.zeros((2, 20), np.uint8), "[2, 20]"), (np.zeros((2, 3, 5, 3), np.uint8), "first or last"),
                              (np.zeros((2, 7, 5, 2), np.uint8), "1, 3 nor 4"), (np.zeros((2, 1, 1, 1, 1), np.uint8), "no pictures"),
                              (np.array([b"abc", b"de"]), "strings"), (np.zeros((2, 0, 5), np.uint8), "no pixels"), (np.uint8(3), "no pictures")):
            self.refused("auto", self.write(images, [1, 2]), words)

    def test_labels_that_are_missing_or_do_not_fit_are_refused(self):
        images = np.zeros((2, 4, 5), np.uint8)
        for labels, words in ((None, 'no dataset "labels" (there is "images")'), ([1, 2, 3], "2 images and 3 labels"), ([[1, 2], [3, 4]], "[2, 2]"),
                              ([b"a", b"b"], "numbers"), (3, "[]")):
            self.refused("auto", self.write(images, labels), words)
        with h5py.File(self.work / "other.h5", "w") as file:
            file["x"] = images
            file.create_group("y")
        self.refused("auto", self.work / "other.h5", 'no dataset "images"', '"x", "y"')
        with h5py.File(self.work / "group.h5", "w") as file:
            file.create_group("images")
        self.refused("auto", self.work / "group.h5", "not a dataset")

    def test_nothing_outside_of_the_file_is_followed(self):
        inner = self.write(np.zeros((2, 4, 5), np.uint8), [1, 2], "inner.h5")
        (self.work / "raw.bin").write_bytes(bytes(40))
        with h5py.File(self.work / "link.h5", "w") as file:
            file["images"] = h5py.ExternalLink(str(inner), "images")
        self.refused("auto", self.work / "link.h5", "link into another file")
        with h5py.File(self.work / "soft.h5", "w") as file:
            file["elsewhere"] = h5py.ExternalLink(str(inner), "/")
            file["images"] = h5py.SoftLink("/elsewhere/images")
        self.refused("auto", self.work / "soft.h5", "soft link")
        with h5py.File(self.work / "raw.h5", "w") as file:
            file.create_dataset("images", (2, 4, 5), np.uint8, external=[(str(self.work / "raw.bin"), 0, 40)])
        self.refused("auto", self.work / "raw.h5", "other files")
        with h5py.File(self.work / "virtual.h5", "w") as file:
            layout = h5py.VirtualLayout((2, 4, 5), np.uint8)
            layout[:] = h5py.VirtualSource(str(inner), "images", (2, 4, 5))
            file.create_virtual_dataset("images", layout)
        self.refused("auto", self.work / "virtual.h5", "virtual dataset")

    def test_a_filter_that_libhdf5_lacks_is_named(self):
        self.refused("auto", self.write(np.zeros((2, 4, 5), np.uint8), [1, 2], images_options={"compression": "lzf"}), "filter 32000 (lzf)")
        with h5py.File(self.work / "zstd.h5", "w") as file:
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_chunk((1, 4, 5))
            properties.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (3,))
            h5py.h5d.create(file.id, b"images", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((2, 4, 5)), properties)
            file["labels"] = [1, 2]
        self.refused("auto", self.work / "zstd.h5", "filter 32015 (zstd)")

    def test_images_and_chunks_too_large_for_memory_are_refused_before_it_is_taken(self):
        for shape, chunk, words in (((2, 70_000, 70_000), (1, 70_000, 20_000), "1 GiB"), ((2, 70_000, 70_000), (1, 100, 100), "4 GiB"),
                                    ((2, 2**40, 2**40), (1, 100, 100), "4 GiB")):
            with h5py.File(self.work / "large.h5", "w") as file:
                file.create_dataset("images", shape, np.uint8, chunks=chunk)
                file["labels"] = [1, 2]
            self.refused("auto", self.work / "large.h5", words)

    def test_files_cut_short_or_damaged_are_refused_in_one_line(self):
        path = self.write(self.random(50, 30, 30, 3), list(range(50)))
        whole = path.read_bytes()
        for size in (len(whole) - 1, len(whole) // 2, 100):
            path.write_bytes(whole[:size])
            self.refused("auto", path, "HDF5")
        path.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\xff" * 500)
        self.refused("auto", path, "HDF5")
        path.write_bytes(b"no hdf5 at all")
        self.refused("auto", path, "HDF5")

    def test_damage_inside_of_compressed_images_is_of_those_images_alone(self):
        images = self.random(4, 30, 30, 3)
        path = self.write(images, [0, 1, 2, 3], images_options={"chunks": (1, 30, 30, 3), "compression": "gzip"})
        with h5py.File(path) as file:
            chunk = file["images"].id.get_chunk_info(2)
        content = bytearray(path.read_bytes())
        content[chunk.byte_offset + 20 : chunk.byte_offset + 40] = bytes(20)
        path.write_bytes(content)
        found = self.probe("auto", path)
        self.assertEqual([bool(i.error) for i in found.inputs], [False, False, True, False])
        np.testing.assert_array_equal(samples_of(found.inputs[3].content), images[3])


if __name__ == "__main__":
    probed.PROBE.append(sys.argv.pop(1))
    unittest.main()
