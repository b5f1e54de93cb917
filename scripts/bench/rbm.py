#!/usr/bin/env python3
"""Compares a step of contrastive divergence with scikit-learn's BernoulliRBM and with PyTorch.

    scripts/bench/rbm.py [--trainer=build/release/trainer] [--threads=N] [--steps=2000]

The step is CD-1 with a batch of 100 and 784 x 500 units: the products, the sampling and the update.
All compute the same on generated data with the same number of threads, and alternate. Prints the
best milliseconds per step of each and both ratios. Fails if a ratio is below 2 (scikit-learn) or 1
(PyTorch). Needs numpy, torch and scikit-learn.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import time

from steps import Trainer

BATCH, VISIBLE, HIDDEN = 100, 784, 500

NET = """
layer {{ name: "data" type: "DummyData" top: "x" dummy_data_param {{
  shape {{ dim: {batch} dim: {visible} }} data_filler {{ type: "constant" value: 0.3 }} }} }}
layer {{ name: "rbm" type: "RBM" bottom: "x" top: "h" top: "error" loss_weight: 0 loss_weight: 1
  rbm_param {{ num_output: {hidden} weight_filler {{ type: "gaussian" std: 0.01 }} }} }}
layer {{ name: "end" type: "Silence" bottom: "h" }}
"""
SOLVER = """
net: "{net}" type: "CD" cd_param {{ steps: 1 }} base_lr: 0.01 lr_policy: "fixed" momentum: 0.5
max_iter: {steps} display: {display} random_seed: 1 snapshot_after_train: false
snapshot_prefix: "{folder}/rbm"
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trainer", default="build/release/trainer")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def make_trainer(options, folder):
    net, solver = folder / "net.prototxt", folder / "solver.prototxt"
    net.write_text(NET.format(batch=BATCH, visible=VISIBLE, hidden=HIDDEN))
    # The first display interval warms up; five count.
    solver.write_text(SOLVER.format(net=net, folder=folder, display=options.steps // 5,
                                    steps=6 * (options.steps // 5) + 1))
    return Trainer(options.trainer, solver, warm_up=options.steps // 5)


def loop_seconds(step, steps):
    for _ in range(20):
        step()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start) / steps


def sklearn_seconds(options):
    import numpy as np
    from sklearn.neural_network import BernoulliRBM
    data = np.full((BATCH, VISIBLE), 0.3, np.float32)
    machine = BernoulliRBM(HIDDEN, batch_size=BATCH, random_state=1)
    return loop_seconds(lambda: machine.partial_fit(data), options.steps // 10)


def torch_seconds(options):
    import torch
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    w = torch.randn(HIDDEN, VISIBLE) * 0.01
    c, b = torch.zeros(HIDDEN), torch.zeros(VISIBLE)
    v = torch.full((BATCH, VISIBLE), 0.3)
    momentum = [torch.zeros_like(p) for p in (w, c, b)]

    def step():
        p = torch.sigmoid(torch.addmm(c, v, w.t()))
        u = torch.bernoulli(torch.sigmoid(torch.addmm(b, torch.bernoulli(p), w)))
        q = torch.sigmoid(torch.addmm(c, u, w.t()))
        gradients = ((q.t() @ u - p.t() @ v) / BATCH, (q - p).mean(0), (u - v).mean(0))
        for parameter, past, gradient in zip((w, c, b), momentum, gradients):
            past.mul_(0.5).add_(gradient, alpha=0.01)
            parameter.sub_(past)

    return loop_seconds(step, options.steps)


def main():
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(options.threads)
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        ours = make_trainer(options, pathlib.Path(folder))
        for _ in range(options.rounds):
            for name, measure in (("trainer", lambda: ours.milliseconds() / 1000),
                                  ("scikit-learn", lambda: sklearn_seconds(options)),
                                  ("PyTorch", lambda: torch_seconds(options))):
                seconds[name] = min(seconds.get(name, 1e9), measure())
    print(f"CD-1, batch {BATCH}, {VISIBLE} x {HIDDEN}, {options.threads} threads, "
          f"the best of {options.rounds} rounds:")
    for name, value in seconds.items():
        print(f"  {name:13} {1000 * value:7.3f} ms per step")
    sklearn, torch = (seconds[n] / seconds["trainer"] for n in ("scikit-learn", "PyTorch"))
    print(f"trainer is {sklearn:.2f} times as fast as scikit-learn, {torch:.2f} as PyTorch")
    return 0 if sklearn >= 2 and torch >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
