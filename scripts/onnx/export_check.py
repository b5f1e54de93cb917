#!/usr/bin/env python3
"""Compares what `trainer export` writes with onnxruntime.

    scripts/onnx/export_check.py TRAINER [--only=PART] [--opset=N,M] [--keep=DIR]

Takes each deploy net of models/, a net per layer type and small versions of public nets. Writes
random weights, exports the net, checks the file with the package onnx and full shape inference, and
compares each output of onnxruntime with `trainer features`, for the batch size of the net and, if
the file leaves it free, for another one. The limit is 1e-4 of the largest number of
the output. Needs the packages onnx and onnxruntime and the program protoc; without them it exits
with code 77 (skipped).
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import traceback

from classifiers import CLASSIFIERS
from dense_nets import DENSE_NETS
from detectors import DETECTORS
from layer_nets import LAYER_NETS

try:
    import numpy as np
    import onnx
    import onnxruntime
    from random_weights import Protos, random_inputs, random_weights
except ImportError as missing:
    print(f"onnx: skipped, {missing}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 1e-4
BYTES = ("char_transformer", "convnext_tiny", "resnet18")  # nets whose inputs are from 0 to 255
OTHER_BATCH = 3  # factor on the batch size of the net
# trainer refuses weights that match no layer, so each net gets a layer with a weight.
WITH_WEIGHT = """
layer { name: "weight" type: "Parameter" top: "weight" parameter_param { shape { dim: 1 } } }
layer { name: "silence" type: "Silence" bottom: "weight" }
"""


def run(*command):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True)
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        raise RuntimeError(f"{command[1]}: exit code {done.returncode}: {' '.join(last)}")
    return done.stdout


class Case:
    """A net in a folder: its file, weights and exported model."""

    def __init__(self, trainer, protos, folder, text, integers):
        self.trainer, self.protos, self.folder, self.integers = trainer, protos, folder, integers
        self.net = protos.net(text + WITH_WEIGHT)
        self.rng = np.random.default_rng(1)
        self.write("net.prototxt", self.net)
        self.weights = folder / "net.caffemodel"
        shown = run(trainer, "show", f"--model={folder / 'net.prototxt'}", "--phase=TEST", "--json")
        self.weights.write_bytes(random_weights(protos, self.net, shown, self.rng))
        self.soften_probabilities()

    def soften_probabilities(self):
        """Divides the weights before each Softmax by the deviation of its input, if that exceeds 1.
        Otherwise a deep net's probabilities would be 0 and 1, whatever its layers compute."""
        ends = {layer.bottom[0]: i for i, layer in enumerate(self.net.layer)
                if layer.type == "Softmax" and layer.bottom[0] != layer.top[0]}
        if not ends:
            return
        stored = self.protos.module.NetParameter.FromString(self.weights.read_bytes())
        with_weights = {layer.name: layer for layer in stored.layer}
        inputs = random_inputs(self.net, self.integers, np.random.default_rng(2))
        scores = self.features(self.net, inputs, ends)
        for blob, end in ends.items():
            for name in last_with_weights(self.net, blob, end, with_weights):
                for weight in with_weights[name].blobs:
                    values = np.array(weight.data, np.float32) / max(1, scores[blob].std())
                    weight.data[:] = values.tolist()
        self.weights.write_bytes(stored.SerializeToString())

    def features(self, net, inputs, blobs):
        """Returns the values of these blobs from `trainer features`."""
        np.savez(self.folder / "in.npz", **inputs)
        self.write("batch.prototxt", net)
        run(self.trainer, "features", f"--model={self.folder / 'batch.prototxt'}",
            f"--weights={self.weights}", f"--input={self.folder / 'in.npz'}",
            f"--blobs={','.join(blobs)}", f"--out={self.folder / 'out.npz'}", "--force")
        return np.load(self.folder / "out.npz")

    def write(self, name, net):
        (self.folder / name).write_text(self.protos.text(net))

    def export(self, opset):
        out = self.folder / "net.onnx"
        run(self.trainer, "export", f"--model={self.folder / 'net.prototxt'}",
            f"--weights={self.weights}", f"--out={out}", f"--opset={opset}", "--force")
        model = onnx.load(str(out))
        onnx.checker.check_model(model, full_check=True)
        return model

    def with_batch(self, model, times):
        """Returns the net with the free axes of its inputs multiplied by `times`, or None if no
        axis is free."""
        free = {value.name: [i for i, dim in enumerate(value.type.tensor_type.shape.dim)
                             if not dim.HasField("dim_value")] for value in model.graph.input}
        if not any(free.values()):
            return None
        net = self.protos.net(self.protos.text(self.net))
        for layer in net.layer:
            if layer.type != "Input":
                continue
            for axis in free.get(layer.top[0], []):
                layer.input_param.shape[0].dim[axis] *= times
        return net

    def compare(self, model, net):
        """Returns the largest relative difference of an output."""
        inputs = random_inputs(net, self.integers, self.rng)
        outputs = [value.name for value in model.graph.output]
        expected = self.features(net, inputs, outputs)
        for layer in net.layer:
            if layer.type == "Softmax" and layer.top[0] in outputs:
                refuse_certainty(layer.top[0], expected[layer.top[0]], layer.softmax_param.axis)
        session = onnxruntime.InferenceSession(model.SerializeToString(),
                                               providers=["CPUExecutionProvider"])
        fed = {value.name: inputs[value.name] for value in session.get_inputs()}
        worst = 0.0
        for name, actual in zip(outputs, session.run(outputs, fed)):
            worst = max(worst, difference(name, expected[name], actual))
        return worst


def last_with_weights(net, blob, end, names):
    """Returns the last layers with weights before a blob, through layers without weights."""
    for i in reversed(range(end)):
        layer = net.layer[i]
        if blob in layer.top:
            if layer.name in names:
                return {layer.name}
            found = (last_with_weights(net, bottom, i, names) for bottom in layer.bottom)
            return set().union(*found)
    return set()


def refuse_certainty(name, probabilities, axis):
    """Raises an error if all probabilities are 0 or 1, because comparing them shows nothing."""
    if probabilities.size > 0 and probabilities.max(axis).min() > 0.9999:
        raise RuntimeError(f"'{name}': the probabilities are 0 and 1")


def difference(name, expected, actual):
    shape = actual.shape if actual.ndim > 0 else (1,)
    if expected.shape != shape:
        raise RuntimeError(f"'{name}' has shape {shape}, and {expected.shape} in the net")
    if expected.size == 0:
        return 0.0
    actual = actual.reshape(expected.shape)
    if not (np.isfinite(expected).all() and np.isfinite(actual).all()):
        return 0.0 if np.array_equal(expected, actual, equal_nan=True) else float("inf")
    apart = np.abs(expected.astype(np.float64) - actual).max()
    return float(apart / max(np.abs(expected).max(), 1e-6))


def check(trainer, protos, folder, text, integers, opsets):
    """Returns a line about the net, and whether its differences are within the limit."""
    case = Case(trainer, protos, folder, text, integers)
    words, right = [], True
    for opset in opsets:
        model = case.export(opset)
        worst = [case.compare(model, case.net)]
        larger = case.with_batch(model, OTHER_BATCH)
        if larger is not None:
            worst.append(case.compare(model, larger))
        right = right and max(worst) <= LIMIT
        words.append(f"opset {opset}: {max(worst):.1e}{'' if larger else ' (batch fixed)'}")
    return ", ".join(words), right


def all_nets():
    """Yields (name, text, integers) of every net."""
    for path in sorted(ROOT.glob("models/*/deploy.prototxt")):
        folder = path.parent.name
        yield f"models/{folder}", path.read_text(), {"data": 256} if folder in BYTES else {}
    for group, nets in (("layer", LAYER_NETS), ("classifier", CLASSIFIERS),
                        ("detector", DETECTORS), ("dense", DENSE_NETS)):
        for name, make in nets.items():
            net = make()
            yield f"{group}/{name}", net.text(), net.integers


def check_all(arguments, folder):
    protos = Protos(ROOT / "proto", folder)
    opsets = [int(opset) for opset in arguments.opset.split(",")]
    count, wrong = 0, []
    for name, text, integers in all_nets():
        if arguments.only not in name:
            continue
        count += 1
        place = folder / name.replace("/", "_")
        place.mkdir(exist_ok=True)
        try:
            line, right = check(arguments.trainer, protos, place, text, integers, opsets)
        except Exception as error:  # one net must not hide the others
            line, right = f"{type(error).__name__}: {error}", False
            if arguments.trace:
                traceback.print_exc()
        if not right:
            wrong.append(name)
        print(f"{'ok   ' if right else 'WRONG'} {name}: {line}", flush=True)
    print(f"onnx: {count} nets, {len(wrong)} wrong{': ' if wrong else ''}{', '.join(wrong)}")
    return 1 if wrong or count == 0 else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trainer")
    parser.add_argument("--only", default="", help="check nets whose name has this part")
    parser.add_argument("--opset", default="17", help="versions, separated by commas")
    parser.add_argument("--keep", help="folder for the files")
    parser.add_argument("--trace", action="store_true", help="print where an error came from")
    arguments = parser.parse_args()
    arguments.trainer = str(pathlib.Path(arguments.trainer).resolve())
    if arguments.keep:
        folder = pathlib.Path(arguments.keep)
        folder.mkdir(parents=True, exist_ok=True)
        return check_all(arguments, folder)
    with tempfile.TemporaryDirectory() as folder:
        return check_all(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
