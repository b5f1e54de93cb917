"""The parts of neural style in PyTorch float64: Gram, total variation, and the loss of a small net
with both, with the gradient of the picture.
"""

import numpy as np
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, grid

SEED = 19


def gram(x, normalize=True):
    n, c, h, w = x.shape
    rows = x.reshape(n, c, h * w)
    sums = rows @ rows.transpose(1, 2)
    return sums / (c * h * w) if normalize else sums


def total_variation(x, power):
    down = F.pad(x[:, :, 1:] - x[:, :, :-1], (0, 0, 0, 1))
    right = F.pad(x[:, :, :, 1:] - x[:, :, :, :-1], (0, 1))
    square = down**2 + right**2
    safe = torch.where(square > 0, square, torch.ones_like(square))
    return torch.where(square > 0, safe ** (power / 2), square).sum() / len(x)


def layer_file(name, about, cases):
    rng = np.random.default_rng(SEED)
    out = GoldenFile(name, SEED, about)
    for case, prototxt, shape, function in cases:
        x = torch.tensor(grid(rng, *shape), requires_grad=True)
        y = function(x)
        dy = torch.tensor(grid(rng, *y.shape)) if y.dim() else torch.tensor(0.75).double()
        y.backward(dy)
        out.case(case)
        out.text("layer", prototxt)
        for key, value in (("x", x), ("y", y), ("dy", dy), ("dx", x.grad)):
            out.tensor(key, value)
    out.save()


def style_file():
    rng = np.random.default_rng(SEED)
    out = GoldenFile("style.txt", SEED, "A picture's style, content and smoothness, and their slope")
    picture = torch.tensor(grid(rng, 1, 3, 7, 6), requires_grad=True)
    style, content = (torch.tensor(grid(rng, 1, 3, 7, 6)) for _ in range(2))
    weight, bias = torch.tensor(grid(rng, 5, 3, 3, 3)), torch.tensor(grid(rng, 5))
    features = lambda x: F.relu(F.conv2d(x, weight, bias, padding=1))
    euclidean = lambda a, b: ((a - b) ** 2).sum() / 2
    made = features(picture)
    losses = {"style": euclidean(gram(made), gram(features(style))),
              "content": euclidean(made, features(content)),
              "variation": total_variation(picture, 2)}
    loss = 40 * losses["style"] + 0.5 * losses["content"] + 0.25 * losses["variation"]
    loss.backward()
    out.case("style")
    for key, value in (("picture", picture), ("style_picture", style), ("content_picture", content),
                       ("weight", weight), ("bias", bias), ("dpicture", picture.grad)):
        out.tensor(key, value)
    for key, value in losses.items():
        out.number(key, value)
    out.number("loss", loss)
    out.save()


def main():
    layer_file("gram.txt", "Products of channels",
               [("normalized", 'type: "Gram"', (2, 3, 4, 5), gram),
                ("sums", 'type: "Gram"\ngram_param { normalize: false }', (2, 4, 2, 3),
                 lambda x: gram(x, False))])
    layer_file("total_variation_loss.txt", "Differences of neighbours",
               [(f"power_{power}", 'type: "TotalVariationLoss"\n'
                 f"total_variation_loss_param {{ power: {power} }}", (2, 3, 4, 5),
                 lambda x, power=power: total_variation(x, power)) for power in (2, 1, 2.5)])
    style_file()


if __name__ == "__main__":
    main()
