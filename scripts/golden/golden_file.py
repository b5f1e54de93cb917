"""Writes the golden files for tests/support/golden.h, and computes the numbers that both sides
generate.
"""

import pathlib
import platform
import sys

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
WIDTH = 100
# The files of each folder.
FOLDERS = {
    "layers/activations":
        "absval bnll clip elu exp gelu hard_swish log mish power prelu relu sigmoid "
        "silu softmax swish tanh threshold",
    "layers/losses":
        "accuracy argmax contrastive_loss dice_loss euclidean_loss hinge_loss infogain_loss "
        "infogain_loss_weighted kl_divergence_loss l1_loss multinomial_logistic_loss "
        "sigmoid_cross_entropy_loss sigmoid_cross_entropy_loss_weighted sigmoid_focal_loss "
        "smooth_l1_loss softmax_focal_loss softmax_loss softmax_loss_weighted "
        "total_variation_loss",
    "layers/norms":
        "batch_norm group_norm layer_norm lrn mvn normalize",
    "layers/products":
        "bias convolution convolution_axis convolution_depthwise deconvolution "
        "depthwise_convolution eltwise embed gram inner_product lstm lstm_unit "
        "matmul multi_head_attention parameter rnn scale",
    "layers/shapes":
        "batch_reindex concat crop detection_output im2col interp permute pooling "
        "prior_box ps_roi_pooling reduction reorg roi_pooling slice spp tile",
    "nets":
        "big_net_alexnet big_net_googlenet big_net_mobilenet_v2 big_net_resnet50 "
        "big_net_vit_tiny nets ssd_net style",
    "rules":
        "lbfgs new_rules pipeline rules sgd",
    "images":
        "augment augment_ops images resize resize_modes resized_crop smooth",
}


def path(name):
    """The path of a file, such as tests/golden/rules/sgd.txt."""
    stem = name.removesuffix(".txt")
    folder, = (folder for folder, stems in FOLDERS.items() if stem in stems.split())
    return FOLDER / folder / name


def versions():
    return f"python {platform.python_version()}, numpy {np.__version__}, torch {torch.__version__}"


class GoldenFile:
    """One file; save() writes it. Numbers keep six significant digits."""

    def __init__(self, name, seed, about):
        self.name = name
        self.lines = [f"# {about}", f"# Made by scripts/golden/{pathlib.Path(sys.argv[0]).name}, "
                      f"seed {seed}; {versions()}."]

    def case(self, name):
        self.lines += ["", f"case {name}"]

    def text(self, key, text):
        self.lines += [f"text {key}", text.strip("\n"), "end"]

    def tensor(self, name, values):
        values = np.asarray(values.detach() if torch.is_tensor(values) else values, np.float64)
        line = " ".join(["tensor", name, *map(str, values.shape), ":"])
        for value in values.ravel():
            word = format_number(value)
            if len(line) + 1 + len(word) > WIDTH:
                self.lines.append(line)
                line = word
            else:
                line += " " + word
        self.lines.append(line)

    def number(self, name, value):
        value = value.item() if torch.is_tensor(value) else value
        self.lines.append(f"number {name} {value:.9g}")

    def save(self):
        path(self.name).write_text("\n".join(self.lines) + "\n")


def format_number(value):
    text = f"{value:.6g}"
    return "0" if text == "-0" else text


def grid(rng, *shape, steps=32, unit=16):
    """Random multiples of 1/unit within [-steps/unit, steps/unit]: exact in float and bfloat16."""
    return rng.integers(-steps, steps + 1, shape).astype(np.float64) / unit


def mix(x):
    x = np.asarray(x, np.uint64) & np.uint64(0xFFFFFFFF)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor) & np.uint64(0xFFFFFFFF)
    return x ^ (x >> np.uint64(16))


def hash_word(stream, index):
    """HashWord of tests/support/golden.h."""
    return mix(mix(stream) + np.asarray(index, np.uint64))


def hash_weight(stream, shape, bound):
    """HashWeight for a whole tensor, as float64 of the float32 value."""
    unit = (hash_word(stream, np.arange(np.prod(shape))) >> np.uint64(8)).astype(np.float64) / 2**24
    return ((2 * unit - 1) * bound).astype(np.float32).astype(np.float64).reshape(shape)


def hash_images(indices, shape, classes):
    """Labels (n) and bytes (n, *shape) of made-up images."""
    indices, size = np.asarray(indices, np.uint64), np.uint64(np.prod(shape))
    labels = hash_word(101, indices) % np.uint64(classes)
    pixels = np.arange(size, dtype=np.uint64)
    noise = hash_word(102, indices[:, None] * size + pixels) >> np.uint64(25)
    pattern = hash_word(103, labels[:, None] * size + pixels) >> np.uint64(31)
    data = noise + np.uint64(128) * pattern
    return labels.astype(np.int64), data.astype(np.float64).reshape(-1, *shape)


def hash_mean(shape):
    """A made-up mean of such images: whole numbers below 256."""
    words = hash_word(104, np.arange(np.prod(shape), dtype=np.uint64)) >> np.uint64(24)
    return words.astype(np.float64).reshape(shape)
