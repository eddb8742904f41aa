"""Pictures of every kind go through the transforms as their pixels do that Pillow decodes, turned upright and saved as PNG."""
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from PIL import Image, ImageOps

SHARDPACK = pathlib.Path(sys.argv.pop(1)) / "shardpack"


def picture(random, width, height):
    coarse = Image.fromarray(random.integers(0, 256, (max(2, height // 8), max(2, width // 8), 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.BICUBIC)).astype(int)
    return Image.fromarray((smooth + random.integers(-12, 13, smooth.shape)).clip(0, 255).astype(np.uint8))


def kinds(random, width, height):
    """(extension, bytes) of a picture as rotated JPEGs, grey, CMYK, palette, bits, alpha and 16 bits."""
    def encoded(image, kind, **options):
        buffer = io.BytesIO()
        image.save(buffer, kind, **options)
        return kind.lower(), buffer.getvalue()

    image = picture(random, width, height)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        yield encoded(image, "JPEG", quality=90, exif=exif, subsampling=orientation % 3, progressive=orientation % 2 == 0)
    for mode in "L", "CMYK":
        yield encoded(image.convert(mode), "JPEG")
    for mode in "P", "1", "LA", "RGBA":
        yield encoded(image.convert(mode), "PNG")
    yield encoded(Image.fromarray(np.asarray(image)[:, :, 0].astype(np.uint16) * 251), "PNG")


def upright_rgb(data):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if image.mode.startswith("I"):  # 16 bits: the upper eight
        image = Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8))
    return image.convert("RGB")


class Kinds(unittest.TestCase):
    def batch(self, dataset, count, *arguments):
        path = dataset.with_suffix(".npy")
        subprocess.run([SHARDPACK, "batch", dataset, "--shuffle", "none", "--batch-size", str(count), "--save", path, *arguments],
                       check=True, capture_output=True)
        return np.load(path)

    def test_every_kind_is_cut_and_resized_as_its_upright_pixels(self):
        with tempfile.TemporaryDirectory() as folder:
            root, random, count = pathlib.Path(folder), np.random.default_rng(1), 0
            for name in "files", "pixels":
                (root / name / "x").mkdir(parents=True)
            for width, height in [(300, 200), (17, 340), (1, 1), (3, 500), (500, 3), (257, 255)]:
                for extension, data in kinds(random, width, height):
                    (root / f"files/x/{count:03}.{extension}").write_bytes(data)
                    upright_rgb(data).save(root / f"pixels/x/{count:03}.png")
                    count += 1
            for name in "files", "pixels":
                subprocess.run([SHARDPACK, "convert", root / name, "-o", root / f"{name}.packed"], check=True, capture_output=True)
            for transform, epoch in [("eval", 0), ("train", 0), ("train", 1), ("classic", 0)]:
                with self.subTest(transform, epoch=epoch):
                    arguments = ["--transform", transform, "--epoch", str(epoch)]
                    files, pixels = (self.batch(root / f"{name}.packed", count, *arguments) for name in ("files", "pixels"))
                    np.testing.assert_array_equal(files, pixels)


if __name__ == "__main__":
    unittest.main()
