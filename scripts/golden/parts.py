"""Pictures for partial decoding: tests/golden/images/waves_*.jpg; Pillow's smooth resizing:
smooth.txt; and the crops of torchvision's RandomResizedCrop: resized_crop.txt.

Needs Pillow and torchvision.
"""

import io
import math
from unittest import mock

import numpy as np
import PIL
import torchvision
from PIL import Image
from torchvision.transforms import RandomResizedCrop, transforms

from golden_file import FOLDER, GoldenFile
from philox import philox_blocks

SEED = 13
HEIGHT, WIDTH = 75, 101
STREAM, FIRST_PASS = 3, 1  # of the draws: tests/input/resized_crop_test.cc, random_resize.cc


def jpeg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", quality=80, **options)
    return out.getvalue()


def planar(image):
    return image.transpose(2, 0, 1)


def waves(rng):
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    planes = [128 + 100 * np.sin(0.3 * x + c) * np.cos(0.2 * y - c) for c in range(3)]
    image = np.stack(planes, -1) + rng.integers(0, 8, (HEIGHT, WIDTH, 3))
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))


def write_pictures(rng):
    image = waves(rng)
    files = {"full": jpeg(image, subsampling=0),
             "across": jpeg(image, subsampling=1),
             "half": jpeg(image, subsampling=2),
             "gray": jpeg(image.convert("L")),
             "restarts": jpeg(image, subsampling=2, restart_marker_rows=1)}
    for name, content in files.items():
        (FOLDER / "images" / f"waves_{name}.jpg").write_bytes(content)


def write_smooth(rng):
    golden = GoldenFile("smooth.txt", SEED,
                        f"Image.resize, BILINEAR, Pillow {PIL.__version__}. C, H, W.")
    source = rng.integers(0, 256, (11, 15, 3)).astype(np.uint8)
    for box in ((0, 0, 15, 11), (4, 3, 9, 8), (14, 0, 1, 11)):
        left, top, width, height = box
        part = Image.fromarray(source[top:top + height, left:left + width])
        for rows, columns in ((3, 4), (1, 1), (11, 15), (17, 6), (2, 23)):
            golden.case(f"{box} to {rows}x{columns}")
            golden.tensor("source", planar(source))
            golden.tensor("box", box)
            resized = part.resize((columns, rows), Image.BILINEAR)
            golden.tensor("result", planar(np.asarray(resized)))
    golden.save()


class Draws:
    """The numbers that trainer draws for a record, in the places of torch's."""

    def __init__(self, seed, number):
        blocks = [philox_blocks(seed, STREAM, FIRST_PASS + i, [number])[0] for i in range(16)]
        self.words = [int(word) for block in blocks for word in block]

    def empty(self, _):
        return self

    def uniform_(self, low, high):
        unit = (self.words.pop(0) >> 8) / 2**24
        self.value = float(low) + (float(high) - float(low)) * unit
        return self

    def item(self):
        return self.value

    def randint(self, low, high, size):
        self.value = low + (self.words.pop(0) * (high - low) >> 32)
        return self


def part_of(size, scale, ratio, seed, number):
    draws = Draws(seed, number)
    with mock.patch.object(transforms.torch, "empty", draws.empty), \
            mock.patch.object(transforms.torch, "randint", draws.randint), \
            mock.patch.object(transforms.torch, "exp", lambda d: mock.Mock(item=lambda:
                                                                           math.exp(d.value))):
        return RandomResizedCrop.get_params(Image.new("L", size[::-1]), scale, ratio)


def write_crops():
    golden = GoldenFile("resized_crop.txt", SEED,
                        f"RandomResizedCrop.get_params of torchvision {torchvision.__version__} with "
                        "trainer's random numbers: top, left, height, width of each record.")
    for size, scale, ratio in (((375, 500), (0.08, 1.0), (3 / 4, 4 / 3)),
                               ((500, 333), (0.08, 1.0), (3 / 4, 4 / 3)),
                               ((100, 900), (0.5, 1.0), (3 / 4, 4 / 3)),
                               ((900, 100), (0.5, 1.0), (3 / 4, 4 / 3)),
                               ((64, 64), (0.2, 0.6), (0.5, 0.5)),
                               ((3, 2), (0.08, 1.0), (3 / 4, 4 / 3))):
        golden.case(f"{size[0]}x{size[1]} {scale} {ratio[0]:.3f}")
        golden.tensor("size", size)
        for name, value in (("least area", scale[0]), ("greatest area", scale[1]),
                            ("least aspect", ratio[0]), ("greatest aspect", ratio[1])):
            golden.number(name.replace(" ", "_"), value)
        golden.tensor("parts", [part_of(size, scale, ratio, SEED, i) for i in range(200)])
    golden.save()


def main():
    rng = np.random.default_rng(SEED)
    write_pictures(rng)
    write_smooth(rng)
    write_crops()


if __name__ == "__main__":
    main()
