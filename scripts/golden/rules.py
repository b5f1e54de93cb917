"""Ten steps of SGD with momentum on two parameters, in NumPy float64.

A step: the gradients of iter_size passes are summed; if clip_gradients is set and the 2-norm over
both parameters exceeds it, they are scaled down to it; then divided by iter_size; then the decay is
added; then v = momentum * v + rate * lr_mult * g and w = w - v. `clip_and_iter_size` is where the
order matters.
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


def rate(fields, step):
    if "gamma" in fields:
        return 0.125 * (1 + fields["gamma"] * step) ** -fields["power"]
    return 0.125


def update(fields, step, weights, history, sums):
    norm = np.sqrt(sum((g**2).sum() for g in sums))
    clip = fields.get("clip_gradients", np.inf)
    scale = (clip / norm if norm > clip else 1) / fields.get("iter_size", 1)
    for i, (w, v, g) in enumerate(zip(weights, history, sums)):
        decay = fields.get("weight_decay", 0) * DECAY_MULT[i]
        penalty = np.sign(w) if "regularization_type" in fields else w
        v[:] = fields.get("momentum", 0) * v + rate(fields, step) * LR_MULT[i] * (
            g * scale + decay * penalty)
        w -= v


def sgd(rng, out, name, fields):
    weights = [grid(rng, 7, steps=16, unit=8), grid(rng, 3, steps=16, unit=8)]
    history = [np.zeros(7), np.zeros(3)]
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
    rng = np.random.default_rng(SEED)
    out = GoldenFile("sgd.txt", SEED, "SGD: weights after each of ten steps.")
    for case in CASES:
        sgd(rng, out, *case)
    out.save()


if __name__ == "__main__":
    main()
