"""Twenty SGD iterations of LeNet on made-up digits: an independent model in PyTorch, float64.

Weights, labels and pixels come from the integer hash of tests/support/golden.h, so that only the
losses and a few sums need storing. Parameter number i (conv1 weight = 0, conv1 bias = 1, ...) is
hash_weight(stream i) within xavier's bound for weights, and zero for biases. Sample j of iteration i
is digit i * BATCH + j, its bytes times 1/256.
"""

import torch
import torch.nn.functional as F

from golden_file import GoldenFile, hash_digits, hash_weight

BATCH, ITERATIONS = 8, 20
BASE_LR, GAMMA, POWER, MOMENTUM, DECAY = 0.01, 0.05, 0.75, 0.9, 0.0005
SHAPES = {"conv1": (20, 1, 5, 5), "conv2": (50, 20, 5, 5), "ip1": (500, 800), "ip2": (10, 500)}


def initial_params():
    params = []
    for shape in SHAPES.values():
        fan_in = 1
        for length in shape[1:]:
            fan_in *= length
        weight = hash_weight(len(params), shape, (3 / fan_in) ** 0.5)
        params += [torch.tensor(weight, requires_grad=True),
                   torch.zeros(shape[0], dtype=torch.float64, requires_grad=True)]
    return params


def forward(params, x):
    x = F.max_pool2d(F.conv2d(x, params[0], params[1]), 2)
    x = F.max_pool2d(F.conv2d(x, params[2], params[3]), 2)
    x = F.relu(F.linear(x.flatten(1), params[4], params[5]))
    return F.linear(x, params[6], params[7])


def train(params):
    """Losses before each update; v = momentum * v + rate * g, w = w - v, with L2 in g."""
    losses = []
    history = [torch.zeros_like(p) for p in params]
    for iteration in range(ITERATIONS):
        labels, data = hash_digits(range(iteration * BATCH, (iteration + 1) * BATCH))
        scores = forward(params, torch.tensor(data) / 256)
        loss = F.cross_entropy(scores, torch.tensor(labels))
        gradients = torch.autograd.grad(loss, params)
        losses.append(loss.item())
        rate = BASE_LR * (1 + GAMMA * iteration) ** -POWER
        with torch.no_grad():
            for i, (w, g, v) in enumerate(zip(params, gradients, history)):
                v.mul_(MOMENTUM).add_(g + DECAY * w, alpha=rate * (1 + i % 2))  # lr_mult 1, 2
                w.sub_(v)
    return losses


def main():
    params = initial_params()
    losses = train(params)
    out = GoldenFile("lenet.txt", "none (integer hash)",
                     "LeNet: losses of 20 SGD iterations, and sums of the weights after them.")
    out.case("lenet")
    out.text("solver", f"""base_lr: {BASE_LR} lr_policy: "inv" gamma: {GAMMA} power: {POWER}
momentum: {MOMENTUM} weight_decay: {DECAY} max_iter: {ITERATIONS}""")
    out.number("batch", BATCH)
    for i, loss in enumerate(losses):
        out.number(f"loss_{i}", loss)
    for i, param in enumerate(params):
        out.number(f"sum_{i}", param.sum())
        out.number(f"sum_of_squares_{i}", param.square().sum())
    out.save()


if __name__ == "__main__":
    main()
