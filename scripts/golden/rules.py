"""Ten steps of each update rule on two parameters, in NumPy float64; AdamW is PyTorch's.

A step sums the gradients of iter_size passes. If clip_gradients is set and the 2-norm over both
parameters exceeds it, the step scales the gradients down to it. Then it divides by iter_size, clips
each element to clip_value if that is set, adds the weight decay, and applies the rule: for SGD
v = momentum * v + rate * lr_mult * g and w = w - v.
The case `clip_and_iter_size` tests this order. AdamW and LARS apply the weight decay in their own
way, and larc computes its norms before the decay is added.
"""

import numpy as np
import torch

from golden_file import GoldenFile, grid

SEED = 4
STEPS = 10
LR_MULT, DECAY_MULT = (1, 2), (1, 0.5)
BIAS_DECAY_MULT = (1, 0)

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

# Every rule in Caffe's whole pipeline.
SETTINGS = {"SGD": {"momentum": 0.9}, "Nesterov": {"momentum": 0.9}, "AdaGrad": {"delta": 0.01},
            "RMSProp": {"rms_decay": 0.75, "delta": 0.01},
            "AdaDelta": {"momentum": 0.95, "delta": 0.001},
            "Adam": {"momentum": 0.9, "momentum2": 0.99, "delta": 0.001}, "SAG": {"momentum": 0.75},
            "AdamW": {"momentum": 0.9, "momentum2": 0.99, "delta": 0.001},
            "LARS": {"momentum": 0.9, "trust_coefficient": 0.25}}
L2_CLIP = {"weight_decay": 0.25, "clip_gradients": 3, "iter_size": 2}
L1_CLIP = {"weight_decay": 0.125, "regularization_type": '"L1"', "clip_gradients": 2,
           "iter_size": 3}
PIPELINE = [(f"{name.lower()}_{what}", {"type": f'"{name}"', **fields, **pipeline})
            for name, fields in SETTINGS.items()
            for what, pipeline in (("l2_clip", L2_CLIP), ("l1_clip", L1_CLIP))
            if what == "l2_clip" or name not in ("AdamW", "LARS")]

NEW_RULES = [
    ("adamw", {"type": '"AdamW"', "momentum": 0.9, "weight_decay": 0.25}),
    ("adamw_without_decay", {"type": '"AdamW"', "momentum": 0.5, "momentum2": 0.75}),
    ("lars", {"type": '"LARS"', "momentum": 0.5, "trust_coefficient": 0.125, "weight_decay": 0.25}),
    ("lars_defaults", {"type": '"LARS"'}),
    ("lars_bias", {"type": '"LARS"', "momentum": 0.5, "trust_coefficient": 0.5,
                   "weight_decay": 0.25}),
    ("lars_zero_start", {"type": '"LARS"', "trust_coefficient": 0.5, "weight_decay": 0.25}),
    ("sag", {"type": '"SAG"', "momentum": 0.75, "weight_decay": 0.25}),
    ("larc_scale", {"momentum": 0.5, "larc": "true", "larc_eta": 0.25, "weight_decay": 0.25}),
    ("larc_clip", {"momentum": 0.5, "larc": "true", "larc_eta": 0.5, "larc_policy": '"clip"',
                   "clip_gradients": 3, "iter_size": 2}),
    ("larc_adam", {"type": '"Adam"', "momentum": 0.5, "larc": "true", "larc_eta": 0.25}),
    ("larc_zero_start", {"momentum": 0.5, "larc": "true", "larc_eta": 0.25}),
    ("momentum_poly", {"momentum": 0.25, "momentum_policy": '"poly"', "max_momentum": 0.75,
                       "momentum_power": 2}),
    ("momentum_opt", {"momentum_policy": '"opt"', "max_momentum": 0.75, "lr_policy": '"inv"',
                      "gamma": 0.5, "power": 0.75}),
    ("decay_poly", {"momentum": 0.5, "weight_decay": 0.5, "weight_decay_policy": '"poly"',
                    "max_weight_decay": 0.125, "weight_decay_power": 0.5}),
    ("clip_value", {"momentum": 0.9, "weight_decay": 0.25, "clip_value": 0.5, "iter_size": 2}),
    ("clip_value_adam", {"type": '"Adam"', "momentum": 0.9, "clip_value": 0.25}),
    ("clip_value_larc", {"momentum": 0.5, "larc": "true", "larc_eta": 0.25, "clip_value": 0.5}),
    ("clip_value_lars", {"type": '"LARS"', "momentum": 0.5, "trust_coefficient": 0.125,
                         "weight_decay": 0.25, "clip_value": 0.5}),
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


def sag(f, t, w, a, b, g, eta):
    a[:] = f["momentum"] * a + (1 - f["momentum"]) * g
    w -= eta * a


OPTIMIZERS = {}


def adamw(f, t, w, a, b, g, eta, decay):
    if t == 0:
        param = torch.tensor(w, requires_grad=True)
        betas = f["momentum"], f.get("momentum2", 0.999)
        OPTIMIZERS[id(w)] = param, torch.optim.AdamW([param], lr=eta, betas=betas,
                                                     eps=f.get("delta", 1e-8), weight_decay=decay)
    param, optimizer = OPTIMIZERS[id(w)]
    param.grad = torch.tensor(g)
    optimizer.step()
    w[:] = param.detach().numpy()


def lars(f, t, w, a, b, g, eta, decay):
    size, slope = np.linalg.norm(w), np.linalg.norm(g)
    local = 1
    if size > 0 and slope > 0 and not f["is_bias"]:
        local = f.get("trust_coefficient", 0.001) * size / (slope + decay * size)
    a[:] = f.get("momentum", 0) * a + eta * local * (g + decay * w)
    w -= a


RULES = {"SGD": sgd, "Nesterov": nesterov, "AdaGrad": adagrad, "RMSProp": rmsprop,
         "AdaDelta": adadelta, "Adam": adam, "SAG": sag}
OWN_DECAY = {"AdamW": adamw, "LARS": lars}


def rate(fields, step):
    if "gamma" in fields:
        return 0.125 * (1 + fields["gamma"] * step) ** -fields["power"]
    return 0.125


def momentum(fields, step):
    policy, start = fields.get("momentum_policy"), fields.get("momentum", 0)
    if policy == '"poly"':
        share = (step / STEPS) ** fields["momentum_power"]
        return start + (fields["max_momentum"] - start) * share
    if policy == '"opt"':
        return min((1 - np.sqrt(rate(fields, step)) / 2) ** 2, fields["max_momentum"])
    return start


def weight_decay(fields, step):
    start = fields.get("weight_decay", 0)
    if "weight_decay_policy" in fields:
        share = (step / STEPS) ** fields["weight_decay_power"]
        return start + (fields["max_weight_decay"] - start) * share
    return start


def local_rate(fields, w, g, eta, lr_mult):
    if "larc" not in fields:
        return eta * lr_mult
    size, slope = np.linalg.norm(w), np.linalg.norm(g)
    local = 1
    if size > 0 and slope > 0:
        local = (1 - fields["momentum"]) * fields["larc_eta"] * size / slope
    return min(eta, local) if "larc_policy" in fields else eta * local


def update(fields, step, weights, history, sums, decay_mult):
    norm = np.sqrt(sum((g**2).sum() for g in sums))
    clip = fields.get("clip_gradients", np.inf)
    scale = (clip / norm if norm > clip else 1) / fields.get("iter_size", 1)
    name = fields.get("type", '"SGD"').strip('"')
    for i, (w, (a, b), g) in enumerate(zip(weights, history, sums)):
        now = {**fields, "momentum": momentum(fields, step), "is_bias": decay_mult[i] == 0}
        decay = weight_decay(fields, step) * decay_mult[i]
        most = fields.get("clip_value", np.inf)
        mean = (g * scale).clip(-most, most)
        eta = local_rate(now, w, mean, rate(fields, step), LR_MULT[i])
        if name in OWN_DECAY:
            OWN_DECAY[name](now, step, w, a, b, mean, eta, decay)
            continue
        penalty = np.sign(w) if "regularization_type" in fields else w
        RULES[name](now, step, w, a, b, mean + decay * penalty, eta)


def ten_steps(rng, out, name, fields):
    weights = [grid(rng, 7, steps=16, unit=8), grid(rng, 3, steps=16, unit=8)]
    if "zero_start" in name:
        weights[1][:] = 0
    decay_mult = BIAS_DECAY_MULT if "bias" in name else DECAY_MULT
    history = [np.zeros((2, 7)), np.zeros((2, 3))]
    out.case(name)
    lines = {"type": '"SGD"', "base_lr": 0.125, "lr_policy": '"fixed"', "max_iter": STEPS, **fields}
    out.text("solver", "\n".join(f"{key}: {value}" for key, value in lines.items()))
    for i, w in enumerate(weights):
        out.number(f"lr_mult_{i}", LR_MULT[i])
        out.number(f"decay_mult_{i}", decay_mult[i])
        out.tensor(f"start_{i}", w)
    sums = [grid(rng, STEPS, len(w), steps=16, unit=8) for w in weights]
    after = [np.zeros_like(s) for s in sums]
    for step in range(STEPS):
        update(fields, step, weights, history, [s[step] for s in sums], decay_mult)
        for values, w in zip(after, weights):
            values[step] = w
    for i in range(2):
        out.tensor(f"gradient_sums_{i}", sums[i])
        out.tensor(f"after_{i}", after[i])


def main():
    files = [("sgd.txt", "SGD: weights after each of ten steps.", CASES),
             ("rules.txt", "The other rules: weights after each of ten steps.", OTHER_RULES),
             ("pipeline.txt", "Each rule with decay, clipping and iter_size.", PIPELINE),
             ("new_rules.txt", "Rules and schedules that Caffe lacks.", NEW_RULES)]
    for name, about, cases in files:
        rng = np.random.default_rng(SEED)
        out = GoldenFile(name, SEED, about)
        for case in cases:
            ten_steps(rng, out, *case)
        out.save()


if __name__ == "__main__":
    main()
