#!/usr/bin/env python3
"""Runs the deploy nets of models/ in trainer and in OpenCV and compares their outputs.

    compare_opencv.py --trainer=build/release/trainer [--models=lenet,resnet50]

Trains each net for three iterations on noise from widely spread random weights, so that no
parameter keeps its default. Then runs the deploy net with these weights on one batch of noise:
`trainer features` here, cv2.dnn.readNetFromCaffe there. The output and the input of the last layer
must agree within 1e-4 of the largest value. (ResNet-50's outputs in f32 differ by 2e-5 from those
in f64 in both programs, and in PyTorch.) Prints a line per model: OK, the difference and the first
blob that differs, or why OpenCV cannot load the net. Exits with code 1 if a model differs. Needs
Python with numpy, h5py and OpenCV before 5 (opencv-python-headless); OpenCV 5 cannot read Caffe's
files.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import cv2
import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
BOUND = 1e-4
# The range of a transformed image's pixels; models whose training images have twice the channels.
SPAN = {"mobilenet_v2": (-2, 2), "cifar10_quick": (-100, 100), "cifar10_full": (-100, 100),
        "alexnet": (-100, 100), "caffenet": (-100, 100), "googlenet": (-100, 100),
        "resnet50": (-100, 100)}
PAIRED = ("siamese",)
LARGE_SIDE, LARGE_BATCH, ITERATIONS = 100, 4, 3
COARSE = 16  # pixels

DATA = """layer {{ name: "data" type: "HDF5Data" {tops} hdf5_data_param {{
  source: "{source}" batch_size: {batch} }} }}
"""
SOLVER = """net: "{net}" base_lr: 0.0001 lr_policy: "fixed" max_iter: {iterations}
snapshot_prefix: "{prefix}" random_seed: 1 solver_mode: CPU
"""


class Difference(Exception):
    """The outputs of trainer and OpenCV differ."""


class CannotLoad(Exception):
    """OpenCV refuses the net."""


class Layer:
    """A layer's text, and its name, type, bottoms and tops."""

    def __init__(self, text):
        self.text = text
        self.name = re.search(r'\bname: "([^"]*)"', text)[1]
        self.type = re.search(r'\btype: "(\w+)"', text)[1]
        self.bottoms = re.findall(r'\bbottom: "([^"]*)"', text)
        self.tops = re.findall(r'\btop: "([^"]*)"', text)


def read_layers(path):
    """Returns the text before the layers, and the layers, without comments."""
    text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
    starts = [match.start() for match in re.finditer(r"^layer\s*{", text, re.M)]
    return text[:starts[0]], [Layer(text[begin:end])
                              for begin, end in zip(starts, starts[1:] + [len(text)])]


def input_shape(layers):
    return [int(dim) for dim in re.findall(r"dim: (\d+)", layers[0].text)]


def images(name, shape, rng):
    """Returns images of coarse and fine noise. With fine noise alone, all images look the same deep
    in a net, and a normalisation there would mostly divide by rounding errors."""
    low, high = SPAN.get(name, (0, 1))
    coarse = rng.uniform(low, high, (*shape[:2], *(-(-side // COARSE) for side in shape[2:])))
    for axis, side in enumerate(shape[2:], 2):
        coarse = coarse.repeat(COARSE, axis).take(range(side), axis)
    return ((coarse + rng.uniform(low, high, shape)) / 2).astype(np.float32)


def training_net(name, shape, folder):
    """Returns train_test.prototxt with noise as data and widely spread random weights."""
    head, layers = read_layers(ROOT / f"models/{name}/train_test.prototxt")
    channels = shape[1] * (2 if name in PAIRED else 1)
    rng = np.random.default_rng(2)
    (folder / "source.txt").write_text(f"{folder / 'train.h5'}\n")
    texts = [head]
    for layer in layers:
        if layer.type == "Data":
            if not re.search(r"phase: TRAIN", layer.text):
                continue
            batch = int(re.search(r"batch_size: (\d+)", layer.text)[1])
            if max(shape[2:]) > LARGE_SIDE:
                batch = LARGE_BATCH
            with h5py.File(folder / "train.h5", "w") as file:
                file[layer.tops[0]] = images(name, (ITERATIONS * batch, channels, *shape[2:]), rng)
                for top in layer.tops[1:]:
                    file[top] = np.ones(ITERATIONS * batch, np.float32)
            texts.append(DATA.format(tops=" ".join(f'top: "{top}"' for top in layer.tops),
                                     batch=batch, source=folder / "source.txt"))
            continue
        kind = "xavier" if layer.type == "InnerProduct" else "msra"
        text = re.sub(r'weight_filler {[^}]*}', f'weight_filler {{ type: "{kind}" }}', layer.text)
        text = re.sub(r'bias_filler {[^}]*}', 'bias_filler { type: "uniform" min: -0.5 max: 0.5 }',
                      text)
        texts.append(text.replace("scale_param {", """scale_param {
            filler { type: "uniform" min: 0.5 max: 1.5 }
            bias_filler { type: "uniform" min: -0.5 max: 0.5 }"""))
    return "".join(texts)


def run(command):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nfailed with {done.returncode}:\n"
                 f"{done.stderr[-2000:]}")


class Model:
    """A deploy net, its weights and a batch."""

    def __init__(self, binary, name, folder):
        self.binary, self.folder = binary, folder
        self.deploy = ROOT / f"models/{name}/deploy.prototxt"
        self.layers = read_layers(self.deploy)[1]
        self.shape = input_shape(self.layers)
        (folder / "net.prototxt").write_text(training_net(name, self.shape, folder))
        (folder / "solver.prototxt").write_text(
            SOLVER.format(net=folder / "net.prototxt", prefix=folder / "net",
                          iterations=ITERATIONS))
        run([binary, "train", f"--solver={folder / 'solver.prototxt'}"])
        self.weights = folder / f"net_iter_{ITERATIONS}.caffemodel"
        self.batch = images(name, self.shape, np.random.default_rng(1))

    def ours(self, blobs):
        with h5py.File(self.folder / "input.h5", "w") as file:
            file[self.layers[0].tops[0]] = self.batch
        out = self.folder / "out.h5"
        run([self.binary, "features", f"--model={self.deploy}", f"--weights={self.weights}",
             f"--input={self.folder / 'input.h5'}", f"--blobs={','.join(blobs)}", f"--out={out}",
             "--force"])
        with h5py.File(out) as file:
            return [file[blob][()] for blob in blobs]

    def theirs(self, blobs):
        writers = {top: layer.name for layer in self.layers for top in layer.tops}
        try:
            net = cv2.dnn.readNetFromCaffe(str(self.deploy), str(self.weights))
            net.enableWinograd(False)  # Winograd makes 3 x 3 convolutions 5 times less precise
            net.setInput(self.batch)
            return net.forward([writers[blob] for blob in blobs])
        except cv2.error as error:
            raise CannotLoad(" ".join(error.err.split())) from error

    def compare(self):
        """Returns the largest relative difference. Raises Difference or CannotLoad."""
        last = self.layers[-1]
        blobs = [last.bottoms[0], last.tops[0]]
        worst = max(map(distance, self.theirs(blobs), self.ours(blobs)))
        if worst > BOUND:
            raise Difference(f"{worst:.1e}{self.first_difference()}")
        return worst

    def first_difference(self):
        blobs = list(dict.fromkeys(top for layer in self.layers[1:] for top in layer.tops))
        # In an HDF5 file no name is a folder and a dataset.
        blobs = [blob for blob in blobs if not any(other.startswith(f"{blob}/") for other in blobs)]
        for blob, theirs, ours in zip(blobs, self.theirs(blobs), self.ours(blobs)):
            if distance(theirs, ours) > BOUND:
                return f", first in {blob}: {distance(theirs, ours):.1e}"
        return ""


def distance(theirs, ours):
    if theirs.size != ours.size or not (np.isfinite(theirs).all() and np.isfinite(ours).all()):
        return float("inf")
    return float(np.abs(theirs.ravel() - ours.ravel()).max() / np.abs(ours).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", default=str(ROOT / "build/release/trainer"))
    parser.add_argument("--models", help="with commas between; all by default")
    args = parser.parse_args()
    names = sorted(path.parent.name for path in ROOT.glob("models/*/deploy.prototxt"))
    if args.models:
        names = args.models.split(",")
    print(f"OpenCV {cv2.__version__}")
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    differ = False
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                result = f"OK, {Model(args.trainer, name, pathlib.Path(folder)).compare():.1e}"
            except CannotLoad as reason:
                result = f"cannot load: {reason}"
            except Difference as reason:
                result, differ = f"DIFFERENCE {reason}", True
        print(f"{name:14} {result}", flush=True)
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
