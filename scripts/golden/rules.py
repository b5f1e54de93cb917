"""Ten steps of each update rule on two parameters, in NumPy float64.

A step: the gradients of iter_size passes are summed; if clip_gradients is set and the 2-norm over
both parameters exceeds it, they are scaled down to it; then divided by iter_size; then the decay is
added; then the rule moves the weights, for SGD v = momentum * v + rate * lr_mult * g and w = w - v.
`clip_and_iter_size` is where the order matters.
"""

import numpy as np

from golden_file import GoldenFile, grid

SEED = 4
STEPS = 10
LR_MULT, DECAY_MULT = (1, 2), (1, 0.5)

# name, solver fields
CASES = [
    ("plain", {}),
    ("momentum", {"momentum": 0.9}),
    ("l2", {"momentum": 0.9, "weight_decay": 0.25}),
    ("l1", {"momentum": 0.5, "weight_decay": 0.125, "regularization_type": '"L1"'}),
    ("clip", {"momentum": 0.9, "clip_gradients": 3}),
    ("iter_size", {"momentum": 0.9, "weight_decay": 0.25, "iter_size": 3}),
    ("clip_and_iter_size", {"momentum": 0.9, "clip_gradients": 3, "iter_size": 2}),
    ("inv_rate", {"momentum": 0.9, "lr_policy": '"inv"', "gamma": 0.5, "power": 0.75}),
]

DECAYED = {"weight_decay": 0.125, "iter_size": 2}
OTHER_RULES = [
    ("nesterov", {"type": '"Nesterov"', "momentum": 0.9, **DECAYED}),
    ("nesterov_l1_clip", {"type": '"Nesterov"', "momentum": 0.5, "weight_decay": 0.125,
                          "regularization_type": '"L1"', "clip_gradients": 2}),
    ("adagrad", {"type": '"AdaGrad"', "delta": 0.01, **DECAYED}),
    ("rmsprop", {"type": '"RMSProp"', "rms_decay": 0.75, "delta": 0.01, **DECAYED}),
    ("adadelta", {"type": '"AdaDelta"', "momentum": 0.95, "delta": 0.001, **DECAYED}),
    ("adam", {"type": '"Adam"', "momentum": 0.9, "momentum2": 0.99, "delta": 0.001, **DECAYED}),
    ("adam_defaults", {"type": '"Adam"', "momentum": 0.9}),
]


# Each moves w and its two arrays of history in place; t counts the steps from 0.
def sgd(f, t, w, a, b, g, eta):
    a[:] = f.get("momentum", 0) * a + eta * g
    w -= a


def nesterov(f, t, w, a, b, g, eta):
    mu, old = f["momentum"], a.copy()
    a[:] = mu * a + eta * g
    w -= (1 + mu) * a - mu * old


def adagrad(f, t, w, a, b, g, eta):
    a += g**2
    w -= eta * g / (np.sqrt(a) + f["delta"])


def rmsprop(f, t, w, a, b, g, eta):
    a[:] = f["rms_decay"] * a + (1 - f["rms_decay"]) * g**2
    w -= eta * g / (np.sqrt(a) + f["delta"])


def adadelta(f, t, w, a, b, g, eta):
    mu = f["momentum"]
    a[:] = mu * a + (1 - mu) * g**2
    move = g * np.sqrt((b + f["delta"]) / (a + f["delta"]))
    b[:] = mu * b + (1 - mu) * move**2
    w -= eta * move


def adam(f, t, w, a, b, g, eta):
    beta1, beta2 = f["momentum"], f.get("momentum2", 0.999)
    a[:] = beta1 * a + (1 - beta1) * g
    b[:] = beta2 * b + (1 - beta2) * g**2
    eta *= np.sqrt(1 - beta2 ** (t + 1)) / (1 - beta1 ** (t + 1))
    w -= eta * a / (np.sqrt(b) + f.get("delta", 1e-8))


RULES = {"SGD": sgd, "Nesterov": nesterov, "AdaGrad": adagrad, "RMSProp": rmsprop,
         "AdaDelta": adadelta, "Adam": adam}


def rate(fields, step):
    if "gamma" in fields:
        return 0.125 * (1 + fields["gamma"] * step) ** -fields["power"]
    return 0.125


def update(fields, step, weights, history, sums):
    norm = np.sqrt(sum((g**2).sum() for g in sums))
    clip = fields.get("clip_gradients", np.inf)
    scale = (clip / norm if norm > clip else 1) / fields.get("iter_size", 1)
    rule = RULES[fields.get("type", '"SGD"').strip('"')]
    for i, (w, (a, b), g) in enumerate(zip(weights, history, sums)):
        decay = fields.get("weight_decay", 0) * DECAY_MULT[i]
        penalty = np.sign(w) if "regularization_type" in fields else w
        rule(fields, step, w, a, b, g * scale + decay * penalty, rate(fields, step) * LR_MULT[i])


def ten_steps(rng, out, name, fields):
    weights = [grid(rng, 7, steps=16, unit=8), grid(rng, 3, steps=16, unit=8)]
    history = [np.zeros((2, 7)), np.zeros((2, 3))]
    out.case(name)
    lines = {"type": '"SGD"', "base_lr": 0.125, "lr_policy": '"fixed"', "max_iter": STEPS, **fields}
    out.text("solver", "\n".join(f"{key}: {value}" for key, value in lines.items()))
    for i, w in enumerate(weights):
        out.number(f"lr_mult_{i}", LR_MULT[i])
        out.number(f"decay_mult_{i}", DECAY_MULT[i])
        out.tensor(f"start_{i}", w)
    sums = [grid(rng, STEPS, len(w), steps=16, unit=8) for w in weights]
    after = [np.zeros_like(s) for s in sums]
    for step in range(STEPS):
        update(fields, step, weights, history, [s[step] for s in sums])
        for values, w in zip(after, weights):
            values[step] = w
    for i in range(2):
        out.tensor(f"gradient_sums_{i}", sums[i])
        out.tensor(f"after_{i}", after[i])


def main():
    files = [("sgd.txt", "SGD: weights after each of ten steps.", CASES),
             ("rules.txt", "The other rules: weights after each of ten steps.", OTHER_RULES)]
    for name, about, cases in files:
        rng = np.random.default_rng(SEED)
        out = GoldenFile(name, SEED, about)
        for case in cases:
            ten_steps(rng, out, *case)
        out.save()


if __name__ == "__main__":
    main()
