"""Stand-ins for deploy nets of public repositories: detectors, segmentation, faces, sequences,
images from images. They have the structures of the originals, with few channels."""

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


def fcn(stride=8):
    n = NetText(f"FCN{stride}s", data=[1, 3, 40, 56])
    x, kept = "data", []
    for i in range(1, 4):
        x = n.pool(f"pool{i}", n.conv(f"conv{i}", x, 8, 3, pad=20 if i == 1 else 1))
        kept.append(x)
    x = n.conv("fc7", n.conv("fc6", x, 12, 5), 12, 1)
    x = n.conv("score_fr", x, 5, 1, relu=False)
    factor = 8
    for i, feature in enumerate(reversed(kept[:-1] if stride == 8 else [])):
        up = n.conv(f"upscore{i}", x, 5, 4, relu=False, kind="Deconvolution", stride=2,
                    bias_term=False)
        score = n.conv(f"score_pool{i}", feature, 5, 1, relu=False)
        cut = n.layer("Crop", f"score_pool{i}c", [score, up], crop_param={"axis": 2, "offset": 3})
        x = n.add(f"fuse{i}", [up, cut])
        factor //= 2
    up = n.conv("upscore", x, 5, 2 * factor, relu=False, kind="Deconvolution", stride=factor,
                group=5, bias_term=False)
    n.layer("Crop", "score", [up, "data"], crop_param={"axis": 2, "offset": 4})
    return n


def deeplab(pyramid=False):
    n = NetText("DeepLab", data=[1, 3, 41, 41])
    x = n.pool("pool1", n.conv("conv1", "data", 8, 3, pad=1), 3, 2, pad=1)
    x = n.conv("conv2", n.pool("pool2", x, 3, 1, pad=1), 8, 3, pad=2, dilation=2)
    if pyramid:
        parts = [x]
        for bins, kernel in ((1, 21), (2, 11), (3, 7)):
            y = n.pool(f"pool_{bins}", x, kernel, kernel, "AVE")
            y = n.conv(f"pyramid_{bins}", y, 4, 1)
            parts.append(n.layer("Interp", f"interp_{bins}", y,
                                 interp_param={"height": 21, "width": 21}))
        score = n.conv("score", n.concat("pyramid", parts), 5, 3, pad=1, relu=False)
    else:
        scores = [n.conv(f"fc8_{rate}", x, 5, 3, relu=False, pad=rate, dilation=rate)
                  for rate in (2, 4, 6)]
        score = n.add("fc8", scores)
    up = n.layer("Interp", "up", score, interp_param={"zoom_factor": 2, "pad_end": -1})
    n.layer("ArgMax", "answer", up, argmax_param={"axis": 1})
    return n


def unet():
    n = NetText("UNet", data=[1, 1, 32, 32])
    a = n.conv("a2", n.conv("a1", "data", 6, 3, pad=1), 6, 3, pad=1)
    b = n.conv("b1", n.pool("pool_a", a), 8, 3, pad=1)
    c = n.conv("c1", n.pool("pool_b", b), 10, 3, pad=1)
    up = n.conv("up_b", c, 8, 2, kind="Deconvolution", stride=2)
    x = n.conv("d1", n.concat("join_b", [b, up]), 8, 3, pad=1)
    up = n.conv("up_a", x, 6, 2, kind="Deconvolution", stride=2)
    x = n.conv("e1", n.concat("join_a", [a, up]), 6, 3, pad=1)
    n.softmax(n.conv("score", x, 2, 1, relu=False))
    return n


def hed():
    n = NetText("HED", data=[1, 3, 40, 40])
    x, sides = "data", []
    for i in range(1, 4):
        x = n.conv(f"conv{i}", x, 8, 3, pad=12 if i == 1 else 1)
        side = n.conv(f"score-dsn{i}", x, 1, 1, relu=False)
        if i > 1:
            side = n.conv(f"upsample_{i}", side, 1, 2 ** i, kind="Deconvolution", relu=False,
                          stride=2 ** (i - 1), bias_term=False)
        side = n.layer("Crop", f"crop{i}", [side, "data"], crop_param={"offset": 8})
        n.layer("Sigmoid", f"sigmoid-dsn{i}", side)
        sides.append(side)
        x = n.pool(f"pool{i}", x)
    fuse = n.conv("new-score-weighting", n.concat("concat-upscore", sides), 1, 1, relu=False)
    n.layer("Sigmoid", "sigmoid-fuse", fuse)
    return n


def openpose():
    n = NetText("OpenPose", image=[1, 3, 40, 48])
    x = n.pool("pool1", n.conv("conv1", "image", 8, 3, pad=1))
    features = n.conv("conv4_4_CPM", n.pool("pool2", x), 8, 3, pad=1)
    x = features
    for stage in (1, 2, 3):
        parts = []
        for branch, outputs in ((1, 6), (2, 4)):
            y = n.conv(f"Mconv1_stage{stage}_L{branch}", x, 8, 7, pad=3)
            parts.append(n.conv(f"Mconv5_stage{stage}_L{branch}", y, outputs, 1, relu=False))
        x = n.concat(f"concat_stage{stage + 1}", [*parts, features])
    n.concat("net_output", parts[::-1])
    return n


def lrcn(kind="LSTM"):
    n = NetText("LRCN", input_sentence=[5, 2], cont_sentence=[5, 2], image_features=[2, 6])
    n.integers = {"input_sentence": 12, "cont_sentence": 2}
    x = n.layer("Embed", "embedding", "input_sentence", embed_param={
        "input_dim": 12, "num_output": 7, "bias_term": False})
    x = n.layer(kind, "lstm1", [x, "cont_sentence"], recurrent_param={"num_output": 8})
    x = n.layer(kind, "lstm2", [x, "cont_sentence", "image_features"],
                recurrent_param={"num_output": 6})
    n.softmax(n.fc("predict", x, 12, axis=2), axis=2)
    return n


def crnn():
    """Text in images: columns of a feature map are the steps of an LSTM."""
    n = NetText("CRNN", data=[2, 1, 16, 40], cont=[10, 2])
    n.integers = {"cont": 2}
    x = n.pool("pool2", n.conv("conv2", n.pool("pool1", n.conv("conv1", "data", 8, 3, pad=1)),
                               8, 3, pad=1))
    x = n.layer("Permute", "steps", x, permute_param={"order": [3, 0, 1, 2]})
    x = n.layer("Reshape", "rows", x, reshape_param={"shape": {"dim": [0, 0, -1]}})
    x = n.layer("LSTM", "lstm", [x, "cont"], recurrent_param={"num_output": 6})
    n.fc("fc", x, 11, axis=2)
    return n


def c3d():
    """Convolutions over space and time."""
    n = NetText("C3D", data=[1, 3, 6, 20, 20])
    x = n.conv("conv1", "data", 8, 3, pad=1, stride=2)
    x = n.conv("conv2", x, 8, 3, pad=1, stride=2)
    n.softmax(n.fc("fc6", x, 10))
    return n


def srcnn(kind):
    n = NetText(kind, data=[1, 1, 24, 24])
    if kind == "FSRCNN":
        x = n.inplace("PReLU", n.conv("conv1", "data", 8, 5, pad=2, relu=False))
        x = n.inplace("PReLU", n.conv("conv2", x, 4, 1, relu=False))
        n.conv("deconv", x, 1, 9, kind="Deconvolution", stride=3, pad=4, relu=False)
        return n
    x = n.conv("conv1", "data", 8, 9 if kind == "SRCNN" else 3, pad=4 if kind == "SRCNN" else 1)
    x = n.conv("conv3", n.conv("conv2", x, 8, 1), 1, 5, pad=2, relu=False)
    if kind == "VDSR":
        n.add("sum", [x, "data"])
    return n


def colorization():
    n = NetText("Colorization", data_l=[1, 1, 32, 32])
    x = n.layer("Power", "data_l_norm", "data_l", power_param={"shift": -50})
    x = n.norm(n.conv("conv1", x, 8, 3, pad=1, stride=2), relu=False, inplace=False)
    x = n.conv("conv8", x, 8, 4, kind="Deconvolution", pad=1, stride=2)
    x = n.conv("conv8_313", x, 13, 1, relu=False)
    x = n.layer("Scale", "conv8_313_rh", x, scale_param={"bias_term": False})
    n.conv("class8_ab", n.softmax(x), 2, 1, relu=False)
    return n


def style_transfer():
    n = NetText("Style", data=[1, 3, 28, 28])
    x = n.layer("MVN", "norm1", n.conv("conv1", "data", 8, 9, pad=4, relu=False))
    x = n.relu(x)
    y = n.layer("MVN", "norm2", n.conv("conv2", x, 8, 3, pad=1, relu=False))
    x = n.add("res", [x, y])
    x = n.conv("up", x, 6, 4, kind="Deconvolution", stride=2, pad=1)
    x = n.layer("TanH", "tanh", n.conv("out", x, 3, 9, pad=4, relu=False))
    n.layer("Power", "pixels", x, power_param={"scale": 127.5, "shift": 127.5})
    return n


def generator():
    n = NetText("DCGAN", feat=[2, 12])
    x = n.fc("fc", "feat", 64)
    x = n.layer("Reshape", "image", x, reshape_param={"shape": {"dim": [0, 4, 4, 4]}})
    for i in (1, 2):
        x = n.conv(f"deconv{i}", x, 6, 4, kind="Deconvolution", stride=2, pad=1, relu=False)
        x = n.norm(x)
    n.layer("TanH", "out", n.conv("rgb", x, 3, 3, pad=1, relu=False))
    return n


def siamese():
    n = NetText("Siamese", pair_data=[2, 2, 28, 28])
    n.layer("Slice", "slice_pair", "pair_data", ["data", "data_p"], slice_param={"slice_dim": 1,
                                                                              "slice_point": 1})
    for end in ("", "_p"):
        shared = {"param": [{"name": '"conv_w"'}, {"name": '"conv_b"'}]}
        n.layer("Convolution", f"conv1{end}", f"data{end}",
                convolution_param={"num_output": 6, "kernel_size": 5}, **shared)
        x = n.pool(f"pool1{end}", f"conv1{end}")
        shared = {"param": [{"name": '"feat_w"'}, {"name": '"feat_b"'}]}
        n.layer("InnerProduct", f"feat{end}", x, inner_product_param={"num_output": 5}, **shared)
    return n


def flownet():
    n = NetText("FlowNet", img0=[1, 3, 32, 40], img1=[1, 3, 32, 40])
    images = [n.layer("Eltwise", f"img{i}s", [f"img{i}", f"img{i}"],
                      eltwise_param={"operation": "SUM", "coeff": [0.5, 0.25]}) for i in (0, 1)]
    x = n.conv("conv1", n.concat("input", images), 8, 7, pad=3, stride=2, relu=False)
    x = n.inplace("ReLU", x, relu_param={"negative_slope": 0.1})
    deep = n.conv("conv2", x, 12, 5, pad=2, stride=2)
    flow = n.conv("predict2", deep, 2, 3, pad=1, relu=False)
    up = n.conv("up2", flow, 2, 4, kind="Deconvolution", stride=2, pad=1, relu=False)
    y = n.conv("deconv1", deep, 6, 4, kind="Deconvolution", stride=2, pad=1)
    n.conv("predict1", n.concat("concat1", [x, y, up]), 2, 3, pad=1, relu=False)
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


def enet():
    n = NetText("ENet", data=[1, 3, 32, 32])
    a = n.conv("initial_conv", "data", 5, 3, pad=1, stride=2, relu=False)
    x = n.concat("initial", [a, n.pool("initial_pool", "data")])
    x = n.inplace("PReLU", n.norm(x, relu=False, inplace=False), "initial_prelu")
    y = n.conv_norm("asym1", x, 8, (5, 1), pad_h=2, pad_w=0)
    y = n.conv_norm("asym2", y, 8, (1, 5), pad_h=0, pad_w=2, relu=False)
    y = n.inplace("Dropout", y)
    x = n.inplace("PReLU", n.add("block", [x, y]), "block_prelu")
    n.conv("deconv", x, 4, 2, kind="Deconvolution", stride=2, relu=False)
    return n


def autoencoder():
    n = NetText("Autoencoder", data=[2, 1, 28, 28])
    x = n.layer("Flatten", "flatdata", "data")
    for i, width in enumerate((40, 10, 40), 1):
        x = n.layer("Sigmoid", f"encode{i}neuron", n.fc(f"encode{i}", x, width))
    n.layer("Sigmoid", "decode1neuron", n.fc("decode1", x, 784))
    return n


def landmarks():
    n = NetText("Landmarks", data=[2, 3, 40, 40])
    x = "data"
    for i in (1, 2, 3):
        y = n.layer("TanH", f"tanh{i}", n.conv(f"conv{i}", x, 8, 3, relu=False))
        x = n.pool(f"pool{i}", n.layer("AbsVal", f"abs{i}", y))
    n.fc("dense2", n.layer("TanH", "tanh4", n.fc("dense1", x, 16)), 10)
    return n


DENSE_NETS = {
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
    "fcn32s": lambda: fcn(32),
    "fcn8s": fcn,
    "deeplab": deeplab,
    "pspnet": lambda: deeplab(True),
    "unet": unet,
    "hed": hed,
    "openpose": openpose,
    "lrcn": lrcn,
    "lrcn_rnn": lambda: lrcn("RNN"),
    "crnn": crnn,
    "c3d": c3d,
    "srcnn": lambda: srcnn("SRCNN"),
    "vdsr": lambda: srcnn("VDSR"),
    "fsrcnn": lambda: srcnn("FSRCNN"),
    "colorization": colorization,
    "style_transfer": style_transfer,
    "dcgan": generator,
    "siamese": siamese,
    "flownet": flownet,
    "retinaface": retinaface,
    "text_boxes": text_boxes,
    "enet": enet,
    "autoencoder": autoencoder,
    "landmarks": landmarks,
}
