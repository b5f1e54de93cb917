"""Colour changes by Pillow, hues by Python's colorsys, and lighting by NumPy: augment.txt. Needs
Pillow.
"""

import colorsys

import numpy as np
import PIL
from PIL import Image, ImageEnhance

from golden_file import GoldenFile

SEED = 11
HEIGHT, WIDTH = 5, 6
VALUES = np.array([0.2175, 0.0188, 0.0045])
VECTORS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140],
                    [-0.5836, -0.6948, 0.4203]])


def planes(rgb):
    """Converts (H, W, RGB) to (BGR, H, W)."""
    return rgb[:, :, ::-1].transpose(2, 0, 1)


def turned(rgb, turn):
    def pixel(color):
        hue, saturation, value = colorsys.rgb_to_hsv(*(color / 255))
        return np.array(colorsys.hsv_to_rgb((hue + turn) % 1, saturation, value)) * 255

    return np.apply_along_axis(pixel, 2, rgb.astype(np.float64))


def lit(rgb, weights):
    add = VECTORS @ (np.array(weights) * VALUES) * 255
    return np.clip(rgb + add, 0, 255)


def main():
    rng = np.random.default_rng(SEED)
    rgb = rng.integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    rgb[0, 0] = 0
    rgb[0, 1] = 255
    rgb[0, 2] = 90  # grey
    rgb[0, 3] = (200, 200, 10)  # two equal channels
    image = Image.fromarray(rgb)
    out = GoldenFile("augment.txt", SEED, f"Changes of colors; Pillow {PIL.__version__}.")
    enhance = {"brightness": ImageEnhance.Brightness, "contrast": ImageEnhance.Contrast,
               "saturation": ImageEnhance.Color}
    for name, kind in enhance.items():
        for factor in (0.0, 0.4, 1.0, 1.7):
            out.case(f"{name} {factor}")
            out.number("by", factor)
            out.tensor("in", planes(rgb))
            out.tensor("out", planes(np.asarray(kind(image).enhance(factor))))
    for turn in (-0.5, -0.2, 0.0, 0.1, 1 / 3, 0.5):
        out.case(f"hue {turn:.3f}")
        out.number("by", turn)
        out.tensor("in", planes(rgb))
        out.tensor("out", planes(turned(rgb, turn)))
    for weights in ((0.1, -0.2, 0.05), (-1.0, 1.0, 2.0)):
        out.case(f"lighting {weights[0]}")
        for k, weight in enumerate(weights):
            out.number(f"weight{k}", weight)
        out.tensor("in", planes(rgb))
        out.tensor("out", planes(lit(rgb, weights)))
    out.save()


main()
