"""Layers of region-based detectors, as NumPy loops.

Corners and cells are computed in float32, because the layers are defined on floats. Sums and
gradients are computed in float64.
"""

import numpy as np

from golden_file import GoldenFile, grid

SEED = 21
f32 = np.float32


def half_away(x):
    """C's round(): halves go away from zero."""
    return f32(np.sign(x) * np.floor(np.abs(f32(x)) + f32(0.5)))


def clip(value, size):
    return int(min(max(value, 0), size))


def rounded_span(first, last, scale, i, parts, size):
    """Fast R-CNN: corners are scaled and rounded to pixels; both pixels belong to the region."""
    start, stop = int(half_away(f32(first) * f32(scale))), int(half_away(f32(last) * f32(scale)))
    step = f32(max(stop - start + 1, 1)) / f32(parts)
    begin, end = int(np.floor(f32(i) * step)), int(np.ceil(f32(i + 1) * step))
    return clip(begin + start, size), clip(end + start, size)


def scaled_span(first, last, scale, i, parts, size):
    """R-FCN: corners are rounded, the last one is moved by one, then both are scaled."""
    start, stop = half_away(first) * f32(scale), (half_away(last) + f32(1)) * f32(scale)
    step = f32(max(stop - start, f32(0.1))) / f32(parts)
    begin, end = np.floor(f32(i) * step + start), np.ceil(f32(i + 1) * step + start)
    return clip(begin, size), clip(end, size)


def cell(span, region, scale, row, column, rows, columns, height, width):
    _, x1, y1, x2, y2 = region
    top, bottom = span(y1, y2, scale, row, rows, height)
    left, right = span(x1, x2, scale, column, columns, width)
    return slice(top, bottom), slice(left, right)


def roi_pooling(x, regions, dy, rows, columns, scale):
    y, dx = np.zeros(dy.shape), np.zeros(x.shape)
    for r, c, i, j in np.ndindex(*dy.shape):
        at = cell(rounded_span, regions[r], scale, i, j, rows, columns, *x.shape[2:])
        n = int(regions[r][0])
        part = x[n, c][at]
        if part.size == 0:
            continue
        h, w = np.unravel_index(np.argmax(part), part.shape)  # the first of equals
        y[r, c, i, j] = part[h, w]
        dx[n, c, at[0].start + h, at[1].start + w] += dy[r, c, i, j]
    return y, dx


def ps_roi_pooling(x, regions, dy, side, scale):
    y, dx = np.zeros(dy.shape), np.zeros(x.shape)
    for r, c, i, j in np.ndindex(*dy.shape):
        at = cell(scaled_span, regions[r], scale, i, j, side, side, *x.shape[2:])
        n, channel = int(regions[r][0]), (c * side + i) * side + j
        part = x[n, channel][at]
        if part.size == 0:
            continue
        y[r, c, i, j] = part.mean()
        dx[n, channel][at] += dy[r, c, i, j] / part.size
    return y, dx


# Within the image, one pixel, turned around, half outside, wholly outside, halves to be rounded.
REGIONS = np.array([
    [0, 0, 0, 111, 95], [1, 17, 33, 17, 33], [1, 60, 70, 20, 10], [0, -40, 50, 70, 300],
    [1, 500, 500, 600, 600], [0, 8, 24, 40, 56], [1, 3, 5, 77, 91],
], np.float64)


def write(out, name, layer, inputs, y, dy, gradients):
    out.case(name)
    out.text("layer", layer)
    for i, values in enumerate(inputs):
        out.tensor(f"x{i or ''}", values)
    out.tensor("y", y)
    out.tensor("dy", dy)
    for key, values in gradients.items():
        out.tensor(key, values)


def pooled(rng):
    out = GoldenFile("roi_pooling.txt", SEED, "ROIPooling: y, and dx for dy.")
    for name, rows, columns, scale, regions in (
            ("fast_rcnn", 2, 3, 0.0625, REGIONS), ("more_cells_than_pixels", 5, 4, 0.0625, REGIONS),
            ("full_size", 3, 2, 1.0, REGIONS / [1, 16, 16, 16, 16])):
        x = grid(rng, 2, 3, 6, 7, steps=40, unit=8)
        dy = grid(rng, len(regions), 3, rows, columns, steps=8, unit=4)
        y, dx = roi_pooling(x, regions, dy, rows, columns, scale)
        write(out, name, f"""type: "ROIPooling"
roi_pooling_param {{ pooled_h: {rows} pooled_w: {columns} spatial_scale: {scale} }}""",
              (x, regions), y, dy, {"dx": dx})
    out.save()


def position_sensitive(rng):
    out = GoldenFile("ps_roi_pooling.txt", SEED, "PSROIPooling: y, and dx for dy.")
    for name, outputs, side, scale in (("rfcn", 2, 3, 0.0625), ("one_cell", 3, 1, 0.0625),
                                       ("half_size", 1, 2, 0.5)):
        regions = REGIONS if scale < 0.5 else REGIONS / [1, 8, 8, 8, 8]
        x = grid(rng, 2, outputs * side * side, 6, 7, steps=40, unit=8)
        dy = grid(rng, len(regions), outputs, side, side, steps=8, unit=4)
        y, dx = ps_roi_pooling(x, regions, dy, side, scale)
        write(out, name, f"""type: "PSROIPooling"
psroi_pooling_param {{ spatial_scale: {scale} output_dim: {outputs} group_size: {side} }}""",
              (x, regions), y, dy, {"dx": dx})
    out.save()


def smooth_l1(rng):
    out = GoldenFile("smooth_l1_loss.txt", SEED, "SmoothL1Loss: y, and gradients for dy.")
    for name, shape, sigma, weights in (
            ("plain", (3, 4), 1, 0), ("inside", (3, 4), 1, 1), ("sigma", (2, 4, 2, 3), 3, 2),
            ("wide", (5, 2), 0.5, 2)):
        a, b = grid(rng, *shape), grid(rng, *shape)
        a.flat[0] = b.flat[0]
        inputs = [a, b] + [np.abs(grid(rng, *shape, steps=4, unit=4)) for _ in range(weights)]
        inside, outside = (inputs[2:] + [np.ones(shape)] * 2)[:2]
        dy, d = 0.75, inside * (a - b)
        near = np.abs(d) < 1 / sigma**2
        loss = np.where(near, 0.5 * sigma**2 * d**2, np.abs(d) - 0.5 / sigma**2)
        slope = np.where(near, sigma**2 * d, np.sign(d)) * inside * outside * dy / shape[0]
        write(out, name, f"""type: "SmoothL1Loss"
smooth_l1_loss_param {{ sigma: {sigma} }}""",
              inputs, (outside * loss).sum() / shape[0], dy, {"dx": slope, "dx1": -slope})
    out.save()


def main():
    rng = np.random.default_rng(SEED)
    pooled(rng)
    position_sensitive(rng)
    smooth_l1(rng)


if __name__ == "__main__":
    main()
