"""Convolution and inner product: outputs and all gradients, from PyTorch's autograd in float64."""

import numpy as np
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, grid

SEED = 1

# name, input (N, C, H, W), outputs, kernel, stride, pad, dilation, group, bias; pairs are (h, w)
CONVOLUTIONS = [
    ("plain", (2, 3, 5, 4), 4, (3, 3), (1, 1), (0, 0), (1, 1), 1, True),
    ("stride_and_pad", (2, 2, 6, 5), 3, (3, 3), (2, 2), (1, 1), (1, 1), 1, True),
    ("rectangular", (1, 2, 5, 7), 3, (2, 3), (1, 2), (1, 0), (1, 1), 1, True),
    ("dilated", (1, 2, 7, 6), 2, (3, 2), (1, 1), (2, 1), (2, 3), 1, True),
    ("grouped", (2, 4, 4, 4), 6, (3, 3), (1, 1), (1, 1), (1, 1), 2, True),
    ("depthwise", (1, 3, 5, 5), 3, (3, 3), (2, 1), (1, 1), (1, 1), 3, False),
    ("pointwise_without_bias", (2, 5, 3, 2), 4, (1, 1), (1, 1), (0, 0), (1, 1), 1, False),
]

# name, input, outputs, axis, transpose, bias
INNER_PRODUCTS = [
    ("image", (3, 2, 3, 2), 4, 1, False, True),
    ("image_transposed", (2, 3, 2, 2), 5, 1, True, True),
    ("axis_2", (2, 3, 5), 4, 2, False, True),
    ("axis_2_of_an_image", (2, 3, 2, 3), 2, 2, False, False),
    ("last_axis_transposed", (2, 3, 4), 3, -1, True, False),
]


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def write(out, x, weight, bias, y, dy):
    y.backward(torch.tensor(dy))
    out.tensor("x", x)
    out.tensor("weight", weight)
    if bias is not None:
        out.tensor("bias", bias)
    out.tensor("y", y)
    out.tensor("dy", dy)
    out.tensor("dx", x.grad)
    out.tensor("dweight", weight.grad)
    if bias is not None:
        out.tensor("dbias", bias.grad)


def convolution(rng, out, name, shape, outputs, kernel, stride, pad, dilation, group, has_bias):
    x = leaf(grid(rng, *shape, steps=8, unit=4))
    weight = leaf(grid(rng, outputs, shape[1] // group, *kernel, steps=8, unit=8))
    bias = leaf(grid(rng, outputs, steps=8, unit=4)) if has_bias else None
    y = F.conv2d(x, weight, bias, stride, pad, dilation, group)
    out.case(name)
    out.text("layer", f"""type: "Convolution"
convolution_param {{
  num_output: {outputs} group: {group} bias_term: {str(has_bias).lower()}
  kernel_h: {kernel[0]} kernel_w: {kernel[1]} stride_h: {stride[0]} stride_w: {stride[1]}
  pad_h: {pad[0]} pad_w: {pad[1]} dilation: {dilation[0]} dilation: {dilation[1]}
}}""")
    write(out, x, weight, bias, y, grid(rng, *y.shape, steps=4, unit=4))


def inner_product(rng, out, name, shape, outputs, axis, transpose, has_bias):
    x = leaf(grid(rng, *shape, steps=8, unit=4))
    lead = shape[:axis]
    length = int(np.prod(shape[axis:]))
    weight_shape = (length, outputs) if transpose else (outputs, length)
    weight = leaf(grid(rng, *weight_shape, steps=8, unit=8))
    bias = leaf(grid(rng, outputs, steps=8, unit=4)) if has_bias else None
    rows = x.reshape(-1, length)
    y = rows @ (weight if transpose else weight.T)
    y = (y if bias is None else y + bias).reshape(*lead, outputs)
    out.case(name)
    out.text("layer", f"""type: "InnerProduct"
inner_product_param {{
  num_output: {outputs} axis: {axis} transpose: {str(transpose).lower()}
  bias_term: {str(has_bias).lower()}
}}""")
    write(out, x, weight, bias, y, grid(rng, *y.shape, steps=4, unit=4))


def main():
    rng = np.random.default_rng(SEED)
    out = GoldenFile("convolution.txt", SEED, "Convolution: y, and gradients for dy.")
    for case in CONVOLUTIONS:
        convolution(rng, out, *case)
    out.save()
    out = GoldenFile("inner_product.txt", SEED, "InnerProduct: y, and gradients for dy.")
    for case in INNER_PRODUCTS:
        inner_product(rng, out, *case)
    out.save()


if __name__ == "__main__":
    main()
