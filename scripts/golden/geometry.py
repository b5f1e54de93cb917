"""Layers that crop, select, repeat or reorder values, by PyTorch float64 and autograd; see
layers.py.
"""

import numpy as np
import torch
import torch.nn.functional as F

from layers import IMAGE, SEED, case, layer, write_all


def chosen():
    case("parameter", "image", layer("Parameter", "parameter_param",
                                     "shape { dim: 2 dim: 3 dim: 2 dim: 4 }"), [],
         lambda w: w * 1, [IMAGE])
    far = (np.arange(48) * 29 % 48 / 8 - 2).reshape(2, 3, 2, 4)  # no two alike in an item
    top = lambda fields: layer("ArgMax", "argmax_param", fields)
    case("argmax", "whole", top("top_k: 3"), [far],
         lambda x: x.detach().flatten(1).topk(3)[1].double().reshape(2, 1, 3, 1))
    for axis in (0, 1, 2, 3):
        case("argmax", f"axis_{axis}", top(f"axis: {axis} top_k: 2"), [far],
             lambda x, axis=axis: x.detach().topk(2, axis)[1].double())
    case("crop", "image", layer("Crop", "crop_param", "offset: 1 offset: 2"),
         [(2, 3, 4, 5), (1, 1, 2, 3)], lambda x, like: x[:, :, 1:3, 2:5] * 1, still=(1,))
    case("crop", "all_axes", layer("Crop", "crop_param", "axis: 0 offset: 1"),
         [(3, 3, 4, 5), (2, 1, 3, 3)], lambda x, like: x[1:3, 1:2, 1:4, 1:4] * 1, still=(1,))
    index = np.array([[0, 4, 2], [4, 4, 1]])
    for name, shape in (("rows", (6,)), ("to_image", (1, 2, 3)), ("from_image", (1, 3, 1, 2))):
        case("embed", name, layer("Embed", "embed_param", "input_dim: 5 num_output: 3"),
             [index.reshape(shape)], lambda x, w, b: F.embedding(x.detach().long(), w) + b,
             [(5, 3), (3,)])
    case("batch_reindex", "image", layer("BatchReindex"), [IMAGE, np.array([1, 0, 1, 1, 0])],
         lambda x, index: x[index.detach().long()], still=(1,))
    case("batch_reindex", "some", layer("BatchReindex"), [(4, 3), np.array([3, 1, 3])],
         lambda x, index: x[index.detach().long()], still=(1,))


def spread():
    deconv = lambda fields: layer("Deconvolution", "convolution_param", fields)
    case("deconvolution", "image", deconv("num_output: 4 kernel_size: 3 stride: 2 pad: 1"),
         [(2, 3, 4, 3)], lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1), [(3, 4, 3, 3), (4,)])
    case("deconvolution", "groups", deconv("num_output: 6 kernel_size: 2 group: 2 dilation: 2"),
         [(2, 4, 3, 3)], lambda x, w, b: F.conv_transpose2d(x, w, b, groups=2, dilation=2),
         [(4, 3, 2, 2), (6,)])
    case("deconvolution", "line", deconv("num_output: 2 kernel_size: 3 stride: 2"), [(2, 3, 4)],
         lambda x, w, b: F.conv_transpose1d(x, w, b, 2), [(3, 2, 3), (2,)])
    case("deconvolution", "volume", deconv("num_output: 2 kernel_size: 2 bias_term: false"),
         [(1, 2, 2, 3, 2)], lambda x, w: F.conv_transpose3d(x, w), [(2, 2, 2, 2, 2)])
    columns = lambda fields: layer("Im2col", "convolution_param", fields)
    case("im2col", "image", columns("kernel_h: 3 kernel_w: 2 stride: 2 pad: 1"), [(2, 3, 4, 5)],
         lambda x: F.unfold(x, (3, 2), padding=1, stride=2).reshape(2, 18, 2, 3))
    case("im2col", "dilation", columns("kernel_size: 2 dilation: 2"), [(2, 3, 4, 5)],
         lambda x: F.unfold(x, 2, dilation=2).reshape(2, 12, 2, 3))
    apart = (np.arange(336) * 97 % 336 / 8).reshape(2, 3, 7, 8)  # no two alike

    def pyramid(x, pool):
        levels = [pool(x, (7, 8)), pool(x, (4, 4), padding=(1, 0)), pool(x, (2, 2), padding=(1, 0))]
        return torch.cat([y.flatten(1) for y in levels], 1)

    for name, pool in (("MAX", F.max_pool2d), ("AVE", F.avg_pool2d)):
        case("spp", name, layer("SPP", "spp_param", f"pyramid_height: 3 pool: {name}"), [apart],
             lambda x, pool=pool: pyramid(x, pool))


def conv4d(x, w, b):
    """A convolution over four axes as sums of convolutions over the last three."""
    steps = x.shape[2] - w.shape[2] + 1
    planes = [sum(F.conv3d(x[:, :, a + i], w[:, :, i]) for i in range(w.shape[2]))
              for a in range(steps)]
    return torch.stack(planes, 2) + b.reshape(-1, 1, 1, 1, 1)


def channels_elsewhere():
    conv = lambda fields: layer("Convolution", "convolution_param", fields)
    deconv = lambda fields: layer("Deconvolution", "convolution_param", fields)
    file = "convolution_axis"
    lead = lambda x, f: f(x.flatten(0, 1)).unflatten(0, x.shape[:2])
    case(file, "five_axes", conv("axis: 2 num_output: 4 kernel_size: 3 pad: 1 stride: 2"),
         [(2, 2, 3, 5, 4)],
         lambda x, w, b: lead(x, lambda v: F.conv2d(v, w, b, 2, 1)), [(4, 3, 3, 3), (4,)])
    case(file, "four_axes", conv("axis: -2 num_output: 2 kernel_size: 3"), [(2, 3, 4, 5)],
         lambda x, w, b: lead(x, lambda v: F.conv1d(v, w, b)), [(2, 4, 3), (2,)])
    case(file, "one_image", conv("axis: 0 num_output: 2 kernel_size: 2"), [(3, 5, 4)],
         lambda x, w, b: F.conv2d(x[None], w, b)[0], [(2, 3, 2, 2), (2,)])
    case(file, "one_volume", conv("axis: 0 num_output: 4 kernel_size: 2 group: 2"), [(2, 3, 4, 3)],
         lambda x, w, b: F.conv3d(x[None], w, b, groups=2)[0], [(4, 1, 2, 2, 2), (4,)])
    case(file, "no_spatial_axis", conv("num_output: 2 kernel_size: 1"), [(4, 3)],
         lambda x, w, b: x @ w.T + b, [(2, 3), (2,)])
    case(file, "four_spatial_axes", conv("num_output: 2 kernel_size: 2"), [(2, 2, 3, 2, 3, 2)],
         conv4d, [(2, 2, 2, 2, 2, 2), (2,)])
    case(file, "deconvolution_five_axes", deconv("axis: 2 num_output: 4 kernel_size: 3 stride: 2"),
         [(2, 2, 3, 2, 3)], lambda x, w, b: lead(x, lambda v: F.conv_transpose2d(v, w, b, 2)),
         [(3, 4, 3, 3), (4,)])
    case(file, "deconvolution_four_axes", deconv("axis: 2 num_output: 2 kernel_size: 2"),
         [(2, 2, 3, 4)], lambda x, w, b: lead(x, lambda v: F.conv_transpose1d(v, w, b)),
         [(3, 2, 2), (2,)])
    case(file, "deconvolution_no_spatial_axis", deconv("num_output: 2 kernel_size: 1"), [(4, 3)],
         lambda x, w, b: x @ w + b, [(3, 2), (2,)])
    case(file, "im2col_five_axes", layer("Im2col", "convolution_param", "axis: 2 kernel_size: 2"),
         [(2, 2, 3, 3, 4)],
         lambda x: lead(x, lambda v: F.unfold(v, 2).reshape(4, 12, 2, 3)))
    case(file, "im2col_four_axes", layer("Im2col", "convolution_param", "axis: 2 kernel_size: 2"),
         [(2, 2, 3, 4)],
         lambda x: lead(x, lambda v: F.unfold(v[:, :, None], (1, 2)).reshape(4, 6, 3)))


def infogain():
    rng = np.random.default_rng(SEED + 1)
    gain = rng.random((3, 3)).round(2)
    for name, axis, shape, labels in (("rows", 1, (4, 3), np.array([0, 2, 1, 2])),
                                      ("image", 1, (2, 3, 1, 2), np.array([[[[0, 2]]], [[[1, 9]]]])),
                                      ("last_axis", -1, (2, 2, 3), np.array([[1, 0], [2, 9]]))):
        def loss(x, y, h, axis=axis):
            rows = x.movedim(axis, -1).reshape(-1, 3).log_softmax(1)
            keep = y.detach().reshape(-1) != 9
            return -(h.detach()[y.detach().reshape(-1)[keep].long()] * rows[keep]).sum() / keep.sum()

        fields = f"axis: {axis} }} loss_param {{ ignore_label: 9"
        case("infogain_loss", name, layer("InfogainLoss", "infogain_loss_param", fields),
             [rng.normal(size=shape).round(3), labels, gain], loss, still=(1, 2))


def main():
    for group in (chosen, spread, channels_elsewhere, infogain):
        group()
    write_all()


if __name__ == "__main__":
    main()
