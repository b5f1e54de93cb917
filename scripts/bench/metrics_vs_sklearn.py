#!/usr/bin/env python3
"""Compares the metrics of `trainer test` with scikit-learn's on random cases.

    metrics_vs_sklearn.py TRAINER [--cases=20] [--seed=1]

Prints a table with the largest difference of each metric, and fails if one exceeds 1e-6. Needs
scikit-learn and h5py; without them it prints why and exits with 77. ece, which scikit-learn does
not have, and log_loss are compared with their definitions in NumPy.
"""

import argparse
import collections
import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    import h5py
    import numpy as np
    from sklearn import metrics as sk
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

LIMIT = 1e-6
# A NetParameter with the weight 0 of the layer "none", because `trainer test` needs weights.
ONE_WEIGHT = b"\xa2\x06\x10\n\x04none:\x08:\x00*\x04\x00\x00\x00\x00"
NET = """
layer {{ name: "data" type: "HDF5Data" top: "scores" top: "target"
  hdf5_data_param {{ source: "list.txt" batch_size: {batch} }} }}
layer {{ name: "none" type: "Bias" bottom: "scores" top: "shifted" bias_param {{ num_axes: 0 }} }}
layer {{ name: "loss" type: "{loss}" bottom: "shifted" bottom: "target" top: "loss" }}
"""
CLASS_METRICS = ("accuracy balanced_accuracy precision recall f1 macro_precision macro_recall "
                 "macro_f1 weighted_f1 auc ap mcc kappa mean_iou ece brier log_loss").split()
LABEL_METRICS = "accuracy balanced_accuracy precision recall f1 auc ap mcc kappa mean_iou".split()
NUMBER_METRICS = "mae mse rmse r2".split()


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def exact_log_loss(scores, labels):
    """Returns the mean of -log(probability). scikit-learn clips probabilities at 2e-16."""
    highest = scores.max(axis=1)
    total = np.log(np.exp(scores - highest[:, None]).sum(axis=1)) + highest
    return np.mean(total - scores[np.arange(len(labels)), labels])


def calibration_error(probabilities, labels, bins=15):
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    place = np.clip(np.ceil(confidence * bins) - 1, 0, bins - 1).astype(int)
    return sum(abs(right[place == b].sum() - confidence[place == b].sum())
               for b in range(bins)) / len(labels)


def of_classes(scores, labels):
    """Returns the expected value of each metric of classes."""
    classes = scores.shape[1]
    p = softmax(scores.astype(np.float64))
    answers = p.argmax(axis=1)
    average = "binary" if classes == 2 else "macro"
    one_hot = np.eye(classes)[labels]
    values = {
        "accuracy": sk.accuracy_score(labels, answers),
        "balanced_accuracy": sk.balanced_accuracy_score(labels, answers),
        "weighted_f1": sk.f1_score(labels, answers, average="weighted"),
        "auc": sk.roc_auc_score(labels, p[:, 1]) if classes == 2
               else sk.roc_auc_score(labels, p, multi_class="ovr"),
        "ap": sk.average_precision_score(labels, p[:, 1]) if classes == 2
              else sk.average_precision_score(one_hot, p),
        "mcc": sk.matthews_corrcoef(labels, answers),
        "kappa": sk.cohen_kappa_score(labels, answers),
        "mean_iou": sk.jaccard_score(labels, answers, average="macro"),
        "ece": calibration_error(p, labels),
        "brier": sk.brier_score_loss(labels, p[:, 1]) if classes == 2
                 else ((p - one_hot) ** 2).sum(axis=1).mean(),
        "log_loss": exact_log_loss(scores.astype(np.float64), labels),
    }
    for name, function in (("precision", sk.precision_score), ("recall", sk.recall_score),
                           ("f1", sk.f1_score)):
        values[name] = function(labels, answers, average=average, zero_division=0)
        values["macro_" + name] = function(labels, answers, average="macro", zero_division=0)
    for k in (2, 5):
        if k < classes:
            values[f"top_{k}"] = sk.top_k_accuracy_score(labels, p, k=k, labels=range(classes))
    return values


def of_labels(scores, targets):
    """Returns scikit-learn's value of each metric, averaged over the labels."""
    answers = (scores > 0).astype(int)
    columns = range(targets.shape[1])

    def mean(function, predicted):
        return np.mean([function(targets[:, i], predicted[:, i]) for i in columns])

    values = {name: mean(functools.partial(function, zero_division=0), answers)
              for name, function in (("precision", sk.precision_score),
                                     ("recall", sk.recall_score), ("f1", sk.f1_score),
                                     ("mean_iou", sk.jaccard_score))}
    values |= {"auc": sk.roc_auc_score(targets, scores, average="macro"),
               "ap": sk.average_precision_score(targets, scores, average="macro")}
    values |= {name: mean(function, answers)
               for name, function in (("accuracy", sk.accuracy_score),
                                      ("balanced_accuracy", sk.balanced_accuracy_score),
                                      ("mcc", sk.matthews_corrcoef),
                                      ("kappa", sk.cohen_kappa_score))}
    return values


def of_numbers(outputs, targets):
    outputs, targets = outputs.astype(np.float64), targets.astype(np.float64)
    return {"mae": sk.mean_absolute_error(targets, outputs),
            "mse": sk.mean_squared_error(targets, outputs),
            "rmse": np.sqrt(((targets - outputs) ** 2).mean(axis=0)).mean(),
            "r2": sk.r2_score(targets, outputs)}


def draw_classes(random, records):
    """Draws scores and labels. Each class has at least one record."""
    classes = int(random.choice([2, 2, 3, 5, 12]))
    shares = random.dirichlet(np.full(classes, random.choice([0.7, 5])))
    labels = np.concatenate([np.arange(classes), random.choice(classes, records, p=shares)])
    scores = random.normal(size=(len(labels), classes))
    scores[np.arange(len(labels)), labels] += random.choice([0, 1, 3])
    return (scores * random.choice([0.3, 1, 8])).astype(np.float32), labels


def draw_labels(random, records):
    """Draws logits and targets. Each label has records with 0 and with 1."""
    columns = int(random.choice([1, 2, 7]))
    targets = (random.random((records, columns)) < random.uniform(0.05, 0.6, columns)).astype(int)
    targets[0], targets[1] = 0, 1
    scores = random.normal(size=targets.shape) + random.choice([0, 1, 3]) * (targets - 0.5)
    return scores.astype(np.float32), targets


def draw_numbers(random, records):
    columns = int(random.choice([1, 4]))
    targets = random.normal(random.choice([0, 1000]), random.choice([0.1, 20]), (records, columns))
    outputs = targets + random.normal(0, random.choice([0.01, 1, 30]), targets.shape)
    return outputs.astype(np.float32), targets.astype(np.float32)


def measure(trainer, folder, loss, scores, targets, names, batch):
    """Returns the values that `trainer test` computes for these scores."""
    with h5py.File(folder / "data.h5", "w") as file:
        file["scores"], file["target"] = scores, targets.astype(np.float32)
    (folder / "list.txt").write_text("data.h5\n")
    (folder / "net.prototxt").write_text(NET.format(batch=batch, loss=loss))
    (folder / "none.caffemodel").write_bytes(ONE_WEIGHT)
    done = subprocess.run([trainer, "test", "--model=net.prototxt", "--weights=none.caffemodel",
                           "--json", "--metrics=" + ",".join(names)], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return {one["name"]: one["value"] for one in json.loads(done.stdout)["metrics"]}


KINDS = {
    "classes": ("SoftmaxWithLoss", draw_classes, of_classes, CLASS_METRICS),
    "labels": ("SigmoidCrossEntropyLoss", draw_labels, of_labels, LABEL_METRICS),
    "numbers": ("EuclideanLoss", draw_numbers, of_numbers, NUMBER_METRICS),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trainer", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    random = np.random.default_rng(options.seed)
    largest, count = collections.defaultdict(float), collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        for kind, (loss, draw, expect, names) in KINDS.items():
            for _ in range(options.cases):
                scores, targets = draw(random, int(random.integers(20, 1500)))
                wanted = expect(scores, targets)
                asked = [*names, *(one for one in wanted if one.startswith("top_"))]
                found = measure(options.trainer.resolve(), pathlib.Path(name), loss, scores, targets,
                                asked, int(random.integers(1, 200)))
                for metric in asked:
                    scale = max(1.0, abs(wanted[metric]))
                    difference = abs(found[metric] - wanted[metric]) / scale
                    largest[kind, metric] = max(largest[kind, metric], difference)
                    count[kind, metric] += 1
    print(f"{'targets':8}  {'metric':18}  cases  largest difference")
    for (kind, metric), difference in largest.items():
        print(f"{kind:8}  {metric:18}  {count[kind, metric]:5}  {difference:.1e}")
    return int(max(largest.values()) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
