"""Small pictures in many formats, and the pixels that OpenCV decodes: tests/golden/images/,
images.txt.

Needs opencv-python-headless, Pillow and NumPy.
"""

import io
import struct
import zlib

import cv2
import numpy as np
import PIL
from PIL import Image

from golden_file import FOLDER, GoldenFile

SEED = 5
HEIGHT, WIDTH = 7, 11
MODES = {"color": cv2.IMREAD_COLOR, "gray": cv2.IMREAD_GRAYSCALE, "stored": cv2.IMREAD_UNCHANGED}
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
          (0, 1, 1, 2))  # Adam7: first column and row, step of columns and rows


def picture(rng):
    """RGB: slopes that differ by channel, and some noise."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    slopes = np.stack([20 * x, 35 * y, 255 - 12 * (x + y)], -1)
    return np.clip(slopes + rng.integers(-8, 9, slopes.shape), 0, 255).astype(np.uint8)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(samples, depth, color_type, extra=b"", interlaced=False):
    """A PNG of rows of samples (H, W, C) or (H, W); written here, as Pillow knows few kinds."""
    def packed(part):
        rows = part.reshape(part.shape[0], -1)
        bits = np.unpackbits(rows.astype(">u2").view(np.uint8), axis=1)
        bits = bits.reshape(part.shape[0], -1, 16)[:, :, 16 - depth:].reshape(part.shape[0], -1)
        return b"".join(b"\0" + row.tobytes() for row in np.packbits(bits, axis=1))

    parts = [samples]
    if interlaced:
        parts = [samples[top::down, left::right] for left, top, right, down in PASSES]
    data = zlib.compress(b"".join(packed(part) for part in parts if part.size), 9)
    size = struct.pack(">IIBBBBB", samples.shape[1], samples.shape[0], depth, color_type, 0, 0,
                       int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + extra + chunk(b"IDAT", data) +
            chunk(b"IEND", b""))


def jpeg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def exif(orientation):
    data = Image.Exif()
    data[0x0112] = orientation
    return data.tobytes()


def files(rng):
    rgb = picture(rng)
    pil, gray = Image.fromarray(rgb), rgb[:, :, 0]
    palette = rng.integers(0, 256, (16, 3)).astype(np.uint8)
    indices = np.indices((HEIGHT, WIDTH)).sum(0) % 16
    alpha = rng.integers(0, 256, (HEIGHT, WIDTH, 1))
    wide = rng.integers(0, 65536, (HEIGHT, WIDTH, 3))
    plte, trns = chunk(b"PLTE", palette.tobytes()), chunk(b"tRNS", bytes(range(0, 240, 15)))
    yield "rgb.jpg", jpeg(pil, quality=90)
    yield "full.jpg", jpeg(pil, quality=95, subsampling=0)
    yield "progressive.jpg", jpeg(pil, quality=80, progressive=True)
    yield "gray.jpg", jpeg(pil.convert("L"), quality=90)
    yield "cmyk.jpg", jpeg(pil.convert("CMYK"), quality=95)
    for n in range(1, 9):
        yield f"turned{n}.jpg", jpeg(pil, quality=85, exif=exif(n))
    yield "rgb.png", png(rgb, 8, 2)
    yield "gray.png", png(gray, 8, 0)
    yield "rgba.png", png(np.concatenate([rgb, alpha], -1), 8, 6)
    yield "gray_alpha.png", png(np.concatenate([gray[:, :, None], alpha], -1), 8, 4)
    yield "palette.png", png(indices, 4, 3, plte)
    yield "palette_alpha.png", png(indices, 4, 3, plte + trns)
    yield "gray1.png", png(indices % 2, 1, 0)
    yield "gray4.png", png(indices, 4, 0)
    yield "rgb16.png", png(wide, 16, 2)
    yield "gray16.png", png(wide[:, :, 0], 16, 0)
    yield "interlaced.png", png(rgb, 8, 2, interlaced=True)
    yield "profile.png", png(rgb, 8, 2, chunk(b"gAMA", struct.pack(">I", 30000)) +
                             chunk(b"tEXt", b"Title\0picture"))
    yield "rgb.ppm", b"P6\n# made by hand\n11 7\n255\n" + rgb.tobytes()
    yield "gray.pgm", b"P5 11 7 255\n" + gray.tobytes()


def planar(image):
    return image[None] if image.ndim == 2 else image.transpose(2, 0, 1)


def main():
    rng = np.random.default_rng(SEED)
    golden = GoldenFile("images.txt", SEED,
                        f"What OpenCV {cv2.__version__} reads from tests/golden/images (written by "
                        f"Pillow {PIL.__version__}): C, H, W.")
    folder = FOLDER / "images"
    folder.mkdir(exist_ok=True)
    for name, content in files(rng):
        (folder / name).write_bytes(content)
        golden.case(name)
        for mode, flag in MODES.items():
            image = cv2.imdecode(np.frombuffer(content, np.uint8), flag)
            # OpenCV lets gAMA bend the grey of a picture but not its colours; neither is bent here.
            if image.dtype == np.uint8 and (name, mode) != ("profile.png", "gray"):
                golden.tensor(mode, planar(image))
    golden.save()

    golden = GoldenFile("resize.txt", SEED,
                        f"cv2.resize, INTER_LINEAR, OpenCV {cv2.__version__}. box: left, top, "
                        "width, height of the part; C, H, W.")
    source = rng.integers(0, 256, (9, 14, 3)).astype(np.uint8)
    for number, (box, height, width) in enumerate([
            ((0, 0, 14, 9), 9, 14), ((0, 0, 14, 9), 4, 6), ((0, 0, 14, 9), 20, 31),
            ((3, 2, 7, 5), 11, 4), ((13, 8, 1, 1), 3, 2), ((0, 0, 14, 9), 1, 1)]):
        left, top, columns, rows = box
        part = source[top:top + rows, left:left + columns]
        golden.case(f"resize{number}")
        golden.tensor("source", planar(source))
        golden.tensor("box", box)
        golden.tensor("result", planar(cv2.resize(part, (width, height),
                                                  interpolation=cv2.INTER_LINEAR)))
    golden.save()

    golden = GoldenFile("resize_modes.txt", SEED,
                        f"cv2.resize, OpenCV {cv2.__version__}. C, H, W.")
    source = rng.integers(0, 256, (7, 8, 3)).astype(np.uint8)
    for mode in ("NEAREST", "CUBIC", "AREA"):
        for height, width in ((7, 8), (3, 4), (10, 13), (12, 5), (1, 1)):
            golden.case(f"{mode} {height}x{width}")
            golden.text("mode", mode)
            golden.tensor("source", planar(source))
            golden.tensor("result", planar(cv2.resize(
                source, (width, height), interpolation=getattr(cv2, f"INTER_{mode}"))))
    golden.save()


main()
