"""Layers that normalise, by their formulas in PyTorch float64; see layers.py."""

import torch.nn.functional as F

from layers import IMAGE, case, layer, write_all


def normalised():
    for name, fields, shape in (("image", "", IMAGE), ("rows", "", (6, 3)), ("eps", "eps: 0.5", IMAGE),
                                ("three_axes", "", (2, 3, 4)), ("many_channels", "", (3, 19, 5, 7))):
        eps = 0.5 if fields else 1e-5
        case("batch_norm", name, layer("BatchNorm", "batch_norm_param", fields), [shape],
             lambda x, e=eps: F.batch_norm(x, None, None, training=True, eps=e))
    for name, fields, shape in (("learned", "scale_bias: true", IMAGE),
                                ("learned_rows", "scale_filler { value: 2 }", (6, 3))):
        case("batch_norm", name, layer("BatchNorm", "batch_norm_param", fields), [shape],
             lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), [(3,), (3,)])
    for name, fields, size, alpha, beta, k in (("plain", "", 5, 1, 0.75, 1),
                                               ("alexnet", "alpha: 0.0001", 5, 1e-4, 0.75, 1),
                                               ("fields", "local_size: 3 alpha: 2 beta: 0.5 k: 1.5",
                                                3, 2, 0.5, 1.5)):
        case("lrn", name, layer("LRN", "lrn_param", fields), [(2, 9, 2, 3)],
             lambda x, n=size, a=alpha, b=beta, k=k: F.local_response_norm(x, n, a, b, k))
    for size in (3, 5):
        case("lrn", f"within_{size}",
             layer("LRN", "lrn_param", f"local_size: {size} norm_region: WITHIN_CHANNEL"),
             [(2, 3, 5, 4)],
             lambda x, n=size: x * (1 + F.avg_pool2d(x * x, n, 1, n // 2)) ** -0.75)

    def mvn(x, eps, across, scaled):
        axes = tuple(range(1 if across else 2, x.dim()))
        d = x - x.mean(axes, keepdim=True)
        return d / ((d * d).mean(axes, keepdim=True).sqrt() + eps) if scaled else d

    for name, fields, eps, across, scaled in (
            ("plain", "", 1e-9, False, True), ("eps", "eps: 0.25", 0.25, False, True),
            ("across", "across_channels: true", 1e-9, True, True),
            ("mean_only", "normalize_variance: false", 0, False, False),
            ("across_mean_only", "across_channels: true normalize_variance: false", 0, True, False)):
        for tail, shape in (("", (2, 3, 3, 4)), ("_three_axes", (2, 3, 5))):
            case("mvn", name + tail, layer("MVN", "mvn_param", fields), [shape],
                 lambda x, e=eps, a=across, s=scaled: mvn(x, e, a, s))


def normalised_and_scaled():
    group = lambda fields: layer("GroupNorm", "group_norm_param", fields)
    for name, fields, shape, groups, eps in (
            ("image", "groups: 2", (2, 6, 3, 2), 2, 1e-5), ("rows", "groups: 2", (3, 4), 2, 1e-5),
            ("three_axes", "groups: 1 eps: 0.5", (2, 3, 4), 1, 0.5),
            ("each_channel", "groups: 3", (2, 3, 2, 4), 3, 1e-5),
            ("many_channels", "", (2, 64, 2, 3), 32, 1e-5)):
        case("group_norm", name, group(fields), [shape],
             lambda x, w, b, g=groups, e=eps: F.group_norm(x, g, w, b, e), [(shape[1],)] * 2)
    case("group_norm", "not_learned", group("groups: 2 scale_bias: false"), [(2, 4, 2, 3)],
         lambda x: F.group_norm(x, 2))
    norm = lambda fields: layer("LayerNorm", "layer_norm_param", fields)
    for shape in ((2, 3, 2, 4), (2, 3, 5), (4, 6)):
        for axis in range(-1, len(shape) - 1):
            own = shape[axis % len(shape):]
            case("layer_norm", f"{len(shape)}_axes_from_{axis}", norm(f"axis: {axis}"), [shape],
                 lambda x, w, b, own=own: F.layer_norm(x, own, w, b), [own, own])
    case("layer_norm", "many_places", norm("eps: 0.5"), [(3, 19, 2, 2)],
         lambda x, w, b: F.layer_norm(x, (19, 2, 2), w, b, 0.5), [(19, 2, 2)] * 2)
    case("layer_norm", "not_learned", norm("scale_bias: false"), [(2, 3, 2, 4)],
         lambda x: F.layer_norm(x, (3, 2, 4)))


def main():
    normalised()
    normalised_and_scaled()
    write_all()


if __name__ == "__main__":
    main()
