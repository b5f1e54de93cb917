"""Small versions of public deploy nets: the structures of well-known classifiers, with few channels
and small images, so that all of them run in a minute."""

from net_text import NetText


def lenet():
    n = NetText("LeNet", data=[2, 1, 28, 28])
    x = n.pool("pool1", n.conv("conv1", "data", 8, 5, relu=False))
    x = n.pool("pool2", n.conv("conv2", x, 12, 5, relu=False))
    n.softmax(n.fc("ip2", n.fc("ip1", x, 32, relu=True), 10))
    return n


def alexnet(name="AlexNet", norm_first=True, groups=2, size=67):
    n = NetText(name, data=[2, 3, size, size])
    x = n.conv("conv1", "data", 12, 11, stride=4)
    x = n.pool("pool1", n.lrn("norm1", x), 3) if norm_first else n.lrn("norm1", n.pool("pool1", x, 3))
    x = n.conv("conv2", x, 16, 5, pad=2, group=groups)
    x = n.pool("pool2", n.lrn("norm2", x), 3) if norm_first else n.lrn("norm2", n.pool("pool2", x, 3))
    x = n.conv("conv4", n.conv("conv3", x, 16, 3, pad=1), 16, 3, pad=1, group=groups)
    x = n.pool("pool5", n.conv("conv5", x, 16, 3, pad=1, group=groups), 3, 1)
    for name in ("fc6", "fc7"):
        x = n.fc(name, x, 32, relu=True)
        x = n.inplace("Dropout", x, f"drop_{name}", dropout_param={"dropout_ratio": 0.5})
    n.softmax(n.fc("fc8", x, 10))
    return n


def vgg(depths, norm=False):
    n = NetText(f"VGG{sum(depths) + 3}", data=[1, 3, 32, 32])
    x = "data"
    for stage, depth in enumerate(depths, 1):
        for i in range(1, depth + 1):
            name = f"conv{stage}_{i}"
            conv = n.conv_norm if norm else n.conv
            x = conv(name, x, 6 + 2 * stage, 3, pad=1)
        x = n.pool(f"pool{stage}", x)
    x = n.fc("fc7", n.fc("fc6", x, 24, relu=True), 24, relu=True)
    n.softmax(n.fc("fc8", x, 10))
    return n


def nin(size=32):
    n = NetText("NIN", data=[2, 3, size, size])
    x = "data"
    for i, (kernel, pad) in enumerate([(5, 2), (5, 2), (3, 1)], 1):
        x = n.conv(f"conv{i}", x, 12, kernel, pad=pad)
        x = n.conv(f"cccp{2 * i - 1}", x, 10, 1)
        x = n.conv(f"cccp{2 * i}", x, 10, 1)
        if i < 3:
            x = n.pool(f"pool{i}", x, 3, 2, "MAX" if i == 1 else "AVE")
    n.softmax(n.global_pool("pool3", x))
    return n


def inception(n, name, x, widths, norm=False):
    """A module of GoogLeNet: 1x1; 1x1, 3x3; 1x1, 5x5; pool, 1x1."""
    conv = n.conv_norm if norm else n.conv
    a = conv(f"{name}/1x1", x, widths, 1)
    b = conv(f"{name}/3x3", conv(f"{name}/3x3_reduce", x, widths, 1), widths, 3, pad=1)
    c = conv(f"{name}/5x5", conv(f"{name}/5x5_reduce", x, widths, 1), widths, 5, pad=2)
    d = conv(f"{name}/pool_proj", n.pool(f"{name}/pool", x, 3, 1, pad=1), widths, 1)
    return n.concat(f"{name}/output", [a, b, c, d])


def googlenet(norm=False):
    n = NetText("GoogLeNet", data=[1, 3, 64, 64])
    conv = n.conv_norm if norm else n.conv
    x = n.pool("pool1/3x3_s2", conv("conv1/7x7_s2", "data", 8, 7, stride=2, pad=3), 3)
    if not norm:
        x = n.lrn("pool1/norm1", x)
    x = n.pool("pool2/3x3_s2", conv("conv2/3x3", x, 12, 3, pad=1), 3)
    x = inception(n, "inception_3b", inception(n, "inception_3a", x, 4, norm), 4, norm)
    x = n.pool("pool3/3x3_s2", x, 3)
    x = inception(n, "inception_4a", x, 5, norm)
    x = n.pool("pool5/7x7_s1", x, 4, 1, "AVE")
    x = n.inplace("Dropout", x, dropout_param={"dropout_ratio": 0.4})
    n.softmax(n.fc("loss3/classifier", x, 10))
    return n


def inception_v3(residual=False):
    """Asymmetric kernels, average pooling with padding, branches with strides."""
    n = NetText("InceptionV3", data=[1, 3, 47, 47])
    x = n.conv_norm("conv0", "data", 8, 3, stride=2)
    x = n.pool("pool0", n.conv_norm("conv1", x, 8, 3, pad=1), 3)
    a = n.conv_norm("mixed/7x1", n.conv_norm("mixed/1x7", n.conv_norm("mixed/1", x, 8, 1), 8, (1, 7),
                                            pad_h=0, pad_w=3), 8, (7, 1), pad_h=3, pad_w=0)
    b = n.conv_norm("mixed/proj", n.pool("mixed/pool", x, 3, 1, "AVE", pad=1), 8, 1)
    y = n.concat("mixed", [a, b])
    if residual:
        up = n.conv("mixed/up", y, 8, 1, relu=False)
        scaled = n.layer("Power", "mixed/scaled", up, power_param={"scale": 0.17})
        y = n.add("mixed/sum", [x, scaled], relu=True)
    a = n.conv_norm("reduce/3x3", y, 8, 3, stride=2)
    b = n.pool("reduce/pool", y, 3, 2, kind="MAX")
    y = n.pool("pool", n.concat("reduce", [a, b]), 5, 1, "AVE")
    n.softmax(n.fc("fc", y, 10))
    return n


def resnet(blocks, bottleneck=False, groups=1, squeeze=False, size=35, preact=False):
    n = NetText(f"ResNet{len(blocks)}", data=[1, 3, size, size])
    x = n.pool("pool1", n.conv_norm("conv1", "data", 8, 7, pad=3, stride=2), 3)
    for stage, count in enumerate(blocks, 2):
        for i in range(count):
            name = f"res{stage}{chr(97 + i)}"
            width, stride = 4 * 2 ** (stage - 1), 2 if i == 0 and stage > 2 else 1
            out = 2 * width if bottleneck else width
            short = x
            if i == 0:
                short = n.conv_norm(f"{name}_branch1", x, out, 1, stride=stride, relu=False)
            if preact:
                x = n.norm(n.layer("Split", f"{name}_in", x, [f"{name}_in"]), inplace=False)
            if bottleneck:
                y = n.conv_norm(f"{name}_branch2a", x, width, 1, stride=stride)
                y = n.conv_norm(f"{name}_branch2b", y, width, 3, pad=1, group=groups)
                y = n.conv_norm(f"{name}_branch2c", y, out, 1, relu=False)
            else:
                y = n.conv_norm(f"{name}_branch2a", x, width, 3, pad=1, stride=stride)
                y = n.conv_norm(f"{name}_branch2b", y, out, 3, pad=1, relu=False)
            if squeeze:
                y = squeezed(n, name, y, out)
            x = n.add(name, [short, y], relu=True)
    n.softmax(n.fc("fc1000", n.global_pool("pool5", x), 10))
    return n


def squeezed(n, name, x, channels):
    """Squeeze and excitation: a factor per channel from the means of all channels."""
    y = n.global_pool(f"{name}_se_pool", x)
    y = n.conv(f"{name}_se_down", y, max(2, channels // 4), 1)
    y = n.inplace("Sigmoid", n.conv(f"{name}_se_up", y, channels, 1, relu=False))
    y = n.layer("Flatten", f"{name}_se_flat", y)
    return n.layer("Scale", f"{name}_se", [x, y], scale_param={"axis": 0})


def densenet(blocks):
    n = NetText("DenseNet", data=[1, 3, 32, 32])
    x = n.pool("pool1", n.conv_norm("conv1", "data", 8, 7, pad=3, stride=2), 3, pad=1)
    for block, count in enumerate(blocks, 2):
        for i in range(1, count + 1):
            name = f"conv{block}_{i}"
            y = n.layer("BatchNorm", f"{name}/x1/bn", x)
            y = n.relu(n.layer("Scale", f"{name}/x1/scale", y, [y], scale_param={"bias_term": True}))
            y = n.conv(f"{name}/x2", y, 6, 3, pad=1, relu=False, bias_term=False)
            x = n.concat(f"concat_{block}_{i}", [x, y])
        if block <= len(blocks):
            x = n.pool(f"pool{block}", n.conv(f"conv{block}_blk", x, 8, 1, relu=False), 2, 2, "AVE")
    x = n.norm(x, inplace=False)
    n.softmax(n.conv("fc6", n.global_pool("pool6", x), 10, 1, relu=False))
    return n


def squeezenet(version=0):
    n = NetText("SqueezeNet", data=[1, 3, 51, 51])
    x = n.pool("pool1", n.conv("conv1", "data", 8, 7 if version == 0 else 3, stride=2), 3)
    for i in (2, 3, 4):
        s = n.conv(f"fire{i}/squeeze1x1", x, 4, 1)
        x = n.concat(f"fire{i}/concat", [n.conv(f"fire{i}/expand1x1", s, 8, 1),
                                         n.conv(f"fire{i}/expand3x3", s, 8, 3, pad=1)])
        if i == 3:
            x = n.pool("pool3", x, 3)
    x = n.inplace("Dropout", x, "drop9")
    n.softmax(n.global_pool("pool10", n.conv("conv10", x, 10, 1)))
    return n


def mobilenet(version=1, kind="Convolution"):
    n = NetText(f"MobileNetV{version}", data=[1, 3, 32, 32])
    x = n.conv_norm("conv1", "data", 8, 3, stride=2, pad=1)
    width = 8
    for i, (out, stride) in enumerate([(8, 1), (12, 2), (12, 1), (16, 2)], 2):
        start = x
        inner = width * (3 if version == 2 else 1)
        if version == 2:
            x = n.conv_norm(f"conv{i}/expand", x, inner, 1)
        x = n.conv_norm(f"conv{i}/dw", x, inner, 3, pad=1, stride=stride, group=inner, kind=kind)
        x = n.conv_norm(f"conv{i}/sep", x, out, 1, relu=version == 1)
        if version == 2 and stride == 1 and width == out:
            x = n.add(f"block{i}", [start, x])
        width = out
    n.softmax(n.conv("fc7", n.global_pool("pool6", x), 10, 1, relu=False))
    return n


def shufflenet(permutes=True):
    """Channels are shuffled by Reshape, Permute and Reshape."""
    n = NetText("ShuffleNet", data=[1, 3, 32, 32])
    x = n.pool("pool1", n.conv_norm("conv1", "data", 12, 3, stride=2, pad=1), 3)
    for i in (1, 2):
        y = n.conv_norm(f"unit{i}/reduce", x, 12, 1, group=3)
        if permutes:
            y = n.layer("Reshape", f"unit{i}/cut", y,
                        reshape_param={"shape": {"dim": [0, 3, 4, -1]}})
            y = n.layer("Permute", f"unit{i}/swap", y, permute_param={"order": [0, 2, 1, 3]})
            y = n.layer("Reshape", f"unit{i}/join", y,
                        reshape_param={"shape": {"dim": [0, 12, 8, 8]}})
        y = n.conv_norm(f"unit{i}/dw", y, 12, 3, pad=1, group=12, relu=False)
        y = n.conv_norm(f"unit{i}/expand", y, 12, 1, group=3, relu=False)
        x = n.add(f"unit{i}", [x, y], relu=True)
    n.softmax(n.fc("fc", n.global_pool("pool", x), 10))
    return n


def xception():
    n = NetText("Xception", data=[1, 3, 37, 37])
    x = n.conv_norm("conv1", "data", 8, 3, stride=2)
    for i in (2, 3):
        short = n.conv_norm(f"x{i}/match", x, 12, 1, stride=2, relu=False)
        y = n.conv(f"x{i}/dw", x, 8 if i == 2 else 12, 3, pad=1, relu=False, bias_term=False,
                   group=8 if i == 2 else 12)
        y = n.conv_norm(f"x{i}/sep", y, 12, 1, relu=False)
        x = n.add(f"x{i}", [short, n.pool(f"x{i}/pool", y, 3, pad=1, ceil_mode=False)])
    n.softmax(n.fc("fc", n.global_pool("pool", x), 10))
    return n


def dpn():
    """Slices and concatenates, as dual path networks do."""
    n = NetText("DPN", data=[1, 3, 24, 24])
    x = n.conv_norm("conv1", "data", 12, 3, stride=2, pad=1)
    n.layer("Slice", "cut", x, ["path_a", "path_b"], slice_param={"axis": 1, "slice_point": 8})
    y = n.conv_norm("block", n.concat("joined", ["path_a", "path_b"]), 12, 3, pad=1, group=4)
    n.layer("Slice", "cut2", y, ["new_a", "new_b"], slice_param={"axis": 1, "slice_point": 8})
    a = n.add("sum_a", ["path_a", "new_a"])
    x = n.norm(n.concat("all", [a, "path_b", "new_b"]), inplace=False)
    n.softmax(n.fc("fc", n.global_pool("pool", x), 10))
    return n


def light_cnn():
    """Max-feature-map: the larger half of the channels."""
    n = NetText("LightCNN", data=[1, 1, 32, 32])
    x = "data"
    for i in (1, 2, 3):
        y = n.conv(f"conv{i}", x, 16, 3, pad=1, relu=False)
        n.layer("Slice", f"slice{i}", y, [f"slice{i}_1", f"slice{i}_2"])
        x = n.add(f"mfm{i}", [f"slice{i}_1", f"slice{i}_2"], operation="MAX")
        x = n.pool(f"pool{i}", x)
    y = n.fc("fc1", x, 16)
    n.layer("Slice", "slice_fc", y, ["fc_1", "fc_2"])
    n.fc("fc2", n.add("eltwise_fc", ["fc_1", "fc_2"], operation="MAX"), 10)
    return n


def sphereface():
    n = NetText("SphereFace", data=[1, 3, 28, 24])
    x = "data"
    for i in (1, 2):
        x = n.inplace("PReLU", n.conv(f"conv{i}_1", x, 8, 3, stride=2, pad=1, relu=False))
        y = n.inplace("PReLU", n.conv(f"conv{i}_2", x, 8, 3, pad=1, relu=False))
        y = n.inplace("PReLU", n.conv(f"conv{i}_3", y, 8, 3, pad=1, relu=False))
        x = n.add(f"res{i}", [x, y])
    n.layer("Normalize", "normed", n.fc("fc5", x, 16))
    return n


def cifar(full=True):
    n = NetText("CIFAR10", data=[2, 3, 32, 32])
    x = n.relu(n.pool("pool1", n.conv("conv1", "data", 8, 5, pad=2, relu=False), 3))
    if full:
        x = n.lrn("norm1", x, local_size=3, norm_region="WITHIN_CHANNEL")
    x = n.pool("pool2", n.conv("conv2", x, 8, 5, pad=2), 3, 2, "AVE")
    if full:
        x = n.lrn("norm2", x, local_size=3, norm_region="WITHIN_CHANNEL")
    x = n.pool("pool3", n.conv("conv3", x, 8, 5, pad=2), 3, 2, "AVE")
    n.softmax(n.fc("ip1", x, 10))
    return n


def spp_net():
    n = NetText("SPPNet", data=[1, 3, 31, 31])
    x = n.conv("conv2", n.pool("pool1", n.conv("conv1", "data", 8, 5, stride=2), 3), 8, 3, pad=1)
    n.fc("fc", n.layer("SPP", "spp", x, spp_param={"pyramid_height": 3, "pool": "MAX"}), 10)
    return n


def pvanet():
    """Concatenated ReLU: the channels and their negatives, then Scale."""
    n = NetText("PVANet", data=[1, 3, 32, 32])
    x = "data"
    for i in (1, 2):
        y = n.conv(f"conv{i}", x, 6, 5, stride=2, pad=2, relu=False)
        y = n.norm(y, relu=False, inplace=False)
        negative = n.layer("Power", f"conv{i}/neg", y, power_param={"scale": -1})
        y = n.concat(f"conv{i}/concat", [y, negative])
        y = n.layer("Scale", f"conv{i}/crelu", y, scale_param={"bias_term": True})
        x = n.relu(y)
    n.softmax(n.fc("fc", x, 10))
    return n


CLASSIFIERS = {
    "lenet": lenet,
    "alexnet": alexnet,
    "caffenet": lambda: alexnet("CaffeNet", norm_first=False),
    "zfnet": lambda: alexnet("ZFNet", groups=1),
    "vgg_f": lambda: alexnet("VGG_CNN_F", groups=1, size=79),
    "vgg11": lambda: vgg([1, 1, 2, 2, 2]),
    "vgg16": lambda: vgg([2, 2, 3, 3, 3]),
    "vgg19": lambda: vgg([2, 2, 4, 4, 4]),
    "vgg16_bn": lambda: vgg([2, 2, 3, 3, 3], norm=True),
    "nin_cifar": nin,
    "nin_large": lambda: nin(45),
    "googlenet": googlenet,
    "inception_bn": lambda: googlenet(norm=True),
    "inception_v3": inception_v3,
    "inception_resnet": lambda: inception_v3(residual=True),
    "resnet18": lambda: resnet([2, 2, 2]),
    "resnet34": lambda: resnet([3, 4, 3]),
    "resnet50": lambda: resnet([2, 2, 2], bottleneck=True),
    "resnet101": lambda: resnet([2, 3, 5], bottleneck=True),
    "resnet_preact": lambda: resnet([2, 2], bottleneck=True, preact=True),
    "resnext50": lambda: resnet([2, 2], bottleneck=True, groups=4),
    "se_resnet50": lambda: resnet([2, 2], bottleneck=True, squeeze=True),
    "se_resnext50": lambda: resnet([2, 1], bottleneck=True, squeeze=True, groups=4),
    "densenet121": lambda: densenet([3, 3]),
    "densenet169": lambda: densenet([2, 3, 4]),
    "squeezenet_v1.0": squeezenet,
    "squeezenet_v1.1": lambda: squeezenet(1),
    "mobilenet_v1": mobilenet,
    "mobilenet_v1_depthwise": lambda: mobilenet(kind="DepthwiseConvolution"),
    "mobilenet_v2": lambda: mobilenet(2),
    "mobilenet_v2_forks": lambda: mobilenet(2, "ConvolutionDepthwise"),
    "shufflenet": shufflenet,
    "xception": xception,
    "dpn": dpn,
    "light_cnn": light_cnn,
    "sphereface": sphereface,
    "cifar10_full": cifar,
    "cifar10_quick": lambda: cifar(False),
    "spp_net": spp_net,
    "pvanet": pvanet,
}
