"""Pooling with Caffe's window rules, and ReLU, as NumPy loops.

The output size rounds up (or down with round_mode FLOOR). With padding, a last window that would
start after the image and its leading pad is dropped. MAX reads only the image and uses the first of
equal values. AVE divides by the window's area within the padded image.
"""

import math

import numpy as np

from golden_file import GoldenFile, grid

SEED = 2

# name, input, method, kernel, stride, pad, round mode; pairs are (h, w)
POOLINGS = [
    ("max_even", (2, 2, 4, 6), "MAX", (2, 2), (2, 2), (0, 0), "CEIL"),
    ("max_overlapping_last_window_cut", (1, 2, 6, 5), "MAX", (3, 3), (2, 2), (0, 0), "CEIL"),
    ("max_floor", (1, 2, 6, 5), "MAX", (3, 2), (2, 2), (0, 0), "FLOOR"),
    ("max_padded", (1, 2, 5, 5), "MAX", (3, 3), (2, 2), (1, 1), "CEIL"),
    ("max_padded_last_window_dropped", (1, 1, 3, 4), "MAX", (2, 2), (2, 2), (1, 1), "CEIL"),
    ("max_rectangular", (1, 1, 5, 7), "MAX", (2, 3), (1, 2), (0, 1), "CEIL"),
    ("average_even", (2, 2, 4, 4), "AVE", (2, 2), (2, 2), (0, 0), "CEIL"),
    ("average_last_window_cut", (1, 2, 6, 5), "AVE", (3, 3), (2, 2), (0, 0), "CEIL"),
    ("average_floor", (1, 1, 6, 5), "AVE", (3, 3), (2, 2), (0, 0), "FLOOR"),
    ("average_padded", (1, 2, 5, 4), "AVE", (3, 3), (2, 2), (1, 1), "CEIL"),
    ("average_pad_and_cut", (1, 1, 7, 7), "AVE", (4, 3), (3, 3), (1, 2), "CEIL"),
    ("average_padded_last_window_dropped", (1, 1, 3, 4), "AVE", (2, 2), (2, 2), (1, 1), "CEIL"),
]


def out_length(length, kernel, stride, pad, any_pad, mode):
    """`any_pad`: whether either axis has padding; only then is the last window looked at."""
    rounding = math.ceil if mode == "CEIL" else math.floor
    count = rounding((length + 2 * pad - kernel) / stride) + 1
    if any_pad and (count - 1) * stride >= length + pad:
        count -= 1
    return count


def pool(x, dy, method, kernel, stride, pad):
    """y, the winners' indices h * W + w (MAX), and dx."""
    n, c, height, width = x.shape
    y, winners, dx = np.zeros(dy.shape), np.zeros(dy.shape), np.zeros(x.shape)
    for b, ch, i, j in np.ndindex(*dy.shape):
        top, left = i * stride[0] - pad[0], j * stride[1] - pad[1]
        if method == "MAX":
            cells = [(x[b, ch, h, w], h, w) for h in range(max(top, 0), min(top + kernel[0], height))
                     for w in range(max(left, 0), min(left + kernel[1], width))]
            value, h, w = max(cells, key=lambda cell: cell[0])  # max() keeps the first of equals
            y[b, ch, i, j], winners[b, ch, i, j] = value, h * width + w
            dx[b, ch, h, w] += dy[b, ch, i, j]
            continue
        bottom, right = min(top + kernel[0], height + pad[0]), min(left + kernel[1], width + pad[1])
        area = (bottom - top) * (right - left)
        rows, cols = slice(max(top, 0), min(bottom, height)), slice(max(left, 0), min(right, width))
        y[b, ch, i, j] = x[b, ch, rows, cols].sum() / area
        dx[b, ch, rows, cols] += dy[b, ch, i, j] / area
    return y, winners, dx


def pooling(rng, out, name, shape, method, kernel, stride, pad, mode):
    x = grid(rng, *shape, steps=9, unit=4)
    size = [out_length(shape[2 + a], kernel[a], stride[a], pad[a], any(pad), mode) for a in (0, 1)]
    dy = grid(rng, *shape[:2], *size, steps=8, unit=4)
    y, winners, dx = pool(x, dy, method, kernel, stride, pad)
    out.case(name)
    out.text("layer", f"""type: "Pooling"
pooling_param {{
  pool: {method} round_mode: {mode} kernel_h: {kernel[0]} kernel_w: {kernel[1]}
  stride_h: {stride[0]} stride_w: {stride[1]} pad_h: {pad[0]} pad_w: {pad[1]}
}}""")
    for key, values in (("x", x), ("y", y), ("dy", dy), ("dx", dx)):
        out.tensor(key, values)
    if method == "MAX":
        out.tensor("winners", winners)


def relu(rng, out, name, slope):
    x = grid(rng, 2, 3, 2, 2, steps=6, unit=4)
    x[0, 0, 0, 0] = 0
    dy = grid(rng, *x.shape, steps=8, unit=4)
    out.case(name)
    out.text("layer", f'type: "ReLU"\nrelu_param {{ negative_slope: {slope} }}')
    out.tensor("x", x)
    out.tensor("y", np.maximum(x, 0) + slope * np.minimum(x, 0))
    out.tensor("dy", dy)
    out.tensor("dx", dy * np.where(x > 0, 1, slope))


def main():
    rng = np.random.default_rng(SEED)
    out = GoldenFile("pooling.txt", SEED, "Pooling: y, winners (MAX) and dx for dy.")
    for case in POOLINGS:
        pooling(rng, out, *case)
    out.save()
    out = GoldenFile("relu.txt", SEED, "ReLU: y, and dx for dy.")
    for name, slope in (("plain", 0), ("leaky", 0.25), ("negative_slope", -0.5)):
        relu(rng, out, name, slope)
    out.save()


if __name__ == "__main__":
    main()
