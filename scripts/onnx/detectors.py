"""Small versions of public deploy nets that find objects, faces and text. They have the structures
of the originals, with few channels."""

from classifiers import inception, squeezed
from net_text import NetText


def flat_head(n, name, x, outputs):
    """A head of SSD: a convolution whose numbers become a row per item."""
    y = n.conv(name, x, outputs, 3, pad=1, relu=False)
    y = n.layer("Permute", f"{name}_perm", y, permute_param={"order": [0, 2, 3, 1]})
    return n.layer("Flatten", f"{name}_flat", y, flatten_param={"axis": 1})


def ssd(kind="vgg", classes=4, **output):
    n = NetText(f"SSD_{kind}", data=[1, 3, 48, 48])
    if kind == "mobilenet":
        x = n.conv_norm("conv0", "data", 8, 3, stride=2, pad=1)
        x = n.conv_norm("conv1/dw", x, 8, 3, stride=2, pad=1, group=8)
        first = n.conv_norm("conv1", x, 12, 1)
    else:
        x = n.pool("pool1", n.conv("conv1", "data", 8, 3, pad=1))
        x = n.pool("pool2", n.conv("conv2", x, 12, 3, pad=1))
        first = n.layer("Normalize", "conv4_3_norm", x, norm_param={
            "across_spatial": False, "channel_shared": False})
    second = n.conv("conv5", n.pool("pool4", x, 3, 2), 12, 3, pad=6, dilation=6)
    third = n.conv("conv6", second, 12, 3, pad=1, stride=2)
    of_class = 1 if output.get("share_location", True) else classes
    locations, scores, priors = [], [], []
    for name, feature, size in (("a", first, 8), ("b", second, 16), ("c", third, 28)):
        fields = {"min_size": size, "max_size": size + 8, "aspect_ratio": 2, "flip": True,
                  "clip": name == "c", "variance": [0.1, 0.1, 0.2, 0.2], "offset": 0.5}
        if name == "b":
            fields["step"] = 8
        locations.append(flat_head(n, f"{name}_loc", feature, 16 * of_class))
        scores.append(flat_head(n, f"{name}_conf", feature, 4 * classes))
        priors.append(n.layer("PriorBox", f"{name}_priorbox", [feature, "data"],
                              prior_box_param=fields))
    loc = n.concat("mbox_loc", locations)
    conf = n.concat("mbox_conf", scores)
    prior = n.concat("mbox_priorbox", priors, axis=2)
    conf = n.layer("Reshape", "mbox_conf_reshape", conf,
                   reshape_param={"shape": {"dim": [0, -1, classes]}})
    conf = n.softmax(conf, "mbox_conf_softmax", axis=2)
    conf = n.layer("Flatten", "mbox_conf_flatten", conf, flatten_param={"axis": 1})
    fields = {"num_classes": classes, "share_location": True, "background_label_id": 0,
              "nms_param": {"nms_threshold": 0.45, "top_k": 100}, "code_type": "CENTER_SIZE",
              "keep_top_k": 50, "confidence_threshold": 0.01, **output}
    n.layer("DetectionOutput", "detection_out", [loc, conf, prior],
            detection_output_param=fields)
    return n


def faster_rcnn():
    n = NetText("FasterRCNN", data=[1, 3, 48, 64], rois=[6, 5])
    x = n.pool("pool1", n.conv("conv1", "data", 8, 3, pad=1))
    x = n.conv("conv5", n.pool("pool2", x), 8, 3, pad=1)
    rpn = n.conv("rpn_conv/3x3", x, 8, 3, pad=1)
    score = n.conv("rpn_cls_score", rpn, 12, 1, relu=False)
    score = n.layer("Reshape", "rpn_cls_score_reshape", score,
                    reshape_param={"shape": {"dim": [0, 2, -1, 0]}})
    score = n.softmax(score, "rpn_cls_prob")
    n.layer("Reshape", "rpn_cls_prob_reshape", score,
            reshape_param={"shape": {"dim": [0, 12, -1, 0]}})
    n.conv("rpn_bbox_pred", rpn, 24, 1, relu=False)
    y = n.layer("ROIPooling", "roi_pool5", [x, "rois"], roi_pooling_param={
        "pooled_w": 4, "pooled_h": 3, "spatial_scale": 0.25})
    y = n.fc("fc6", y, 16, relu=True)
    n.softmax(n.fc("cls_score", y, 5), "cls_prob")
    n.fc("bbox_pred", y, 20)
    return n


def rfcn():
    n = NetText("RFCN", data=[1, 3, 48, 64], rois=[6, 5])
    x = n.conv_norm("conv1", "data", 8, 3, stride=4, pad=1)
    x = n.conv_norm("conv2", x, 8, 3, pad=2, dilation=2)
    for name, outputs in (("cls", 4), ("bbox", 8)):
        y = n.conv(f"rfcn_{name}", x, outputs * 9, 1, relu=False)
        y = n.layer("PSROIPooling", f"psroipooled_{name}", [y, "rois"], psroi_pooling_param={
            "spatial_scale": 0.25, "output_dim": outputs, "group_size": 3})
        y = n.pool(f"ave_{name}", y, 3, 3, "AVE")
        if name == "cls":
            y = n.softmax(y, "cls_prob_pre")
        n.layer("Reshape", f"{name}_out", y, reshape_param={"shape": {"dim": [-1, outputs]}})
    return n


def yolo(tiny=False):
    n = NetText("YOLOv2", data=[1, 3, 64, 64])
    x = "data"
    for i in range(1, 5):
        x = n.conv(f"conv{i}", x, 4 + 2 * i, 3, pad=1, relu=False, bias_term=False)
        x = n.norm(x, relu=False)
        x = n.inplace("ReLU", x, relu_param={"negative_slope": 0.1})
        x = n.pool(f"pool{i}", x)
        if i == 3:
            fine = x
    if not tiny:
        fine = n.layer("Reorg", "reorg", n.conv("conv21", fine, 8, 1), reorg_param={"stride": 2})
        x = n.concat("route", [fine, x])
    n.conv("conv_out", n.conv("conv22", x, 12, 3, pad=1), 25, 1, relu=False)
    return n


def mtcnn(part):
    sizes = {"pnet": 31, "rnet": 24, "onet": 48}
    n = NetText(part, data=[2, 3, sizes[part], sizes[part]])
    x = "data"
    for i in range(1, {"pnet": 2, "rnet": 3, "onet": 4}[part] + 1):
        kernel = 2 if i == 4 or (part == "rnet" and i == 3) else 3
        x = n.inplace("PReLU", n.conv(f"conv{i}", x, 8, kernel, relu=False), f"PReLU{i}")
        if i == 1 or (part != "pnet" and i < 3):
            x = n.pool(f"pool{i}", x, 2 if part == "pnet" else 3)
    if part == "pnet":
        n.conv("conv4-2", x, 4, 1, relu=False)
        n.softmax(n.conv("conv4-1", x, 2, 1, relu=False), "prob1")
        return n
    x = n.inplace("PReLU", n.fc("conv5", x, 16), "prelu5")
    n.softmax(n.fc("conv6-1", x, 2), "prob1")
    n.fc("conv6-2", x, 4)
    n.fc("conv6-3", x, 10)
    return n


def retinaface():
    n = NetText("RetinaFace", data=[1, 3, 40, 40])
    low = n.conv_norm("c1", "data", 8, 3, stride=4, pad=1)
    high = n.conv_norm("c2", low, 8, 3, stride=2, pad=1)
    up = n.conv("c2_up", high, 8, 4, kind="Deconvolution", stride=2, pad=1, group=8, relu=False,
                bias_term=False)
    cut = n.layer("Crop", "crop", [up, low], crop_param={"axis": 2})
    x = n.add("plus", [cut, low])
    for name, feature in (("stride8", high), ("stride4", x)):
        score = n.conv(f"face_rpn_cls_score_{name}", feature, 4, 1, relu=False)
        score = n.layer("Reshape", f"reshape_{name}", score,
                        reshape_param={"shape": {"dim": [0, 2, -1, 0]}})
        prob = n.softmax(score, f"prob_{name}")
        n.layer("Reshape", f"prob_reshape_{name}", prob,
                reshape_param={"shape": {"dim": [0, 4, -1, 0]}})
        n.conv(f"bbox_{name}", feature, 8, 1, relu=False)
    return n


def text_boxes():
    """Long kernels, reshaped scores and sums of several scales."""
    n = NetText("TextBoxes", data=[1, 3, 32, 64])
    x = n.pool("pool1", n.conv("conv1", "data", 8, 3, pad=1), 3, 2, "AVE", pad=1)
    x = inception(n, "mix", x, 4)
    x = n.conv("row", x, 8, (1, 5), pad_h=0, pad_w=2)
    x = squeezed(n, "gate", x, 8)
    n.layer("Reduction", "sum", x, reduction_param={"operation": "MEAN", "axis": 2})
    n.conv("score", x, 6, (5, 1), pad_h=2, pad_w=0, relu=False)
    return n


DETECTORS = {
    "ssd_vgg": ssd,
    "ssd_mobilenet": lambda: ssd("mobilenet"),
    "ssd_all_boxes": lambda: ssd(code_type="CORNER_SIZE", keep_top_k=-1),
    "ssd_own_boxes": lambda: ssd(share_location=False, background_label_id=1),
    "ssd_no_background": lambda: ssd(background_label_id=-1, code_type="CORNER",
                                     variance_encoded_in_target=True),
    "ssd_nothing_found": lambda: ssd(confidence_threshold=0.999),
    "faster_rcnn": faster_rcnn,
    "rfcn": rfcn,
    "yolo_v2": yolo,
    "yolo_tiny": lambda: yolo(True),
    "mtcnn_pnet": lambda: mtcnn("pnet"),
    "mtcnn_rnet": lambda: mtcnn("rnet"),
    "mtcnn_onet": lambda: mtcnn("onet"),
    "retinaface": retinaface,
    "text_boxes": text_boxes,
}
