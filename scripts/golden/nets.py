"""Twenty SGD iterations of whole nets on made-up images: independent models in PyTorch, float64.

Weights, labels and pixels come from the integer hash of tests/support/golden.h, so that only the
losses and a few sums need storing. Parameter number i in the order of the net's layers is
hash_weight(stream i) within the case's bound_i. Sample j of iteration i is made-up image
i * batch + j. The functions repeat the prototxt files of models/ by hand.
"""

import numpy as np
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, hash_images, hash_mean, hash_weight

ITERATIONS = 20
BIAS_BOUND = 0.1


class Case:
    """A net: the forward pass, its parameters, its data and its solver."""

    def __init__(self, name, forward, image, classes, batch, scale=1.0, mean=False, **solver):
        self.name, self.forward, self.image, self.classes = name, forward, image, classes
        self.batch, self.scale = batch, scale
        self.mean = hash_mean(image) if mean else 0
        self.solver = {"base_lr": 0.01, "gamma": 0.05, "power": 0.75, "momentum": 0.9,
                       "weight_decay": 0.0005} | solver
        self.stored = []  # (values, bound and center at the start), in the net's order
        self.params, self.lr_mult, self.decay_mult = [], [], []  # of the learned parameters
        self.loss_weights, self.extra = {}, {}  # further numbers for the test

    def layer(self, *shapes, lr=(1, 2), decay=(1, 1)):
        """Adds the parameters of one layer, with weights within xavier's bound."""
        for i, shape in enumerate(shapes):
            value = torch.empty(shape, dtype=torch.float64, requires_grad=True)
            self.learn(value, lr[i], decay[i])
        return self

    def learn(self, param, lr_mult, decay_mult, bound=None, center=0):
        """Fills a parameter with its numbers, within `bound` of `center`."""
        if bound is None:
            bound = BIAS_BOUND if param.dim() == 1 else (3 / param[0].numel()) ** 0.5
        bound = float(f"{bound:.6g}")
        value = np.float32(hash_weight(len(self.stored), tuple(param.shape), bound))
        with torch.no_grad():
            param.copy_(torch.from_numpy(value + np.float32(center)))
        self.stored.append((param, bound, center))
        self.params.append(param)
        self.lr_mult.append(lr_mult)
        self.decay_mult.append(decay_mult)

    def data(self, indices):
        """Returns labels and transformed images."""
        labels, data = hash_images(indices, self.image, self.classes)
        return torch.tensor(labels), torch.tensor((data - self.mean) * self.scale)

    def train(self):
        """Returns the loss before each update: v = momentum * v + rate * g, w = w - v, L2 in g."""
        s, losses = self.solver, []
        history = [torch.zeros_like(p) for p in self.params]
        for iteration in range(ITERATIONS):
            first = iteration * self.batch
            labels, data = self.data(range(first, first + self.batch))
            loss = self.forward(self, data, labels)
            gradients = torch.autograd.grad(loss, self.params)
            losses.append(loss.item())
            rate = s["base_lr"] * (1 + s["gamma"] * iteration) ** -s["power"]
            with torch.no_grad():
                for i, (w, g, v) in enumerate(zip(self.params, gradients, history)):
                    g = g + s["weight_decay"] * self.decay_mult[i] * w
                    v.mul_(s["momentum"]).add_(g, alpha=rate * self.lr_mult[i])
                    w.sub_(v)
        return losses

    def write(self, out):
        losses = self.train()
        out.case(self.name)
        out.text("net", f"models/{self.name}/train_test.prototxt")
        settings = "\n".join(f"{key}: {value}" for key, value in self.solver.items())
        out.text("solver", f'{settings}\nlr_policy: "inv" max_iter: {ITERATIONS}')
        for key, value in zip(("channels", "height", "width"), self.image):
            out.number(key, value)
        out.number("classes", self.classes)
        out.number("batch", self.batch)
        out.number("scale", self.scale)
        for key, value in self.extra.items():
            out.number(key, value)
        for top, weight in self.loss_weights.items():
            out.number(f"loss_weight_{top}", weight)
        for i, loss in enumerate(losses):
            out.number(f"loss_{i}", loss)
        for i, (values, bound, center) in enumerate(self.stored):
            param = values() if callable(values) else values
            out.number(f"bound_{i}", bound)
            if center != 0:
                out.number(f"center_{i}", center)
            out.number(f"sum_{i}", param.sum())
            out.number(f"sum_of_squares_{i}", param.square().sum())


def lenet_features(p, x):
    x = F.max_pool2d(F.conv2d(x, p[0], p[1]), 2)
    x = F.max_pool2d(F.conv2d(x, p[2], p[3]), 2)
    return F.linear(F.relu(F.linear(x.flatten(1), p[4], p[5])), p[6], p[7])


LENET = ((20, 1, 5, 5), (20,)), ((50, 20, 5, 5), (50,)), ((500, 800), (500,)), ((10, 500), (10,))


def lenet():
    case = Case("lenet", lambda c, x, y: F.cross_entropy(lenet_features(c.params, x), y),
                (1, 28, 28), 10, 8, scale=1 / 256)
    for shapes in LENET:
        case.layer(*shapes)
    return case


def within_channel(x):
    """LRN over 3 x 3 neighbours: the mean of squares counts the padding too."""
    mean = F.avg_pool2d(x.square(), 3, 1, 1, count_include_pad=True)
    return x * (1 + 5e-5 * mean) ** -0.75


def cifar10_convolutions(p, x, norm):
    x = norm(F.relu(F.max_pool2d(F.conv2d(x, p[0], p[1], padding=2), 3, 2, ceil_mode=True)))
    for i in (2, 4):
        x = F.relu(F.conv2d(x, p[i], p[i + 1], padding=2))
        x = F.avg_pool2d(x, 3, 2, ceil_mode=True)
        x = norm(x) if i == 2 else x
    return x.flatten(1)


def cifar10_case(name, forward):
    # With pixels as large as in the shipped file, one ReLU that flips because of float32 rounding
    # changes later losses by 1e-3. So the test scales the pixels and learns slowly.
    case = Case(name, forward, (3, 32, 32), 10, 10, scale=0.01, mean=True, base_lr=0.002,
                weight_decay=0.004)
    case.layer((32, 3, 5, 5), (32,))
    case.layer((32, 32, 5, 5), (32,))
    return case


def cifar10_quick():
    def forward(case, x, y):
        p = case.params
        x = cifar10_convolutions(p, x, lambda t: t)
        return F.cross_entropy(F.linear(F.linear(x, p[6], p[7]), p[8], p[9]), y)

    case = cifar10_case("cifar10_quick", forward).layer((64, 32, 5, 5), (64,))
    return case.layer((64, 1024), (64,)).layer((10, 64), (10,))


def cifar10_full():
    def forward(case, x, y):
        p = case.params
        return F.cross_entropy(F.linear(cifar10_convolutions(p, x, within_channel), p[6], p[7]), y)

    case = cifar10_case("cifar10_full", forward).layer((64, 32, 5, 5), (64,), lr=(1, 1))
    return case.layer((10, 1024), (10,), decay=(250, 0))


def autoencoder():
    """Both losses count here, although the shipped file gives the second one the weight 0."""
    def forward(case, x, _):
        p, data = case.params, x.flatten(1)
        h = data
        for i in range(0, 16, 2):
            h = F.linear(h, p[i], p[i + 1])
            h = h if i in (6, 14) else torch.sigmoid(h)
        entropy = F.binary_cross_entropy_with_logits(h, data, reduction="sum") / len(x)
        error = (torch.sigmoid(h) - data).square().sum() / (2 * len(x))
        return entropy + case.loss_weights["l2_error"] * error

    case = Case("autoencoder", forward, (1, 28, 28), 10, 10, scale=0.0039215684, base_lr=0.001)
    case.loss_weights["l2_error"] = 0.25
    sizes = (784, 1000, 500, 250, 30, 250, 500, 1000, 784)
    for inputs, outputs in zip(sizes, sizes[1:]):
        case.layer((outputs, inputs), (outputs,), lr=(1, 1), decay=(1, 0))
    return case


def siamese():
    """Reads pairs of digits as the two channels of one image. Label 1 means the same digit."""
    def forward(case, x, same):
        def point(image):
            return F.linear(lenet_features(case.params, image), case.params[8], case.params[9])

        square = (point(x[:, :1]) - point(x[:, 1:])).square().sum(1)
        distance = square.detach().sqrt()
        gap = (1 - distance).clamp(min=0)
        # Its value is gap^2. Its gradient is Caffe's, which divides by distance + 1e-4 to stay
        # finite.
        pull = -gap / (distance + 1e-4) * square
        apart = pull + (gap.square() - pull).detach()
        return torch.where(same == 1, square, apart).sum() / (2 * len(x))

    case = Case("siamese", forward, (2, 28, 28), 2, 8, scale=1 / 256, base_lr=0.002,
                weight_decay=0)
    for shapes in LENET:
        case.layer(*shapes)
    return case.layer((2, 10), (2,))


def lstm():
    """The rows of an image are the steps of a sequence."""
    def forward(case, x, y):
        wx, b, wh, score, score_bias = case.params
        h = c = torch.zeros(len(x), 64, dtype=torch.float64)
        for row in range(28):
            gates = F.linear(x[:, 0, row], wx, b) + F.linear(h, wh)
            i, f, o, g = gates.split(64, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return F.cross_entropy(F.linear(h, score, score_bias), y)

    case = Case("lstm", forward, (1, 28, 28), 10, 64, scale=1 / 256, base_lr=0.05)
    case.layer((256, 28), (256,), (256, 64), lr=(1, 1, 1), decay=(1, 1, 1))
    return case.layer((10, 64), (10,), lr=(1, 1))


def main():
    torch.set_num_threads(1)
    out = GoldenFile("nets.txt", "none (integer hash)",
                     "Losses of 20 SGD iterations of whole nets, and sums of the weights after them.")
    for make in (lenet, cifar10_quick, cifar10_full, autoencoder, siamese, lstm):
        make().write(out)
    out.save()


if __name__ == "__main__":
    main()
