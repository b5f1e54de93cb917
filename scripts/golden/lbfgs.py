"""Losses of SciPy's L-BFGS in float64, on Rosenbrock's function and on a small net."""

import numpy as np
from scipy.optimize import minimize

from golden_file import GoldenFile, grid

SEED = 23
STEPS = 20


def trace(function, start):
    """Returns the loss before each step."""
    losses = [function(start)[0]]
    minimize(function, start, jac=True, method="L-BFGS-B", callback=lambda w:
             losses.append(function(w)[0]),
             options={"maxiter": STEPS, "maxcor": 10, "ftol": 0, "gtol": 0})
    return np.array(losses)


def rosenbrock(w):
    x, y = w
    return (100 * (y - x * x) ** 2 + (1 - x) ** 2,
            np.array([-400 * x * (y - x * x) - 2 * (1 - x), 200 * (y - x * x)]))


def rounded(w):
    """Returns Rosenbrock's function and gradient, with each operation in float32."""
    x, y = w.astype(np.float32)
    distance, rest = y - x * x, np.float32(1) - x
    return (float(100 * distance * distance + rest * rest),
            np.array([-400 * distance * x - 2 * rest, 200 * distance], dtype=float))


def at_rounded(w):
    """Returns Rosenbrock's function and gradient in float64, at inputs rounded to float32."""
    return rosenbrock(w.astype(np.float32).astype(float))


def main():
    out = GoldenFile("lbfgs.txt", SEED, "Losses before each step of SciPy's L-BFGS-B, maxcor 10")
    # From the usual start the path is so curved that it amplifies rounding errors 10,000 times.
    # SciPy's own losses, in float64, change by 0.0014 if the function's input is rounded to
    # float32, and by 0.0024 if the function is also computed in float32.
    for name, start in (("bent", [-1.2, 1.0]), ("near", [0.0, 0.0]), ("far", [2.0, 2.0])):
        out.case(name)
        out.tensor("start", np.array(start))
        out.tensor("loss", trace(rosenbrock, np.array(start)))
        out.tensor("float32_loss", trace(rounded, np.array(start)))
        out.tensor("float32_weights_loss", trace(at_rounded, np.array(start)))

    rng = np.random.default_rng(SEED)
    x, target = grid(rng, 12, 4), grid(rng, 12, 3, steps=16)
    shapes = [(5, 4), (5,), (3, 5), (3,)]
    start = [grid(rng, *shape, steps=16, unit=32) for shape in shapes]

    def net(flat):
        at, parts = 0, []
        for shape in shapes:
            size = int(np.prod(shape))
            parts.append(flat[at:at + size].reshape(shape))
            at += size
        w1, b1, w2, b2 = parts
        hidden = np.tanh(x @ w1.T + b1)
        error = hidden @ w2.T + b2 - target
        dhidden = error @ w2 / len(x) * (1 - hidden**2)
        gradient = [dhidden.T @ x, dhidden.sum(0), error.T @ hidden / len(x), error.mean(0)]
        return (error**2).sum() / (2 * len(x)), np.concatenate([g.ravel() for g in gradient])

    out.case("net")
    out.tensor("x", x)
    out.tensor("target", target)
    for name, values in zip(("weight1", "bias1", "weight2", "bias2"), start):
        out.tensor(name, values)
    out.tensor("loss", trace(net, np.concatenate([v.ravel() for v in start])))
    out.save()


if __name__ == "__main__":
    main()
