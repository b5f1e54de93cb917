"""Softmax, its loss, and accuracy, by their definitions in NumPy float64.

The gradient of the loss is (p - 1[label]) / norm; tests/golden stores it for a loss weight of 1.
PyTorch checks every loss and gradient when this script writes the file.
"""

import numpy as np
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, grid

SEED = 3

SOFTMAXES = [  # name, shape, axis
    ("rows", (3, 5), 1),
    ("channels", (2, 4, 2, 3), 1),
    ("height", (2, 2, 4, 3), 2),
    ("last_axis", (2, 2, 3, 4), -1),
    ("first_axis", (4, 3), 0),
    ("middle_axis", (2, 4, 3), 1),
]

LOSSES = [  # name, scores, ignored label or None, lines of loss_param, normalisation
    ("default_is_valid", (4, 5), None, "", "VALID"),
    ("image_valid", (2, 3, 2, 2), None, "normalization: VALID", "VALID"),
    ("image_valid_with_ignored", (2, 4, 2, 3), 1, "normalization: VALID", "VALID"),
    ("image_full_with_ignored", (2, 4, 2, 2), 2, "normalization: FULL", "FULL"),
    ("image_batch_size_with_ignored", (3, 3, 2, 2), 0, "normalization: BATCH_SIZE", "BATCH_SIZE"),
    ("image_none_with_ignored", (2, 3, 2, 2), 1, "normalization: NONE", "NONE"),
    ("legacy_normalize_true", (4, 3), 2, "normalize: true", "VALID"),
    ("legacy_normalize_false", (4, 3), 2, "normalize: false", "BATCH_SIZE"),
    ("all_ignored", (2, 3), 1, "", "VALID"),
]

ACCURACIES = [  # name, scores, top_k, ignored label or None
    ("rows", (6, 4), 1, None),
    ("top_3", (6, 5), 3, None),
    ("with_ignored", (6, 3), 1, 1),
    ("image", (2, 3, 2, 3), 1, None),
    ("image_top_2_with_ignored", (2, 4, 3, 2), 2, 0),
]


def softmax_of(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def softmax(rng, out, name, shape, axis):
    x, dy = grid(rng, *shape), grid(rng, *shape, steps=8, unit=4)
    y = softmax_of(x, axis)
    dx = y * (dy - (dy * y).sum(axis, keepdims=True))
    leaf = torch.tensor(x, requires_grad=True)
    torch.softmax(leaf, axis).backward(torch.tensor(dy))
    np.testing.assert_allclose(dx, leaf.grad.numpy(), atol=1e-12)
    out.case(name)
    out.text("layer", f'type: "Softmax"\nsoftmax_param {{ axis: {axis} }}')
    for key, values in (("x", x), ("y", y), ("dy", dy), ("dx", dx)):
        out.tensor(key, values)


def draw_labels(rng, shape, ignored, all_ignored=False):
    labels = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    if ignored is not None:
        labels.ravel()[:: 1 if all_ignored else 3] = ignored
    return labels


def loss(rng, out, name, shape, ignored, lines, normalization):
    x = grid(rng, *shape)
    labels = draw_labels(rng, shape, ignored, name == "all_ignored")
    valid = np.ones(labels.shape, bool) if ignored is None else labels != ignored
    norm = {"FULL": labels.size, "VALID": valid.sum(), "BATCH_SIZE": shape[0], "NONE": 1}
    norm = max(norm[normalization], 1)
    p = softmax_of(x, 1)
    chosen = np.take_along_axis(p, labels[:, None], 1)[:, 0]
    total = -(np.log(chosen) * valid).sum() / norm
    one_hot = np.zeros(shape)
    np.put_along_axis(one_hot, labels[:, None], 1, 1)
    dx = (p - one_hot) * valid[:, None] / norm
    leaf = torch.tensor(x, requires_grad=True)
    check = F.cross_entropy(leaf, torch.tensor(labels), reduction="sum",
                            ignore_index=-100 if ignored is None else ignored) / norm
    check.backward()
    np.testing.assert_allclose(total, check.item(), atol=1e-12)
    np.testing.assert_allclose(dx, leaf.grad.numpy(), atol=1e-12)
    ignore = "" if ignored is None else f" ignore_label: {ignored}"
    out.case(name)
    out.text("layer", f'type: "SoftmaxWithLoss"\nloss_param {{ {(lines + ignore).strip()} }}')
    for key, values in (("x", x), ("label", labels), ("loss", total), ("dx", dx), ("p", p)):
        out.tensor(key, values)


def accuracy(rng, out, name, shape, top_k, ignored):
    """A row counts when fewer than top_k other classes score as high as the true one or higher."""
    x = grid(rng, *shape, steps=3, unit=2)  # few values, so that ties are many
    labels = draw_labels(rng, shape, ignored)
    labels.ravel()[labels.ravel() == shape[1] - 1] = 0  # the last class never occurs
    rows = np.moveaxis(x, 1, -1).reshape(-1, shape[1])
    hits, counts = np.zeros(shape[1]), np.zeros(shape[1])
    for row, label in zip(rows, labels.ravel()):
        if label == ignored:
            continue
        rivals = sum(score >= row[label] for i, score in enumerate(row) if i != label)
        counts[label] += 1
        hits[label] += rivals < top_k
    ignore = "" if ignored is None else f" ignore_label: {ignored}"
    out.case(name)
    out.text("layer", f'type: "Accuracy"\naccuracy_param {{ top_k: {top_k}{ignore} }}')
    out.tensor("x", x)
    out.tensor("label", labels)
    out.tensor("accuracy", hits.sum() / counts.sum())
    out.tensor("per_class", np.where(counts > 0, hits / np.maximum(counts, 1), 0))


def main():
    rng = np.random.default_rng(SEED)
    for file, about, cases, make in (
            ("softmax.txt", "Softmax: y, and dx for dy.", SOFTMAXES, softmax),
            ("softmax_loss.txt", "SoftmaxWithLoss: loss, dx and p.", LOSSES, loss),
            ("accuracy.txt", "Accuracy: the mean, and per class.", ACCURACIES, accuracy)):
        out = GoldenFile(file, SEED, about)
        for case in cases:
            make(rng, out, *case)
        out.save()


if __name__ == "__main__":
    main()
