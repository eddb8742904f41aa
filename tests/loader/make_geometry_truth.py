"""Writes geometry_truth.inc: what torchvision 0.26 cuts and resizes to, asked of torchvision itself.

    pip install torch==2.11.* torchvision==0.26.* pillow
    python make_geometry_truth.py > geometry_truth.inc
"""
import torch
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms import functional as F
from PIL import Image

SIZES = [(1, 1), (1, 9), (7, 1), (2, 3), (3, 4), (4, 3), (28, 28), (32, 31), (100, 75), (75, 101), (224, 224), (255, 257), (333, 500),
         (500, 375), (640, 427), (1024, 683), (3000, 17), (19, 2999), (4032, 3024), (8191, 6143)]
# Exact in float32, so that what uniform_(s, s) draws is s.
SCALES = [0.078125, 0.125, 0.33203125, 0.5, 0.71875, 0.9921875, 1.0]
RATIOS = [0.75, 0.8125, 0.96875, 1.0, 1.03125, 1.1875, 1.3125]


def crop(w, h, scale, ratio):
    """Size of get_params' crop for one drawn scale and ratio; all ten tries draw the same, so a crop that does not fit is the fallback."""
    image = Image.new("L", (w, h))
    # exp(log(ratio)) in float32 is the aspect torchvision works with; its fallback looks at the bounds, so those stay 3/4 and 4/3.
    log_ratio = torch.log(torch.tensor([ratio, ratio]))
    aspect = torch.exp(torch.empty(1).uniform_(log_ratio[0], log_ratio[1])).item()
    uniform, exp = torch.Tensor.uniform_, torch.exp
    draws = []

    def fixed(self, a=0.0, b=1.0):  # first the scale, then the log of the aspect
        draws.append(1)
        return self.fill_(scale if len(draws) % 2 else float(log_ratio[0]))

    torch.Tensor.uniform_ = fixed
    try:
        _, _, ch, cw = RandomResizedCrop.get_params(image, scale=[0.08, 1.0], ratio=[3 / 4, 4 / 3])
    finally:
        torch.Tensor.uniform_ = uniform
    tries = len(draws) // 2
    return aspect, cw, ch, int(tries == 10 and not fits(w, h, scale, aspect))


def fits(w, h, scale, aspect):
    area = w * h * scale
    cw, ch = int(round((area * aspect) ** 0.5)), int(round((area / aspect) ** 0.5))
    return 0 < cw <= w and 0 < ch <= h


print("// Made by make_geometry_truth.py from torchvision 0.26.0: do not edit.")
print("// width, height, scale, aspect (drawn) -> width and height of the crop, and whether it is the fallback")
print("constexpr CropTruth kCrops[] = {")
for w, h in SIZES:
    for scale, ratio in zip(SCALES * len(RATIOS), [r for r in RATIOS for _ in SCALES]):
        aspect, cw, ch, fallback = crop(w, h, scale, ratio)
        print(f"    {{{w}, {h}, {scale!r}, {aspect!r}, {cw}, {ch}, {'true' if fallback else 'false'}}},")
print("};")
print("// width, height, size -> resized width and height")
print("constexpr ResizeTruth kResizes[] = {")
for w, h in SIZES:
    for size in (1, 28, 224, 256, 257, 320):
        rh, rw = F._compute_resized_output_size((h, w), [size])
        print(f"    {{{w}, {h}, {size}, {rw}, {rh}}},")
print("};")
print("// size, crop -> offset of the centre, read off a picture whose columns are numbered")
print("constexpr CentreTruth kCentres[] = {")
for size in (8, 9, 10, 11, 13, 17, 63, 64, 255):
    for c in range(1, 9):
        image = Image.new("L", (size, size))
        image.putdata([x for _ in range(size) for x in range(size)])
        print(f"    {{{size}, {c}, {F.center_crop(image, [c, c]).getpixel((0, 0))}}},")
print("};")
