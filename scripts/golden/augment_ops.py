"""Writes augment_ops.txt: the operations of torchvision's RandAugment and TrivialAugmentWide, their
magnitudes, and the results of both with trainer's random numbers; affine maps, blurs, CutMix boxes.
Needs Pillow and torchvision.
"""

from unittest import mock

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, RandAugment, TrivialAugmentWide, v2
from torchvision.transforms import autoaugment
from torchvision.transforms import functional as F

from golden_file import GoldenFile, hash_word
from philox import philox_blocks

SEED = 17
STREAM, FIRST_PASS = 3, 0x31000000  # also in tests/input/augment_ops_test.cc and augment.cc
HASH = 41  # the images' stream of hash_word
NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR
MAGNITUDES = {"Identity": [0], "ShearX": [0.09, -0.3, 0.99], "ShearY": [0.15, -0.66],
              "TranslateX": [3.4, -7.9], "TranslateY": [2.2, -1.3],
              "Rotate": [9, -30, 135, 90, 180, 0], "Brightness": [0.27, -0.9, 0.99],
              "Color": [0.36, -0.27, 0.99], "Contrast": [0.27, -0.54, 0.99],
              "Sharpness": [0.27, -0.9, 0.99], "Posterize": [7, 4, 2], "Solarize": [178.5, 59.5, 0],
              "AutoContrast": [0], "Equalize": [0]}


def image_of(channels, height, width, low=0, levels=256):
    """Returns bytes in [low, low + levels) as (H, W, RGB) or (H, W); blue is the first plane."""
    words = hash_word(HASH, np.arange(channels * height * width, dtype=np.uint64))
    planes = (low + (words >> np.uint64(8)) % np.uint64(levels)).reshape(channels, height, width)
    planes = planes.astype(np.uint8)
    return planes[0] if channels == 1 else planes[::-1].transpose(1, 2, 0)


def planes_of(image):
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array[:, :, ::-1].transpose(2, 0, 1)


class Case:
    """A case whose input both this script and the test generate."""

    def __init__(self, out, name, shape, low=0, levels=256):
        out.case(name)
        out.tensor("shape", shape)
        out.number("low", low)
        out.number("levels", levels)
        self.image = Image.fromarray(np.ascontiguousarray(image_of(*shape, low, levels)))
        self.out = out

    def end(self, image):
        self.out.tensor("out", planes_of(image))


def write_operations(out):
    for index, (name, magnitudes) in enumerate(MAGNITUDES.items()):
        for magnitude in magnitudes:
            for shape, low, levels in (((3, 9, 12), 0, 256), ((1, 10, 10), 60, 100),
                                       ((3, 20, 17), 30, 40)):
                many = shape[1] == 20
                if many != (name == "Equalize") or (shape[0] == 1 and magnitude != magnitudes[-1]):
                    continue
                case = Case(out, f"operation {name} {magnitude} {shape[0]}", shape, low, levels)
                out.number("operation", index)
                out.number("magnitude", magnitude)
                case.end(autoaugment._apply_op(case.image, name, magnitude, NEAREST, None))


def write_magnitudes(out):
    for space, (height, width) in (("RandAugment", (224, 160)), ("TrivialAugmentWide", (32, 32))):
        made = getattr(autoaugment, space)()
        sizes = ((height, width),) if space == "RandAugment" else ()
        spaces = made._augmentation_space(31, *sizes)
        assert list(spaces) == list(MAGNITUDES)
        for index, (name, (magnitudes, signed)) in enumerate(spaces.items()):
            out.case(f"magnitudes {space} {name}")
            out.tensor("size", (height, width))
            out.number("operation", index)
            out.number("signed", signed)
            out.tensor("magnitudes", magnitudes.double().expand(31))


def drawn(made, image, number, words_per_operation):
    """Returns made(image) with trainer's random words, `words_per_operation` for each operation."""
    blocks = [philox_blocks(SEED, STREAM, FIRST_PASS + i, [number])[0] for i in range(4)]
    words = [int(word) for block in blocks for word in block]
    taken = [0, 0]  # operations, words of this operation

    def randint(high, size, dtype=None):
        if high == 14:
            taken[:] = [taken[0] + 1, 0]
        place = (taken[0] - 1) * words_per_operation + taken[1]
        if high == 2:
            place = taken[0] * words_per_operation - 1  # the sign is the operation's last word
        taken[1] += 1
        return torch.tensor([words[place] * high >> 32], dtype=dtype)

    with mock.patch.object(autoaugment.torch, "randint", randint):
        return made(image)


def write_draws(out):
    for number in range(24):
        shape = (3, 9, 12) if number % 3 else (1, 10, 10)
        for made, words in ((RandAugment(3, 15), 2), (TrivialAugmentWide(fill=77), 3)):
            case = Case(out, f"draw {type(made).__name__} {number}", shape, 20, 200)
            out.number("number", number)
            case.end(drawn(made, case.image, number, words))


def write_maps(out, rng):
    for i in range(12):
        shape = ((3, 9, 12), (1, 10, 10), (1, 7, 15))[i % 3]
        angle, scale = rng.uniform(-180, 180), rng.uniform(0.5, 1.6)
        shift = [int(rng.integers(-3, 4)), int(rng.integers(-3, 4))]
        shear = [rng.uniform(-40, 40), rng.uniform(-40, 40)]
        for how in (NEAREST, BILINEAR):
            case = Case(out, f"affine {how.value} {i}", shape)
            for key, value in (("degrees", angle), ("shift_x", shift[0]), ("shift_y", shift[1]),
                               ("scale", scale), ("shear_x", shear[0]), ("shear_y", shear[1]),
                               ("bilinear", how == BILINEAR), ("fill", 20 * i)):
                out.number(key, value)
            fill = [20 * i] * shape[0]
            case.end(F.affine(case.image, float(f"{angle:.9g}"), shift, float(f"{scale:.9g}"),
                              [float(f"{x:.9g}") for x in shear], how, fill))


def write_blurs(out):
    for size, sigma in ((3, 0.5), (5, 1.3), (9, 2.0), (13, 0.1), (15, 30.0)):
        case = Case(out, f"blur {size} {sigma}", (3, 9, 12))
        out.number("kernel_size", size)
        out.number("sigma", sigma)
        case.end(F.gaussian_blur(case.image, [size, size], [sigma, sigma]))


def write_boxes(out, rng):
    out.case("boxes")
    rows = []
    for _ in range(40):
        height, width = (int(n) for n in rng.integers(1, 60, 2))
        row, column = int(rng.integers(height)), int(rng.integers(width))
        kept = np.float64(f"{rng.beta(0.7, 0.7):.6g}")
        made, places = v2.CutMix(num_classes=2), iter((column, row))
        made._dist = mock.Mock(sample=lambda _, kept=kept: kept)
        with mock.patch.object(torch, "randint",
                               lambda *_, size, places=places: torch.tensor([next(places)])):
            params = made.make_params([torch.zeros(2, 3, height, width)])
        left, top, right, bottom = params["box"]
        rows.append([kept, row, column, height, width, top, left, bottom, right,
                     params["lam_adjusted"]])
    out.tensor("boxes", rows)


def main():
    rng = np.random.default_rng(SEED)
    out = GoldenFile("augment_ops.txt", SEED,
                     f"torchvision {torchvision.__version__}, Pillow {PIL.__version__}.")
    write_operations(out)
    write_magnitudes(out)
    write_draws(out)
    write_maps(out, rng)
    write_blurs(out)
    write_boxes(out, rng)
    out.save()


main()
