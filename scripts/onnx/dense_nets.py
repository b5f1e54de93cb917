"""Small versions of public deploy nets: segmentation, sequences, images from images. They have the
structures of the originals, with few channels."""

from net_text import NetText


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
    "enet": enet,
    "autoencoder": autoencoder,
    "landmarks": landmarks,
}
