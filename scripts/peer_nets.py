"""The TRAIN nets of models/ as hand-written PyTorch modules, for comparisons.

`PEERS[name]` describes a net: its module, its image and its solver. Layers have the names and the
order of the prototxt file, so parameters() has the order of the net's weights. A BatchNorm2d is a
BatchNorm and the Scale after it. The modules follow Caffe's rules: pooling rounds up, normalisation
across channels divides alpha by the number of channels, and a Dropout divides by 1 - ratio.
"""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn


class PeerNet(nn.Module):
    """Layers by their names. A subclass adds them in __init__ and gives `loss(data, label)`."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict()

    def add_conv(self, name, inputs, outputs, kernel, **options):
        self.layers[name] = nn.Conv2d(inputs, outputs, kernel, **options)

    def add_ip(self, name, inputs, outputs):
        self.layers[name] = nn.Linear(inputs, outputs)

    def run(self, name, x):
        return self.layers[name](x)

    def run_relu(self, name, x):
        return F.relu(self.layers[name](x), inplace=True)

    def forward(self, data, label):
        return self.loss(data, label)


def max_pool(x, pad=0, stride=2):
    return F.max_pool2d(x, 3, stride, pad, ceil_mode=True)


def norm(x):
    return F.local_response_norm(x, 5, alpha=1e-4, beta=0.75, k=1)


class LeNet(PeerNet):
    def __init__(self):
        super().__init__()
        self.add_conv("conv1", 1, 20, 5)
        self.add_conv("conv2", 20, 50, 5)
        self.add_ip("ip1", 800, 500)
        self.add_ip("ip2", 500, 10)

    def loss(self, data, label):
        x = F.max_pool2d(self.run("conv1", data), 2)
        x = F.max_pool2d(self.run("conv2", x), 2)
        return F.cross_entropy(self.run("ip2", self.run_relu("ip1", x.flatten(1))), label)


class Cifar10Quick(PeerNet):
    def __init__(self):
        super().__init__()
        for i, (inputs, outputs) in enumerate(((3, 32), (32, 32), (32, 64)), 1):
            self.add_conv(f"conv{i}", inputs, outputs, 5, padding=2)
        self.add_ip("ip1", 1024, 64)
        self.add_ip("ip2", 64, 10)

    def loss(self, data, label):
        x = F.relu(max_pool(self.run("conv1", data)), inplace=True)
        for name in ("conv2", "conv3"):
            x = F.avg_pool2d(self.run_relu(name, x), 3, 2, ceil_mode=True)
        return F.cross_entropy(self.run("ip2", self.run("ip1", x.flatten(1))), label)


class AlexNet(PeerNet):
    """`norm_first`: AlexNet normalises before the pooling, CaffeNet after it."""

    def __init__(self, norm_first):
        super().__init__()
        self.norm_first = norm_first
        self.add_conv("conv1", 3, 96, 11, stride=4)
        self.add_conv("conv2", 96, 256, 5, padding=2, groups=2)
        self.add_conv("conv3", 256, 384, 3, padding=1)
        self.add_conv("conv4", 384, 384, 3, padding=1, groups=2)
        self.add_conv("conv5", 384, 256, 3, padding=1, groups=2)
        for i, (inputs, outputs) in enumerate(((9216, 4096), (4096, 4096), (4096, 1000)), 6):
            self.add_ip(f"fc{i}", inputs, outputs)
            if i < 8:
                self.layers[f"drop{i}"] = nn.Dropout(0.5)

    def loss(self, data, label):
        x = data
        for name in ("conv1", "conv2"):
            x = self.run_relu(name, x)
            x = max_pool(norm(x)) if self.norm_first else norm(max_pool(x))
        for name in ("conv3", "conv4", "conv5"):
            x = self.run_relu(name, x)
        x = max_pool(x).flatten(1)
        for i in (6, 7):
            x = self.run(f"drop{i}", self.run_relu(f"fc{i}", x))
        return F.cross_entropy(self.run("fc8", x), label)


class GoogLeNet(PeerNet):
    # Outputs of 1x1, 3x3_reduce, 3x3, 5x5_reduce, 5x5 and pool_proj.
    MODULES = {"3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
               "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64),
               "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
               "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128),
               "5b": (384, 192, 384, 48, 128, 128)}
    AUXILIARY = {"4a": "loss1", "4d": "loss2"}

    def __init__(self):
        super().__init__()
        self.add_conv("conv1/7x7_s2", 3, 64, 7, stride=2, padding=3)
        self.add_conv("conv2/3x3_reduce", 64, 64, 1)
        self.add_conv("conv2/3x3", 64, 192, 3, padding=1)
        channels = 192
        for module in self.MODULES:
            channels = self.add_inception(module, channels)
            if module in self.AUXILIARY:
                self.add_auxiliary(self.AUXILIARY[module], channels)
        self.layers["pool5/drop_7x7_s1"] = nn.Dropout(0.4)
        self.add_ip("loss3/classifier", 1024, 1000)

    def add_inception(self, module, inputs):
        one, reduce3, three, reduce5, five, proj = self.MODULES[module]
        name = f"inception_{module}/"
        self.add_conv(name + "1x1", inputs, one, 1)
        self.add_conv(name + "3x3_reduce", inputs, reduce3, 1)
        self.add_conv(name + "3x3", reduce3, three, 3, padding=1)
        self.add_conv(name + "5x5_reduce", inputs, reduce5, 1)
        self.add_conv(name + "5x5", reduce5, five, 5, padding=2)
        self.add_conv(name + "pool_proj", inputs, proj, 1)
        return one + three + five + proj

    def add_auxiliary(self, name, inputs):
        self.add_conv(name + "/conv", inputs, 128, 1)
        self.add_ip(name + "/fc", 2048, 1024)
        self.layers[name + "/drop_fc"] = nn.Dropout(0.7)
        self.add_ip(name + "/classifier", 1024, 1000)

    def inception(self, module, x):
        name = f"inception_{module}/"
        branches = [self.run_relu(name + "1x1", x),
                    self.run_relu(name + "3x3", self.run_relu(name + "3x3_reduce", x)),
                    self.run_relu(name + "5x5", self.run_relu(name + "5x5_reduce", x)),
                    self.run_relu(name + "pool_proj", max_pool(x, pad=1, stride=1))]
        return torch.cat(branches, 1)

    def auxiliary(self, name, x, label):
        x = F.avg_pool2d(x, 5, 3, ceil_mode=True)
        x = self.run_relu(name + "/fc", self.run_relu(name + "/conv", x).flatten(1))
        x = self.run(name + "/classifier", self.run(name + "/drop_fc", x))
        return F.cross_entropy(x, label)

    def loss(self, data, label):
        x = norm(max_pool(self.run_relu("conv1/7x7_s2", data)))
        x = self.run_relu("conv2/3x3", self.run_relu("conv2/3x3_reduce", x))
        x = max_pool(norm(x))
        losses = 0
        for module in self.MODULES:
            x = self.inception(module, x)
            if module in self.AUXILIARY:
                losses = losses + 0.3 * self.auxiliary(self.AUXILIARY[module], x, label)
            if module in ("3b", "4e"):
                x = max_pool(x)
        x = self.run("pool5/drop_7x7_s1", F.avg_pool2d(x, 7, 1, ceil_mode=True))
        return losses + F.cross_entropy(self.run("loss3/classifier", x.flatten(1)), label)


class NormalizedNet(PeerNet):
    """With a batch normalisation after each convolution."""

    def add_normalized(self, name, norm_name, inputs, outputs, kernel, bias=False, **options):
        self.add_conv(name, inputs, outputs, kernel, bias=bias, **options)
        # Caffe keeps 0.999 of the past.
        self.layers[norm_name] = nn.BatchNorm2d(outputs, eps=1e-5, momentum=0.001)

    def normalized(self, name, norm_name, x):
        return self.run(norm_name, self.run(name, x))


class ResNet50(NormalizedNet):
    # Blocks of a stage, and the channels within them.
    STAGES = {2: ("abc", 64), 3: ("abcd", 128), 4: ("abcdef", 256), 5: ("abc", 512)}

    def __init__(self):
        super().__init__()
        self.add_normalized("conv1", "bn_conv1", 3, 64, 7, bias=True, stride=2, padding=3)
        channels = 64
        for stage, block in self.blocks():
            width = self.STAGES[stage][1]
            stride = 2 if block == "a" and stage > 2 else 1
            if block == "a":
                self.add_branch(stage, block, "1", channels, 4 * width, 1, stride=stride)
            self.add_branch(stage, block, "2a", channels, width, 1, stride=stride)
            self.add_branch(stage, block, "2b", width, width, 3, padding=1)
            self.add_branch(stage, block, "2c", width, 4 * width, 1)
            channels = 4 * width
        self.add_ip("fc1000", 2048, 1000)

    def blocks(self):
        return [(stage, block) for stage, (blocks, _) in self.STAGES.items() for block in blocks]

    def add_branch(self, stage, block, branch, *sizes, **options):
        name = f"{stage}{block}_branch{branch}"
        self.add_normalized("res" + name, "bn" + name, *sizes, **options)

    def branch(self, stage, block, branch, x):
        name = f"{stage}{block}_branch{branch}"
        return self.normalized("res" + name, "bn" + name, x)

    def loss(self, data, label):
        x = max_pool(F.relu(self.normalized("conv1", "bn_conv1", data), inplace=True))
        for stage, block in self.blocks():
            shortcut = self.branch(stage, block, "1", x) if block == "a" else x
            for branch in ("2a", "2b"):
                x = F.relu(self.branch(stage, block, branch, x), inplace=True)
            x = F.relu(self.branch(stage, block, "2c", x).add_(shortcut), inplace=True)
        x = F.avg_pool2d(x, 7, 1, ceil_mode=True).flatten(1)
        return F.cross_entropy(self.run("fc1000", x), label)


class MobileNetV2(NormalizedNet):
    # Name, expanded channels, channels and stride. A block that keeps its shape adds its input.
    BLOCKS = (("2_1", 32, 16, 1), ("2_2", 96, 24, 2), ("3_1", 144, 24, 1), ("3_2", 144, 32, 2),
              ("4_1", 192, 32, 1), ("4_2", 192, 32, 1), ("4_3", 192, 64, 1), ("4_4", 384, 64, 1),
              ("4_5", 384, 64, 1), ("4_6", 384, 64, 1), ("4_7", 384, 96, 2), ("5_1", 576, 96, 1),
              ("5_2", 576, 96, 1), ("5_3", 576, 160, 2), ("6_1", 960, 160, 1),
              ("6_2", 960, 160, 1), ("6_3", 960, 320, 1))

    def __init__(self):
        super().__init__()
        self.add_unit("conv1", 3, 32, 3, stride=2, padding=1)
        channels = 32
        for block, expanded, outputs, stride in self.BLOCKS:
            self.add_unit(f"conv{block}/expand", channels, expanded, 1)
            self.add_unit(f"conv{block}/dwise", expanded, expanded, 3, stride=stride, padding=1,
                          groups=expanded)
            self.add_unit(f"conv{block}/linear", expanded, outputs, 1)
            channels = outputs
        self.add_unit("conv6_4", channels, 1280, 1)
        self.add_conv("fc7", 1280, 1000, 1)

    def add_unit(self, name, *sizes, **options):
        self.add_normalized(name, name + "/bn", *sizes, **options)

    def unit(self, name, x):
        return self.normalized(name, name + "/bn", x)

    def unit_relu(self, name, x):
        return F.relu(self.unit(name, x), inplace=True)

    def loss(self, data, label):
        x = self.unit_relu("conv1", data)
        for block, _, outputs, stride in self.BLOCKS:
            y = self.unit_relu(f"conv{block}/expand", x)
            y = self.unit(f"conv{block}/linear", self.unit_relu(f"conv{block}/dwise", y))
            x = y.add_(x) if stride == 1 and x.shape[1] == outputs else y
        x = F.adaptive_avg_pool2d(self.unit_relu("conv6_4", x), 1)
        return F.cross_entropy(self.run("fc7", x).flatten(1), label)


@dataclasses.dataclass
class Peer:
    """A net of models/, its input and its solver's weight decay."""
    make: object  # () -> PeerNet
    image: tuple  # channels, height, width
    classes: int
    weights: int  # learned numbers
    weight_decay: float
    bias: tuple = (2, 0)  # lr_mult and decay_mult of biases
    scale: tuple = (1, 1)  # of both parameters of a BatchNorm2d

    def multipliers(self, net):
        """(lr_mult, decay_mult) for each of net.parameters()."""
        found = []
        for module in net.layers.values():
            norm_layer = isinstance(module, nn.BatchNorm2d)
            for name, _ in module.named_parameters():
                bias = self.bias if name == "bias" else (1, 1)
                found.append(self.scale if norm_layer else bias)
        return found


PEERS = {
    "lenet": Peer(LeNet, (1, 28, 28), 10, 431_080, 0.0005, bias=(2, 1)),
    "cifar10_quick": Peer(Cifar10Quick, (3, 32, 32), 10, 145_578, 0.004, bias=(2, 1)),
    "alexnet": Peer(lambda: AlexNet(True), (3, 227, 227), 1000, 60_965_224, 0.0005),
    "caffenet": Peer(lambda: AlexNet(False), (3, 227, 227), 1000, 60_965_224, 0.0005),
    "googlenet": Peer(GoogLeNet, (3, 224, 224), 1000, 13_378_280, 0.0002),
    "resnet50": Peer(ResNet50, (3, 224, 224), 1000, 25_557_096, 0.0001, bias=(1, 1)),
    "mobilenet_v2": Peer(MobileNetV2, (3, 224, 224), 1000, 3_505_960, 0.00004, scale=(1, 0)),
}


def main():
    """Counts the weights of each module, and tries one pass."""
    for name, peer in PEERS.items():
        net = peer.make()
        count = sum(p.numel() for p in net.parameters())
        assert count == peer.weights, f"{name}: {count} weights, not {peer.weights}"
        loss = net(torch.rand(2, *peer.image), torch.tensor([0, 1]))
        print(f"{name}: {count:,} weights, first loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
