#!/usr/bin/env python3
"""Draws pictures for experiments: a folder of PNG files for each of four shapes.

    scripts/make_shapes.py FOLDER [PICTURES]      (of each shape, 80)

Colours, sizes and places are random, but the same in every call. The pictures have different sizes,
as photographs have.
"""

import pathlib
import random
import struct
import sys
import zlib

# Tells whether the point (x, y) is inside; the shape is between -1 and 1.
SHAPES = {
    "circle": lambda x, y: x * x + y * y < 1,
    "cross": lambda x, y: min(abs(x), abs(y)) < 0.3 and max(abs(x), abs(y)) < 1,
    "square": lambda x, y: max(abs(x), abs(y)) < 0.85,
    "triangle": lambda x, y: -0.8 < y < 0.9 and abs(x) < (y + 0.8) * 0.6,
}


def png(width, height, rows):
    """The bytes of a PNG file; `rows` are bytes of red, green and blue."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))

    pixels = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))


def colours(rng):
    """Two clearly different ones."""
    while True:
        one, other = ([rng.randrange(256) for _ in range(3)] for _ in range(2))
        if sum(abs(a - b) for a, b in zip(one, other)) > 250:
            return one, other


def draw(inside, rng):
    width, height = rng.randrange(48, 73), rng.randrange(48, 73)
    radius = rng.uniform(0.25, 0.4) * min(width, height)
    centre_x = rng.uniform(radius, width - radius)
    centre_y = rng.uniform(radius, height - radius)
    front, back = colours(rng)
    rows = []
    for y in range(height):
        row = bytearray()
        for x in range(width):
            hit = inside((x - centre_x) / radius, (y - centre_y) / radius)
            grain = rng.randrange(-12, 13)
            row += bytes(min(255, max(0, value + grain)) for value in (front if hit else back))
        rows.append(bytes(row))
    return png(width, height, rows)


def main(arguments):
    if len(arguments) not in (1, 2):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[0])
    rng = random.Random(1)
    for name, inside in SHAPES.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(int(arguments[1]) if len(arguments) > 1 else 80):
            (folder / name / f"{name}{number:03d}.png").write_bytes(draw(inside, rng))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
