"""Layers of Caffe's forks: layers with a gradient by PyTorch autograd, PriorBox and DetectionOutput
by NumPy loops with SSD's rules, and a whole small SSD net; see layers.py.
"""

import numpy as np
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, hash_weight
from layers import IMAGE, SEED, case, layer, write_all

MARGIN = 5e-6  # no comparison may be closer, so that floats decide as doubles do


def moved():
    permute = lambda order: layer("Permute", "permute_param",
                                  " ".join(f"order: {axis}" for axis in order))
    for order in ((0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0), (2,), (0, 1, 3, 2)):
        rest = [axis for axis in range(4) if axis not in order]
        case("permute", "image_" + "".join(map(str, order)), permute(order), [(2, 3, 2, 4)],
             lambda x, full=(*order, *rest): x.permute(full) * 1)
    case("permute", "rows", permute((1, 0)), [(3, 4)], lambda x: x.T * 1)
    case("permute", "five_axes", permute((0, 3, 1)), [(2, 3, 2, 2, 3)],
         lambda x: x.permute(0, 3, 1, 2, 4) * 1)

    def squares(x, s):  # an image (C, H * s, W * s) to (s * s * C, H, W)
        n, c, h, w = x.shape
        parts = x.reshape(n, c, h // s, s, w // s, s).permute(0, 3, 5, 1, 2, 4)
        return parts.reshape(n, c * s * s, h // s, w // s)

    def pixels(x, s):  # the inverse
        n, c, h, w = x.shape
        parts = x.reshape(n, s, s, c // s // s, h, w).permute(0, 3, 4, 1, 5, 2)
        return parts.reshape(n, c // s // s, h * s, w * s)

    def reorg(x, s):  # the element order of the published weights
        n, c, h, w = x.shape
        wide = squares(x.reshape(n, c // s // s, h * s, w * s), s)
        return wide.reshape(n, c * s * s, h // s, w // s)

    for s, shape in ((2, (2, 8, 4, 6)), (3, (1, 9, 3, 6))):
        case("reorg", f"stride_{s}", layer("Reorg", "reorg_param", f"stride: {s}"), [shape],
             lambda x, s=s: reorg(x, s))
        case("reorg", f"reverse_{s}", layer("Reorg", "reorg_param", f"stride: {s} reverse: true"),
             [shape], lambda x, s=s: pixels(x, s))


def resized():
    interp = lambda fields: layer("Interp", "interp_param", fields)
    resize = lambda x, h, w: F.interpolate(x, (h, w), mode="bilinear", align_corners=True)
    for name, fields, shape, h, w, cut in (
            ("size", "height: 7 width: 5", (2, 3, 3, 4), 7, 5, (0, 0)),
            ("smaller", "height: 2 width: 3", (2, 3, 5, 7), 2, 3, (0, 0)),
            ("zoom", "zoom_factor: 3", (1, 18, 3, 2), 7, 4, (0, 0)),
            ("shrink", "shrink_factor: 2", (2, 2, 6, 5), 3, 3, (0, 0)),
            ("shrink_and_zoom", "shrink_factor: 2 zoom_factor: 3", (1, 2, 6, 5), 7, 7, (0, 0)),
            ("one_pixel", "height: 1 width: 1", (2, 2, 4, 3), 1, 1, (0, 0)),
            ("from_one_pixel", "height: 3 width: 2", (2, 2, 1, 1), 3, 2, (0, 0)),
            ("cut", "height: 4 width: 6 pad_beg: -1 pad_end: -2", (1, 2, 6, 7), 4, 6, (1, 2)),
            ("cut_to_size", "height: 3 width: 4 pad_beg: -1", (1, 2, 4, 5), 3, 4, (1, 0)),
            ("cut_alone", "zoom_factor: 1 pad_end: -1", (1, 2, 4, 5), 3, 4, (0, 1))):
        case("interp", name, interp(fields), [shape],
             lambda x, h=h, w=w, cut=cut: resize(
                 x[:, :, cut[0]:x.shape[2] - cut[1], cut[0]:x.shape[3] - cut[1]], h, w))
    case("interp", "second_bottom", layer("Interp"), [(2, 3, 3, 4), (1, 1, 5, 2)],
         lambda x, like: resize(x, 5, 2), still=(1,))


def normalized():
    norm = lambda fields: layer("Normalize", "norm_param", fields)

    def length_one(x, w, across, eps=1e-10):
        axes = tuple(range(1, x.dim())) if across else (1,)
        w = w.reshape(-1, *[1] * (x.dim() - 2))
        return x / (x.square().sum(axes, keepdim=True) + eps).sqrt() * w

    for name, shape in (("image", (2, 3, 2, 4)), ("wide", (1, 35, 3, 2)), ("rows", (4, 3)),
                        ("three_axes", (2, 3, 4)), ("five_axes", (2, 3, 2, 1, 3))):
        for across in (True, False):
            case("normalize", f"{name}_{'all' if across else 'pixels'}",
                 norm("" if across else "across_spatial: false"), [shape],
                 lambda x, w, a=across: length_one(x, w, a), [np.array(1.25)])
            case("normalize", f"{name}_{'all' if across else 'pixels'}_channels",
                 norm(f"channel_shared: false across_spatial: {str(across).lower()}"), [shape],
                 lambda x, w, a=across: length_one(x, w, a), [(shape[1],)])
    case("normalize", "eps", norm("eps: 0.5"), [IMAGE],
         lambda x, w: length_one(x, w, True, 0.5), [np.array(2.0)])


def depthwise():
    conv = lambda kind, fields: layer(kind, "convolution_param", fields)
    for kind, file in (("ConvolutionDepthwise", "convolution_depthwise"),
                       ("DepthwiseConvolution", "depthwise_convolution")):
        case(file, "image", conv(kind, "kernel_size: 3 pad: 1 stride: 2"), [(2, 5, 5, 6)],
             lambda x, w, b: F.conv2d(x, w, b, 2, 1, groups=5), [(5, 1, 3, 3), (5,)])
        case(file, "counts_given", conv(kind, "num_output: 16 group: 16 kernel_size: 3 pad: 1 "
                                        "bias_term: false"), [(1, 16, 4, 4)],
             lambda x, w: F.conv2d(x, w, None, 1, 1, groups=16), [(16, 1, 3, 3)])


def prior_boxes(h, w, image, mins, maxs=(), ratios=(), flip=True, clip=False, variance=(0.1,) * 4,
                step=None, offset=0.5):
    """Returns (1, 2, h * w * boxes * 4). `image` and `step` are (height, width) in pixels."""
    step = step or (image[0] / h, image[1] / w)
    shapes = []
    for i, low in enumerate(map(int, mins)):
        shapes.append((low, low))
        if maxs:
            shapes.append(((low * int(maxs[i])) ** 0.5,) * 2)
        for ratio in ratios:
            for r in (ratio, 1 / ratio) if flip else (ratio,):
                shapes.append((low * r**0.5, low / r**0.5))
    boxes = []
    for row in range(h):
        for column in range(w):
            x, y = (column + offset) * step[1], (row + offset) * step[0]
            for wide, high in shapes:
                boxes += [(x - wide / 2) / image[1], (y - high / 2) / image[0],
                          (x + wide / 2) / image[1], (y + high / 2) / image[0]]
    boxes = np.clip(boxes, 0, 1) if clip else np.array(boxes)
    return np.stack([boxes, np.tile(variance, len(boxes) // 4)])[None]


def laid_over():
    prior = lambda fields: layer("PriorBox", "prior_box_param", fields)
    still = (0, 1)
    for name, fields, shape, made in (
            ("ssd", "min_size: 30 max_size: 60 aspect_ratio: 2 aspect_ratio: 3 flip: true "
             "clip: false variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 step: 8",
             (1, 3, 20, 24), dict(mins=(30,), maxs=(60,), ratios=(2, 3), step=(8, 8),
                                  variance=(0.1, 0.1, 0.2, 0.2))),
            ("clipped", "min_size: 10 min_size: 14.9 aspect_ratio: 2 aspect_ratio: 2 "
             "aspect_ratio: 1 clip: true", (1, 1, 20, 24),
             dict(mins=(10, 14.9), ratios=(2,), clip=True)),
            ("not_flipped", "min_size: 4 max_size: 9.5 aspect_ratio: 0.5 flip: false variance: 0.3 "
             "offset: 0.25 img_size: 40", (1, 1, 7, 9),
             dict(mins=(4,), maxs=(9.5,), ratios=(0.5,), flip=False, variance=(0.3,) * 4,
                  offset=0.25, image=(40, 40))),
            ("sizes_given", "min_size: 6 img_h: 30 img_w: 60 step_h: 5 step_w: 7", (1, 1, 1, 1),
             dict(mins=(6,), image=(30, 60), step=(5, 7)))):
        made = {"image": shape[2:], **made}
        case("prior_box", name, prior(fields), [(2, 4, 2, 3), shape],
             lambda x, like, made=made: torch.tensor(prior_boxes(2, 3, **made)), still=still)


def overlap(a, b):
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    if wide <= 0 or high <= 0:
        return 0.0
    area = lambda c: 0.0 if c[2] < c[0] or c[3] < c[1] else (c[2] - c[0]) * (c[3] - c[1])
    return wide * high / (area(a) + area(b) - wide * high)


def decode(code, move, prior):
    wide, high = prior[2] - prior[0], prior[3] - prior[1]
    if code == "CENTER_SIZE":
        x = (prior[0] + prior[2]) / 2 + move[0] * wide
        y = (prior[1] + prior[3]) / 2 + move[1] * high
        wide, high = wide * np.exp(move[2]), high * np.exp(move[3])
        return np.array([x - wide / 2, y - high / 2, x + wide / 2, y + high / 2])
    return prior + move * (np.array([wide, high, wide, high]) if code == "CORNER_SIZE" else 1)


def above(a, b, what):
    assert abs(a - b) > MARGIN, f"{what}: {a} and {b} are too close for floats"
    return a > b


def suppress(boxes, scores, least, top_k, threshold, eta):
    """Returns the indices of the kept boxes, by descending score."""
    order = [i for i in range(len(scores)) if least is None or above(scores[i], least, "score")]
    order = sorted(order, key=lambda i: -scores[i])
    for a, b in zip(order, order[1:]):
        above(scores[a], scores[b], "scores")
    kept = []
    for i in order[:top_k]:
        if not any(above(overlap(boxes[i], boxes[k]), threshold, "overlap") for k in kept):
            kept.append(i)
            if eta < 1 and threshold > 0.5:
                threshold *= eta
    return kept


def detect(locations, confidences, priors, classes, share=True, background=0, code="CORNER",
           encoded=False, keep=None, least=None, top_k=None, threshold=0.3, eta=1):
    """Returns the output (1, 1, K, 7) for arrays in the shapes of the layer's bottoms."""
    corners, variances = priors[0].reshape(2, -1, 4)
    rows = []
    for item in range(len(locations)):
        moves = locations[item].reshape(len(corners), -1, 4)
        scores = confidences[item].reshape(len(corners), classes)
        found = []
        for label in range(classes):
            if label == background:
                continue
            boxes = [decode(code, move[0 if share else label] * (1 if encoded else v), p)
                     for move, v, p in zip(moves, variances, corners)]
            found += [(label, scores[i, label], boxes[i]) for i in suppress(
                boxes, scores[:, label], least, top_k, threshold, eta)]
        if keep is not None and len(found) > keep:
            limit = sorted((score for _, score, _ in found), reverse=True)[keep - 1:keep + 1]
            above(*limit, "kept scores")
            found = [entry for entry in found if entry[1] >= limit[0]]
        rows += [[item, label, score, *box] for label, score, box in found]
    if not rows:
        rows = [[item] + [-1] * 6 for item in range(len(locations))]
    return np.array(rows)[None, None]


def found():
    rng = np.random.default_rng(SEED + 5)
    classes, h, w = 3, 3, 4
    priors = prior_boxes(h, w, (30, 40), (14,), (22,), (2,), variance=(0.1, 0.1, 0.2, 0.2)).round(4)
    count = priors.shape[2] // 4
    out = lambda fields: layer("DetectionOutput", "detection_output_param",
                               f"num_classes: {classes} " + fields)
    nms = "nms_param { nms_threshold: 0.45 top_k: 30 }"
    scores = rng.permutation(2 * count * classes).reshape(2, -1) / (2 * count * classes)
    scores = (scores + 1e-3).round(5)
    for name, fields, options in (
            ("center_size", f"code_type: CENTER_SIZE {nms} keep_top_k: 20 "
             "confidence_threshold: 0.3",
             dict(code="CENTER_SIZE", top_k=30, threshold=0.45, keep=20, least=0.3)),
            ("corner", "", {}),
            ("corner_size", f"code_type: CORNER_SIZE {nms} background_label_id: -1",
             dict(code="CORNER_SIZE", top_k=30, threshold=0.45, background=-1)),
            ("encoded", "variance_encoded_in_target: true keep_top_k: 7 background_label_id: 2",
             dict(encoded=True, keep=7, background=2)),
            ("encoded_center", "variance_encoded_in_target: true code_type: CENTER_SIZE "
             "confidence_threshold: 0.5", dict(encoded=True, code="CENTER_SIZE", least=0.5)),
            ("encoded_corner_size", "variance_encoded_in_target: true code_type: CORNER_SIZE",
             dict(encoded=True, code="CORNER_SIZE")),
            ("eta", "nms_param { nms_threshold: 0.8 eta: 0.7 }", dict(threshold=0.8, eta=0.7)),
            ("own_boxes", f"share_location: false code_type: CENTER_SIZE {nms}",
             dict(share=False, code="CENTER_SIZE", top_k=30, threshold=0.45)),
            ("nothing", "confidence_threshold: 2", dict(least=2))):
        width = count * 4 * (1 if options.get("share", True) else classes)
        scale = 0.25 if options.get("encoded") else 1
        moves = (rng.normal(size=(2, width)) * scale).round(3)
        case("detection_output", name, out(fields), [moves, scores, priors],
             lambda a, b, c, options=options: torch.tensor(detect(
                 a.detach().numpy(), b.detach().numpy(), c.detach().numpy(), classes, **options)),
             still=(0, 1, 2))


NET = """
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 2 dim: 3 dim: 16 dim: 24 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 6 kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "dw2" type: "ConvolutionDepthwise" bottom: "conv1" top: "dw2"
  convolution_param { kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "norm1" type: "Normalize" bottom: "conv1" top: "norm1"
  norm_param { across_spatial: false channel_shared: false
               scale_filler { type: "constant" value: 20 } } }
"""
HEAD = """
layer {{ name: "{f}_loc" type: "Convolution" bottom: "{f}" top: "{f}_loc"
  convolution_param {{ num_output: {loc} kernel_size: 3 pad: 1 }} }}
layer {{ name: "{f}_loc_perm" type: "Permute" bottom: "{f}_loc" top: "{f}_loc_perm"
  permute_param {{ order: 0 order: 2 order: 3 order: 1 }} }}
layer {{ name: "{f}_loc_flat" type: "Flatten" bottom: "{f}_loc_perm" top: "{f}_loc_flat"
  flatten_param {{ axis: 1 }} }}
layer {{ name: "{f}_conf" type: "Convolution" bottom: "{f}" top: "{f}_conf"
  convolution_param {{ num_output: {conf} kernel_size: 3 pad: 1 }} }}
layer {{ name: "{f}_conf_perm" type: "Permute" bottom: "{f}_conf" top: "{f}_conf_perm"
  permute_param {{ order: 0 order: 2 order: 3 order: 1 }} }}
layer {{ name: "{f}_conf_flat" type: "Flatten" bottom: "{f}_conf_perm" top: "{f}_conf_flat"
  flatten_param {{ axis: 1 }} }}
layer {{ name: "{f}_prior" type: "PriorBox" bottom: "{f}" bottom: "data" top: "{f}_prior"
  prior_box_param {{ {prior} }} }}
"""
END = """
layer { name: "loc" type: "Concat" bottom: "norm1_loc_flat" bottom: "dw2_loc_flat" top: "loc"
  concat_param { axis: 1 } }
layer { name: "conf" type: "Concat" bottom: "norm1_conf_flat" bottom: "dw2_conf_flat" top: "conf"
  concat_param { axis: 1 } }
layer { name: "prior" type: "Concat" bottom: "norm1_prior" bottom: "dw2_prior" top: "prior"
  concat_param { axis: 2 } }
layer { name: "conf_reshape" type: "Reshape" bottom: "conf" top: "conf_reshape"
  reshape_param { shape { dim: 0 dim: -1 dim: 4 } } }
layer { name: "conf_softmax" type: "Softmax" bottom: "conf_reshape" top: "conf_softmax"
  softmax_param { axis: 2 } }
layer { name: "conf_flat" type: "Flatten" bottom: "conf_softmax" top: "conf_flat"
  flatten_param { axis: 1 } }
layer { name: "found" type: "DetectionOutput" bottom: "loc" bottom: "conf_flat" bottom: "prior"
  top: "found"
  detection_output_param { num_classes: 4 share_location: true background_label_id: 0
    nms_param { nms_threshold: 0.45 top_k: 40 } code_type: CENTER_SIZE keep_top_k: 25
    confidence_threshold: 0.4 } }
"""


def ssd_net():
    """Parameter i of the net is stream 200 + i of hash_weight, with the bound below; data is 199."""
    bounds, tensors = [], []

    def param(shape, bound):
        tensors.append(torch.tensor(hash_weight(200 + len(tensors), shape, bound)))
        bounds.append(bound)
        return tensors[-1]

    variance = (0.1, 0.1, 0.2, 0.2)
    data = torch.tensor(hash_weight(199, (2, 3, 16, 24), 1))
    conv1 = F.relu(F.conv2d(data, param((6, 3, 3, 3), 0.5), param((6,), 0.1), 2, 1))
    dw2 = F.conv2d(conv1, param((6, 1, 3, 3), 1), param((6,), 0.1), 2, 1, groups=6)
    scale = param((6,), 3).reshape(-1, 1, 1)
    norm1 = conv1 / (conv1.square().sum(1, keepdim=True) + 1e-10).sqrt() * scale
    flat = lambda x: x.permute(0, 2, 3, 1).flatten(1)
    text, locations, confidences, priors = NET, [], [], []
    for name, x, boxes, fields, made in (
            ("norm1", norm1, 4, "min_size: 4 max_size: 7 aspect_ratio: 2 step: 2",
             dict(mins=(4,), maxs=(7,), ratios=(2,), step=(2, 2))),
            ("dw2", dw2, 3, "min_size: 8.5 aspect_ratio: 2 clip: true",
             dict(mins=(8.5,), ratios=(2,), clip=True))):
        text += HEAD.format(f=name, loc=boxes * 4, conf=boxes * 4,
                            prior=fields + " variance: 0.1 variance: 0.1 variance: 0.2 "
                            "variance: 0.2").lstrip("\n")
        for parts in (locations, confidences):
            w, b = param((boxes * 4, 6, 3, 3), 0.5), param((boxes * 4,), 0.5)
            parts.append(flat(F.conv2d(x, w, b, 1, 1)))
        priors.append(prior_boxes(*x.shape[2:], (16, 24), variance=variance, **made))
    scores = torch.cat(confidences, 1).unflatten(1, (-1, 4)).softmax(2).flatten(1)
    rows = detect(torch.cat(locations, 1).numpy(), scores.numpy(), np.concatenate(priors, 2), 4,
                  code="CENTER_SIZE", top_k=40, threshold=0.45, keep=25, least=0.4)
    out = GoldenFile("ssd_net.txt", "of hash_weight",
                     "A deploy net of SSD's kind: what it finds, by PyTorch and NumPy, float64.")
    out.case("deploy")
    out.text("net", text + END.lstrip("\n"))
    for i, bound in enumerate(bounds):
        out.number(f"bound_{i}", bound)
    out.number("bound_data", 1)
    out.tensor("y", rows)
    out.save()


def main():
    for group in (moved, resized, normalized, depthwise, laid_over, found):
        group()
    write_all()
    ssd_net()


if __name__ == "__main__":
    main()
