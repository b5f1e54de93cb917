"""Layers by their formulas in PyTorch float64; autograd gives every gradient.

A file per layer type; a case holds the inputs x, x1, ..., the parameters weight, bias, param2,
..., the outputs y, y1, ..., random dy, dy1, ... and the gradients dx, dx1, ..., dweight, dbias, ...
"""

import numpy as np
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, grid

SEED = 11
CASES = {}  # file -> list of (name, prototxt, inputs, parameters, function)


def case(file, name, prototxt, inputs, function, params=(), still=()):
    """inputs and params: shapes, or arrays; inputs numbered in `still` have no gradient."""
    CASES.setdefault(file, []).append((name, prototxt, inputs, params, function, still))


def make(rng, out, name, prototxt, inputs, params, function, still):
    def leaf(spec):
        values = grid(rng, *spec) if isinstance(spec, tuple) else np.asarray(spec, np.float64)
        return torch.tensor(values, requires_grad=True)

    xs, ws = [leaf(s) for s in inputs], [leaf(s) for s in params]
    ys = function(*xs, *ws)
    ys = ys if isinstance(ys, tuple) else (ys,)
    dys = [torch.tensor(grid(rng, *y.shape, steps=8, unit=4)) for y in ys]
    dys = [dy if dy.dim() else torch.tensor(0.75, dtype=torch.float64) for dy in dys]
    if any(y.requires_grad for y in ys):
        torch.autograd.backward(ys, dys)
    out.case(name)
    out.text("layer", prototxt)
    number = lambda stem, i: stem + (str(i) if i else "")
    for i, x in enumerate(xs):
        out.tensor(number("x", i), x)
        if i not in still and x.grad is not None:
            out.tensor(number("dx", i), x.grad)
    for i, w in enumerate(ws):
        stem = ("weight", "bias")[i] if i < 2 else f"param{i}"
        out.tensor(stem, w)
        out.tensor("d" + stem, w.grad)
    for i, (y, dy) in enumerate(zip(ys, dys)):
        out.tensor(number("y", i), y)
        if y.requires_grad:
            out.tensor(number("dy", i), dy)


def layer(kind, param="", fields=""):
    return f'type: "{kind}"' + (f"\n{param} {{ {fields} }}" if param else "")


IMAGE = (2, 3, 2, 4)


def unary(file, kind, name, param, fields, function, shape=IMAGE):
    case(file, name, layer(kind, param, fields), [shape], function)


def element_wise():
    unary("sigmoid", "Sigmoid", "plain", "", "", torch.sigmoid)
    unary("tanh", "TanH", "plain", "", "", torch.tanh)
    unary("elu", "ELU", "plain", "", "", F.elu)
    unary("elu", "ELU", "alpha", "elu_param", "alpha: 0.5", lambda x: F.elu(x, 0.5))
    unary("elu", "ELU", "negative_alpha", "elu_param", "alpha: -0.5 lambda: 2",
          lambda x: 2 * torch.where(x > 0, x, -0.5 * (x.exp() - 1)))
    unary("swish", "Swish", "plain", "", "", F.silu)
    unary("swish", "Swish", "beta", "swish_param", "beta: 1.5",
          lambda x: x * torch.sigmoid(1.5 * x))
    unary("silu", "SiLU", "plain", "", "", F.silu)
    wide = np.linspace(-5.1, 5.2, 48).round(2).reshape(IMAGE)
    unary("gelu", "GELU", "plain", "", "", F.gelu, wide)
    unary("gelu", "GELU", "approximate", "gelu_param", "approximate: true",
          lambda x: F.gelu(x, approximate="tanh"), wide)
    unary("mish", "Mish", "plain", "", "", F.mish, wide)
    unary("hard_swish", "HardSwish", "plain", "", "", F.hardswish, wide)
    unary("clip", "Clip", "range", "clip_param", "min: -0.5 max: 1.25",
          lambda x: x.clamp(-0.5, 1.25))
    unary("absval", "AbsVal", "plain", "", "", torch.abs)
    unary("bnll", "BNLL", "plain", "", "", F.softplus)
    unary("power", "Power", "square", "power_param", "power: 2 scale: 0.5 shift: -0.25",
          lambda x: (0.5 * x - 0.25) ** 2)
    unary("power", "Power", "line", "power_param", "scale: 3 shift: 1", lambda x: 3 * x + 1)
    unary("power", "Power", "root", "power_param", "power: 0.5 scale: 0.5 shift: 2",
          lambda x: (0.5 * x + 2) ** 0.5)
    unary("power", "Power", "cube", "power_param", "power: 3", lambda x: x**3)
    unary("power", "Power", "inverse", "power_param", "power: -1 shift: 3", lambda x: 1 / (x + 3))
    unary("exp", "Exp", "natural", "", "", torch.exp)
    unary("exp", "Exp", "base_2", "exp_param", "base: 2 scale: 0.5 shift: 1",
          lambda x: 2 ** (0.5 * x + 1))
    unary("log", "Log", "natural", "log_param", "shift: 3", lambda x: torch.log(x + 3))
    unary("log", "Log", "base_10", "log_param", "base: 10 scale: 0.5 shift: 2",
          lambda x: torch.log10(0.5 * x + 2))
    unary("threshold", "Threshold", "plain", "threshold_param", "threshold: 0.5",
          lambda x: (x.detach() > 0.5).double())
    for name, shape in (("image", IMAGE), ("rows", (4, 3)), ("three_axes", (2, 3, 4))):
        case("prelu", name, layer("PReLU"), [shape], lambda x, w: F.prelu(x, w), [(3,)])
    case("prelu", "shared", layer("PReLU", "prelu_param", "channel_shared: true"), [IMAGE],
         lambda x, w: F.prelu(x, w.reshape(1)), [np.array(0.3125)])


def joined():
    image, three = [IMAGE, IMAGE], [IMAGE, IMAGE, IMAGE]
    elt = lambda fields: layer("Eltwise", "eltwise_param", fields)
    case("eltwise", "sum", elt(""), image, lambda a, b: a + b)
    case("eltwise", "sum_coeff", elt("coeff: 2 coeff: -1 coeff: 0.5"), three,
         lambda a, b, c: 2 * a - b + 0.5 * c)
    case("eltwise", "product", elt("operation: PROD"), three, lambda a, b, c: a * b * c)
    far = np.arange(24).reshape(2, 12) * 7 % 24 / 8 + 0.25  # no two alike, none zero
    case("eltwise", "product_by_division", elt("operation: PROD stable_prod_grad: false"),
         [far, far[:, ::-1].copy()], lambda a, b: a * b)
    case("eltwise", "maximum", elt("operation: MAX"),
         [far, far[:, ::-1].copy() + 0.0625, far[::-1].copy() + 0.03125],
         lambda a, b, c: torch.maximum(torch.maximum(a, b), c))
    cat = lambda axis: layer("Concat", "concat_param", f"axis: {axis}")
    for axis in (0, 1, 2, 3, -1):
        shapes = [tuple(n + (i if k == axis % 4 else 0) for k, n in enumerate((2, 3, 2, 4)))
                  for i in range(3)]
        case("concat", f"image_axis_{axis}", cat(axis), shapes,
             lambda *xs, axis=axis: torch.cat(xs, axis))
    case("concat", "rows", layer("Concat", "concat_param", "concat_dim: 0"), [(2, 3), (1, 3)],
         lambda *xs: torch.cat(xs, 0))
    case("concat", "single", cat(1), [IMAGE], lambda x: x * 1)
    for axis, points in ((0, ()), (1, (1,)), (2, (1, 3)), (-1, (2,))):
        fields = f"axis: {axis} " + " ".join(f"slice_point: {p}" for p in points)
        split = lambda x, axis=axis, points=points: torch.tensor_split(
            x, points if points else 2, axis)
        case("slice", f"image_axis_{axis}", layer("Slice", "slice_param", fields), [(2, 3, 4, 5)],
             lambda x, split=split: tuple(part * 1 for part in split(x)))
    for axis in (0, 1, 2, 3):
        repeats = [3 if k == axis else 1 for k in range(4)]
        case("tile", f"image_axis_{axis}", layer("Tile", "tile_param", f"axis: {axis} tiles: 3"),
             [(2, 3, 2, 2)], lambda x, repeats=repeats: x.repeat(repeats))
    case("tile", "rows", layer("Tile", "tile_param", "tiles: 2"), [(2, 3)],
         lambda x: x.repeat(1, 2))


def reduced():
    operations = {"SUM": lambda x: x.sum(-1), "ASUM": lambda x: x.abs().sum(-1),
                  "SUMSQ": lambda x: (x * x).sum(-1), "MEAN": lambda x: x.mean(-1)}
    for op, function in operations.items():
        for axis in (0, 1, 2, 3, -2):
            keep = axis % 4
            fields = f"operation: {op} axis: {axis} coeff: 0.5"
            case("reduction", f"{op.lower()}_axis_{axis}",
                 layer("Reduction", "reduction_param", fields), [(2, 3, 2, 4)],
                 lambda x, f=function, k=keep: 0.5 * f(x.reshape(*x.shape[:k], -1)))


def broadcast():
    shapes = [("channels", "", (3,), (1, 3, 1, 1)), ("pixels", "axis: 2 num_axes: 2", (2, 4), (2, 4)),
              ("all_but_items", "num_axes: -1", (3, 2, 4), (3, 2, 4)),
              ("everything", "axis: 0 num_axes: -1", IMAGE, IMAGE),
              ("items", "axis: 0", (2,), (2, 1, 1, 1)),
              ("channels_and_rows", "num_axes: 2", (3, 2), (3, 2, 1)),
              ("columns", "axis: -1", (4,), (4,)), ("number", "num_axes: 0", (), ())]
    for name, fields, shape, view in shapes:
        spec = shape if shape else np.array(1.25)
        case("scale", name, layer("Scale", "scale_param", fields), [IMAGE],
             lambda x, w, view=view: x * w.reshape(view), [spec])
        case("scale", name + "_bias", layer("Scale", "scale_param", fields + " bias_term: true"),
             [IMAGE], lambda x, w, b, view=view: x * w.reshape(view) + b.reshape(view),
             [spec, spec if shape == () else shape])
        case("bias", name, layer("Bias", "bias_param", fields), [IMAGE],
             lambda x, w, view=view: x + w.reshape(view), [spec])
    for name, axis, shape, view in (("two_items", 0, (2,), (2, 1, 1, 1)),
                                    ("two_equal", 0, IMAGE, IMAGE),
                                    ("two_channels", 1, (3,), (3, 1, 1)),
                                    ("two_pixels", 2, (2, 4), (2, 4))):
        case("scale", name, layer("Scale", "scale_param", f"axis: {axis}"), [IMAGE, shape],
             lambda x, s, view=view: x * s.reshape(view))
        case("bias", name, layer("Bias", "bias_param", f"axis: {axis}"), [IMAGE, shape],
             lambda x, s, view=view: x + s.reshape(view))
    case("scale", "rows", layer("Scale"), [(4, 3)], lambda x, w: x * w, [(3,)])
    case("bias", "three_axes", layer("Bias"), [(2, 3, 4)], lambda x, w: x + w[:, None], [(3,)])


def losses():
    rng = np.random.default_rng(SEED + 1)
    case("euclidean_loss", "image", layer("EuclideanLoss"), [IMAGE, IMAGE],
         lambda a, b: ((a - b) ** 2).sum() / (2 * a.shape[0]))
    case("euclidean_loss", "items", layer("EuclideanLoss"), [(5,), (5,)],
         lambda a, b: ((a - b) ** 2).sum() / 10)
    target = rng.random(IMAGE).round(2)
    holes = np.where(rng.random(IMAGE) < 0.3, 255, target)
    for name, fields, t, norm in (("plain", "", target, "BATCH"),
                                  ("full", "normalization: FULL", target, "FULL"),
                                  ("valid", "normalization: VALID ignore_label: 255", holes, "VALID"),
                                  ("batch_ignored", "ignore_label: 255", holes, "BATCH"),
                                  ("none", "normalization: NONE", target, "NONE"),
                                  ("old_valid", "normalize: true ignore_label: 255", holes, "VALID")):
        counted = torch.tensor(t < 2)
        divisor = {"BATCH": 2, "FULL": t.size, "VALID": int(counted.sum()), "NONE": 1}[norm]
        case("sigmoid_cross_entropy_loss", name,
             layer("SigmoidCrossEntropyLoss", "loss_param", fields), [IMAGE, t],
             lambda x, y, c=counted, d=divisor: F.binary_cross_entropy_with_logits(
                 x[c], y[c].detach(), reduction="sum") / d, still=(1,))
    labels = np.array([0, 2, 1, 2])

    def hinge(x, y, power):
        sign = torch.full_like(x, -1).scatter(1, y.long()[:, None], 1)
        return ((1 - sign * x).clamp(min=0) ** power).sum() / x.shape[0]

    for norm, power in (("L1", 1), ("L2", 2)):
        case("hinge_loss", norm, layer("HingeLoss", "hinge_loss_param", f"norm: {norm}"),
             [rng.normal(size=(4, 3)).round(3), labels],
             lambda x, y, p=power: hinge(x, y, p), still=(1,))
    p = rng.random((4, 3)).round(3)
    case("multinomial_logistic_loss", "plain", layer("MultinomialLogisticLoss"), [p, labels],
         lambda x, y: -x.gather(1, y.long()[:, None]).log().sum() / 4, still=(1,))
    pairs = [rng.normal(size=(5, 4)).round(2) / 2 for _ in range(2)] + [np.array([1, 0, 0, 1, 0])]

    def contrastive(a, b, y, margin, legacy):
        d2 = ((a - b) ** 2).sum(1)
        far = margin - d2 if legacy else margin - d2.sqrt()
        far = far.clamp(min=0) if legacy else far.clamp(min=0) ** 2
        return (y * d2 + (1 - y) * far).sum() / (2 * len(y))

    for name, fields, margin, legacy in (("plain", "margin: 2", 2, False),
                                         ("legacy", "margin: 3 legacy_version: true", 3, True)):
        case("contrastive_loss", name, layer("ContrastiveLoss", "contrastive_loss_param", fields),
             pairs, lambda a, b, y, m=margin, old=legacy: contrastive(a, b, y.detach(), m, old),
             still=(2,))


def weighted_losses():
    rng = np.random.default_rng(SEED + 2)
    weights = (2, 0.25, 1.5, 0.5)
    for name, fields, shape, smoothing, mode in (
            ("rows", "", (6, 4), 0, "VALID"),
            ("image_ignored", "ignore_label: 2", (2, 4, 2, 3), 0, "VALID"),
            ("smoothed", "label_smoothing: 0.2", (6, 4), 0.2, "VALID"),
            ("image_smoothed_ignored", "label_smoothing: 0.3 ignore_label: 0", (2, 4, 3, 2), 0.3,
             "VALID"),
            ("small_weights", "", (1, 4), 0, "VALID"),
            ("full", "normalization: FULL ignore_label: 1", (2, 4, 2, 2), 0, "FULL"),
            ("batch_smoothed", "normalization: BATCH_SIZE label_smoothing: 0.1", (2, 4, 2, 2), 0.1,
             "BATCH_SIZE"), ("none", "normalization: NONE", (5, 4), 0, "NONE")):
        spots = (shape[0], *shape[2:])
        sizes = {"VALID": None, "FULL": int(np.prod(spots)), "BATCH_SIZE": shape[0], "NONE": 1}
        target = np.ones(spots) if name == "small_weights" else rng.integers(0, 4, spots)
        ignored = int(fields.split("ignore_label: ")[1][0]) if "ignore" in fields else -100
        case("softmax_loss_weighted", name,
             layer("SoftmaxWithLoss", "loss_param",
                   " ".join([f"class_weight: {w}" for w in weights] + [fields]).strip()),
             [shape, target],
             lambda x, y, s=smoothing, d=sizes[mode], i=ignored: F.cross_entropy(
                 x, y.detach().long(), torch.tensor(weights, dtype=torch.float64), ignore_index=i,
                 label_smoothing=s, reduction="sum" if d else "mean") / (d or 1), still=(1,))


def focal_losses():
    rng = np.random.default_rng(SEED + 3)

    def sigmoid_focal(x, t, gamma, alpha):
        """The formula of torchvision.ops.sigmoid_focal_loss."""
        p = torch.sigmoid(x)
        hit = p * t + (1 - p) * (1 - t)
        loss = F.binary_cross_entropy_with_logits(x, t, reduction="none") * (1 - hit) ** gamma
        return loss if alpha < 0 else loss * (alpha * t + (1 - alpha) * (1 - t))

    hard = (rng.random(IMAGE) < 0.4).astype(float)
    soft = rng.random(IMAGE).round(2)
    holes = np.where(rng.random(IMAGE) < 0.3, 255, hard)
    for name, fields, loss_fields, t, gamma, alpha, norm in (
            ("plain", "", "", hard, 2, 0.25, "BATCH"),
            ("gamma_half", "gamma: 0.5 alpha: 0.75", "", hard, 0.5, 0.75, "BATCH"),
            ("gamma_0", "gamma: 0 alpha: -1", "", hard, 0, -1, "BATCH"),
            ("soft_targets", "gamma: 1.5 alpha: 0.5", "", soft, 1.5, 0.5, "BATCH"),
            ("valid", "", "normalization: VALID ignore_label: 255", holes, 2, 0.25, "VALID"),
            ("full", "gamma: 3", "normalization: FULL", hard, 3, 0.25, "FULL")):
        counted = torch.tensor(t < 2)
        divisor = {"BATCH": 2, "FULL": t.size, "VALID": int(counted.sum())}[norm]
        case("sigmoid_focal_loss", name,
             layer("SigmoidFocalLoss", "focal_loss_param", fields) +
             f"\nloss_param {{ {loss_fields} }}", [IMAGE, t],
             lambda x, y, c=counted, d=divisor, g=gamma, a=alpha: sigmoid_focal(
                 x[c], y[c].detach(), g, a).sum() / d, still=(1,))

    def softmax_focal(x, y, gamma, weights, ignored):
        log_p = torch.log_softmax(x, 1)
        label = y.detach().long()
        counts = (label != ignored).double()
        picked = log_p.gather(1, torch.where(label == ignored, 0, label)[:, None])[:, 0]
        w = torch.tensor(weights, dtype=torch.float64)[torch.where(label == ignored, 0, label)]
        loss = -w * (1 - picked.exp()) ** gamma * picked * counts
        return loss.sum(), (w * counts).sum()

    weights = (2, 0.25, 1.5, 0.5)
    for name, fields, loss_fields, shape, gamma, used, ignored in (
            ("rows", "", "", (6, 4), 2, None, -100),
            ("gamma_half", "gamma: 0.5", "", (5, 4), 0.5, None, -100),
            ("gamma_0", "gamma: 0", "", (5, 4), 0, None, -100),
            ("image_ignored", "gamma: 1", "ignore_label: 2", (2, 4, 2, 3), 1, None, 2),
            ("image_weighted", "", "ignore_label: 1", (2, 4, 3, 2), 2, weights, 1)):
        target = rng.integers(0, 4, (shape[0], *shape[2:]))
        classes = " ".join(f"class_weight: {w}" for w in used or ())
        case("softmax_focal_loss", name,
             layer("SoftmaxFocalLoss", "focal_loss_param", fields) +
             f"\nloss_param {{ {loss_fields} {classes} }}", [shape, target],
             lambda x, y, g=gamma, w=used or (1, 1, 1, 1), i=ignored: (
                 lambda total, divisor: total / divisor)(*softmax_focal(x, y, g, w, i)), still=(1,))


def distribution_losses():
    rng = np.random.default_rng(SEED + 4)
    for name, shape in (("image", IMAGE), ("items", (5,)), ("rows", (4, 3))):
        case("l1_loss", name, layer("L1Loss"), [shape, shape],
             lambda a, b: F.l1_loss(a, b, reduction="sum") / a.shape[0])
    for name, fields, shape, axis in (("rows", "", (4, 5), 1), ("image", "", IMAGE, 1),
                                      ("last_axis", "axis: -1", (2, 3, 4), 2)):
        target = rng.random(shape) * (rng.random(shape) < 0.7) + 1e-3
        target = (target / target.sum(axis, keepdims=True)).round(4)
        case("kl_divergence_loss", name, layer("KLDivergenceLoss", "softmax_param", fields),
             [shape, target],
             lambda x, t, k=axis: F.kl_div(torch.log_softmax(x, k), t.detach(),
                                           reduction="batchmean" if k == 1 else "sum") /
             (1 if k == 1 else x.shape[0] * x.shape[1]), still=(1,))

    def dice(p, t, counted, smooth):
        def over_positions(values):
            return values.reshape(*values.shape[:2], -1).sum(-1)

        both = 2 * over_positions(p * t * counted) + smooth
        return (1 - both / (over_positions((p + t) * counted) + smooth)).mean()

    for name, fields, shape, smooth in (("image", "", IMAGE, 1), ("smooth", "smooth: 0.125",
                                        (2, 3, 5), 0.125), ("rows", "", (4, 3), 1)):
        p = rng.random(shape).round(3)
        case("dice_loss", f"targets_{name}", layer("DiceLoss", "dice_loss_param", fields),
             [p, rng.random(shape).round(2)],
             lambda x, t, s=smooth: dice(x, t.detach(), torch.ones_like(t), s), still=(1,))
        labels = rng.integers(0, 3, (shape[0], 1, *shape[2:]))
        labels.reshape(shape[0], -1)[0, 0] = 255

        def by_labels(x, y, s=smooth):
            label = y.detach().long()
            one_hot = torch.zeros_like(x).scatter(1, torch.where(label == 255, 0, label), 1)
            return dice(x, one_hot, (label != 255).double(), s)

        case("dice_loss", f"labels_{name}",
             layer("DiceLoss", "dice_loss_param", fields) + "\nloss_param { ignore_label: 255 }",
             [p, labels], by_labels, still=(1,))


def positive_weights():
    rng = np.random.default_rng(SEED + 3)
    for name, weights, shape, fields in (
            ("one_for_all", (3.5,), (4, 3), ""), ("rows", (0.25, 2, 10), (4, 3), ""),
            ("image", (0.5, 4, 1), IMAGE, "normalization: FULL"),
            ("three_axes", (0, 1.5), (2, 2, 5), "normalization: VALID ignore_label: 9")):
        target = rng.random(shape).round(2)
        target[rng.random(shape) < 0.5] = 1
        if "ignore" in fields:
            target[rng.random(shape) < 0.3] = 9
        counted = torch.tensor(target < 2)
        divisor = int(counted.sum()) if fields else shape[0]
        factors = torch.tensor(weights, dtype=torch.float64)
        if len(weights) > 1:
            factors = factors.reshape(-1, *(1,) * (len(shape) - 2))
        case("sigmoid_cross_entropy_loss_weighted", name,
             layer("SigmoidCrossEntropyLoss", "loss_param",
                   " ".join([f"pos_weight: {w}" for w in weights] + [fields]).strip()),
             [shape, target],
             lambda x, y, c=counted, f=factors, d=divisor: F.binary_cross_entropy_with_logits(
                 x, y.detach(), pos_weight=f, reduction="none")[c].sum() / d, still=(1,))
    weights = (2, 0.25, 1.5)
    matrix = rng.random((3, 3)).round(2)
    for name, shape, ignored in (("rows", (5, 3), None), ("image_ignored", (2, 3, 2, 4), 1)):
        labels = rng.integers(0, 3, (shape[0], *shape[2:]))

        def weighted_gain(x, y, h, ignored=ignored):
            y = y.detach().long()
            gains = torch.einsum("n...k,nk...->n...", h.detach()[y], -F.log_softmax(x, 1))
            factors = torch.tensor(weights, dtype=torch.float64)[y] * (y != ignored)
            return (factors * gains).sum() / factors.sum()

        fields = [f"class_weight: {w}" for w in weights]
        if ignored is not None:
            fields.append(f"ignore_label: {ignored}")
        case("infogain_loss_weighted", name, layer("InfogainLoss", "loss_param", " ".join(fields)),
             [shape, labels, matrix], weighted_gain, still=(1, 2))


def write_all():
    """Writes the cases declared so far."""
    for file, cases in CASES.items():
        rng = np.random.default_rng(SEED)
        out = GoldenFile(file + ".txt", SEED, f"{cases[0][1].split(chr(34))[1]}: outputs and "
                         "gradients by PyTorch autograd, float64.")
        for entry in cases:
            make(rng, out, *entry)
        out.save()


def main():
    for group in (element_wise, joined, reduced, broadcast, losses, weighted_losses, focal_losses,
                  distribution_losses, positive_weights):
        group()
    write_all()


if __name__ == "__main__":
    main()
