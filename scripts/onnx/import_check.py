#!/usr/bin/env python3
"""Imports models in the format ONNX with `trainer import` and compares the nets with the models.

    import_check.py --trainer=build/release/trainer [--models=resnet18,vit_b_16] [--dynamo]
    import_check.py --trainer=... --suite=/usr/share/libonnx-testdata/data/node [--only=conv]
    import_check.py --trainer=... --models=resnet18 --tune=train_lmdb

The first form makes each model of torchvision with random weights, exports it with torch.onnx,
imports it, runs the net by `trainer features` on one image of noise, and compares the output with
PyTorch's: the largest difference must be at most 1e-4 of the largest magnitude. The second form
does the same for each case of the format's own suite, of Debian's package libonnx-testdata, whose
first output has floats; other outputs are left out, and weights, which the suite gives as inputs,
become constants. It counts the cases that agree, the cases that `trainer import` refuses, by
operator, and the cases that differ. With --tune, `trainer import --train` and 20 iterations of
`trainer train` on the first 16 images of the database follow, with the solver that the import wrote
and a tenth of its learning rate.
The mean loss of the last five iterations must be below the mean of the first five. All iterations
use the same images: with random weights, losses of different images would not show in 20 iterations
whether the net learns. The tuned net is exported; onnxruntime must agree with `trainer features`.

Exits with code 1 if a net differs or a loss does not fall. Needs Python with numpy and onnx, for
models torch and torchvision, and for --tune onnxruntime.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

BOUND = 1e-4
TUNED_IMAGES = 16
TUNED_RATE = 1e-4  # a tenth of the solver's, because random features are larger than learned ones
LEAST_CHANGE = 1e-3  # relative, of the output, if noise of 0.1 is added to the image
MODELS = ["resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "vgg16_bn", "alexnet",
          "googlenet", "squeezenet1_1", "densenet121", "mobilenet_v2", "mobilenet_v3_large",
          "shufflenet_v2_x1_0", "mnasnet1_0", "efficientnet_b0", "regnet_y_400mf", "convnext_tiny",
          "vit_b_16", "fcn_resnet50"]

# Cases whose expected results also differ from PyTorch's: random numbers, and aligned corners with
# an output size that is not an integer.
OTHER_RESULTS = {"test_training_dropout", "test_training_dropout_default",
                 "test_training_dropout_mask", "test_training_dropout_default_mask",
                 "test_resize_downsample_scales_cubic_align_corners",
                 "test_resize_downsample_scales_linear_align_corners"}


class Refused(Exception):
    """`trainer import` refuses the model."""


class Failed(Exception):
    """Another command of trainer failed."""


def run(*words):
    """Runs a command and returns its output and its log."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode == 65 and words[1] == "import":
        raise Refused(done.stderr.strip().splitlines()[-1])
    if done.returncode != 0:
        raise Failed(" ".join(map(str, words[1:3])) + ": " + done.stderr.strip()[-300:])
    return done.stdout, done.stderr


def relative_difference(got, wanted):
    """Returns the largest difference, divided by the largest magnitude."""
    if got.size != wanted.size:
        raise Failed(f"{got.size} numbers instead of {wanted.size}")
    scale = np.abs(wanted).max() if wanted.size else 0
    difference = np.abs(got.reshape(-1) - wanted.reshape(-1)).max() if wanted.size else 0
    return float(difference / scale) if scale > 0 else float(difference)


def compute(trainer, folder, model, inputs):
    """Imports a model and returns its first output for a dict of inputs."""
    net, weights = folder / "net.prototxt", folder / "net.caffemodel"
    said, _ = run(trainer, "import", model, f"--out={net}", f"--weights={weights}", "--force")
    outputs = dict(re.findall(r"^output '(.*)' of the model: blob '(.*)'$", said, re.M))
    name = onnx.load(model, load_external_data=False).graph.output[0].name
    blob = outputs[name]
    np.savez(folder / "x.npz", **inputs)
    given = [f"--weights={weights}"] if weights.exists() else []
    run(trainer, "features", f"--model={net}", *given, f"--input={folder / 'x.npz'}",
        f"--blobs={blob}", f"--out={folder / 'y.npy'}", "--force")
    return np.load(folder / "y.npy")


def randomize(model, side):
    """Replaces the numbers of a new model that are 0, 1 or tiny. BatchNorm gets the averages of a
    batch: with others, the signal of a deep net vanishes, and the output does not depend on the
    image. The variances are increased by a tenth, because with the batch's own variances each layer
    amplifies rounding errors: fcn_resnet50 in float and in double would differ by 9e-5."""
    import torch

    for key, weight in model.named_parameters():
        if not weight.any():  # e.g. the last weight of ViT, which makes its output 0
            weight.data.normal_(0, 0.1)
        if key.endswith("layer_scale"):  # initially 1e-6, which hides ConvNeXt's blocks
            weight.data.uniform_(0.1, 1)
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):  # its factors and shifts are 1 and 0
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(0, 0.1)
            part.reset_running_stats()
            part.momentum = None  # the mean of all batches
    with torch.no_grad():
        model.train()(torch.randn(4, 3, side, side))
    for part in model.eval().modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_var *= 1.1


def make_model(name, file, dynamo):
    """Exports a model of torchvision with random weights; returns an input and PyTorch's output."""
    import torch
    import torchvision

    torch.manual_seed(0)
    options, side = {}, 224
    if name == "googlenet":
        options = {"init_weights": True, "aux_logits": False, "transform_input": False}
    if name.startswith("fcn"):
        options, side = {"weights_backbone": None}, 64
    make = getattr(torchvision.models, name, None) or getattr(torchvision.models.segmentation, name)
    model = make(weights=None, **options).eval()
    randomize(model, side)

    class First(torch.nn.Module):
        """Returns only the main output of a segmentation net."""

        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x)["out"]

    pixels = torch.randn(1, 3, side, side)
    whole = First().eval() if name.startswith("fcn") else model
    options = {"dynamo": True, "external_data": False} if dynamo else {"dynamo": False}
    torch.onnx.export(whole, (pixels,), str(file), input_names=["data"], **options)
    with torch.no_grad():
        output, other = whole(pixels), whole(pixels + 0.1 * torch.randn_like(pixels))
    if relative_difference(other.numpy(), output.numpy()) < LEAST_CHANGE:
        raise Failed("the output hardly depends on the image, so that the comparison says nothing")
    return pixels.numpy(), output.numpy()


def losses_of(log):
    return [float(loss) for loss in re.findall(r"Iteration \d+.*, loss = ([-+.\deE]+)", log)]


def tune(trainer, folder, model, source, classes):
    """Fine-tunes the model for 20 iterations. Returns the means of the first and the last five losses,
    and the difference between onnxruntime and trainer for the tuned net."""
    import onnxruntime

    net, weights, record = folder / "tuned.prototxt", folder / "tuned.caffemodel", folder / "run"
    run(trainer, "import", model, f"--out={net}", f"--weights={weights}", "--train",
        f"--classes={classes}", f"--source={source}", f"--batch={TUNED_IMAGES}", "--force")
    _, log = run(trainer, "train", f"--solver={folder / 'tuned_solver.prototxt'}",
                 f"--weights={weights}", "--set", "max_iter=20", "--set", "display=1", "--set",
                 f"base_lr={TUNED_RATE}", f"--limit={TUNED_IMAGES}", f"--run={record}")
    losses = losses_of(log)
    pack, exported = folder / "tuned.trainer", folder / "tuned.onnx"
    run(trainer, "pack", f"--run={record}", f"--out={pack}")
    run(trainer, "export", f"--run={record}", f"--out={exported}")
    session = onnxruntime.InferenceSession(str(exported), providers=["CPUExecutionProvider"])
    shape = [size if isinstance(size, int) else 1 for size in session.get_inputs()[0].shape]
    name = session.get_inputs()[0].name
    pixels = np.random.default_rng(1).uniform(-120, 130, shape).astype(np.float32)
    wanted = session.run(None, {name: pixels})[0]
    np.savez(folder / "tuned.npz", **{name: pixels})
    run(trainer, "features", f"--model={pack}", f"--input={folder / 'tuned.npz'}",
        f"--blobs={session.get_outputs()[0].name}", f"--out={folder / 'tuned.npy'}")
    difference = relative_difference(np.load(folder / "tuned.npy"), wanted)
    return np.mean(losses[:5]), np.mean(losses[-5:]), difference


def check_models(options):
    """Returns the number of models that differ, fail or do not learn."""
    bad = 0
    for name in options.models.split(",") if options.models else MODELS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            file = folder / f"{name}.onnx"
            try:
                pixels, wanted = make_model(name, file, options.dynamo)
                inputs = {onnx.load(file).graph.input[0].name: pixels}
                difference = relative_difference(
                    compute(options.trainer, folder, file, inputs), wanted)
                line = f"{'OK' if difference <= BOUND else 'DIFFERS'} {difference:.2g}"
                bad += difference > BOUND
                if options.tune:
                    first, last, difference = tune(options.trainer, folder, file, options.tune,
                                                   options.classes)
                    line += (f", loss {first:.3f} to {last:.3f}, then onnxruntime differs by "
                             f"{difference:.2g}")
                    bad += last >= first or difference > BOUND
            except (Refused, Failed) as error:
                line = f"FAILED {error}"
                bad += 1
            print(f"{name:20} {line}", flush=True)
    return bad


def read_case(case, folder):
    """Returns a model whose other inputs are constants, its inputs and its first output; or None
    if the case lacks float inputs or a float output."""
    model = onnx.load(case / "model.onnx")
    data = case / "test_data_set_0"
    values = []
    if not all(info.type.HasField("tensor_type")
               for info in [*model.graph.input, *model.graph.output]):
        return None
    for i in range(len(model.graph.input)):
        tensor = onnx.TensorProto()
        if not (data / f"input_{i}.pb").exists():
            return None
        tensor.ParseFromString((data / f"input_{i}.pb").read_bytes())
        values.append(numpy_helper.to_array(tensor))
    tensor = onnx.TensorProto()
    tensor.ParseFromString((data / "output_0.pb").read_bytes())
    if tensor.data_type != onnx.TensorProto.FLOAT or not values:
        return None
    inputs, kept = {}, []
    dynamic = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Concat", "MatMul", "Pow"}
    joins = model.graph.node[0].op_type in dynamic and len(model.graph.node) == 1
    for i, (info, value) in enumerate(zip(list(model.graph.input), values)):
        if value.dtype == np.float32 and value.ndim > 0 and (i == 0 or joins):
            inputs[info.name] = value
            kept.append(info)
        else:
            model.graph.initializer.append(numpy_helper.from_array(value, info.name))
    if not inputs:
        return None
    del model.graph.input[:]
    model.graph.input.extend(kept)
    del model.graph.output[1:]  # e.g. the mean of LayerNormalization, which the net lacks
    file = folder / "model.onnx"
    onnx.save(model, file)
    return file, inputs, numpy_helper.to_array(tensor)


def check_suite(options):
    """Returns the number of cases that differ."""
    counts, refused, bad = collections.Counter(), collections.Counter(), []
    for case in sorted(pathlib.Path(options.suite).iterdir()):
        if case.name in OTHER_RESULTS or options.only not in case.name:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            read = read_case(case, folder)
            if read is None:
                counts["not of floats"] += 1
                continue
            file, inputs, wanted = read
            try:
                difference = relative_difference(
                    compute(options.trainer, folder, file, inputs), wanted)
                if difference <= BOUND:
                    counts["equal"] += 1
                else:
                    bad.append(f"{case.name}: differs by {difference:.2g}")
            except Refused as error:
                counts["refused"] += 1
                operator = re.search(r"\((\w+)\): ", str(error))
                refused[operator[1] if operator else "model"] += 1
                if options.only:
                    print(f"{case.name}: {error}")
            except Failed as error:
                bad.append(f"{case.name}: {error}")
    for line in bad:
        print(line)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())),
          f", {len(bad)} bad", sep="")
    print("refused:", ", ".join(f"{op} {count}" for op, count in sorted(refused.items())))
    return len(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", required=True, help="the program")
    parser.add_argument("--models", default="", help="names in torchvision.models, with commas")
    parser.add_argument("--dynamo", action="store_true", help="use torch.onnx's newer exporter")
    parser.add_argument("--tune", default="", help="an LMDB of color images, to fine-tune on")
    parser.add_argument("--classes", type=int, default=10, help="classes of --tune")
    parser.add_argument("--suite", default="", help="folder of the cases of the format's suite")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    options = parser.parse_args()
    options.trainer = str(pathlib.Path(options.trainer).resolve())
    return 1 if (check_suite(options) if options.suite else check_models(options)) else 0


if __name__ == "__main__":
    sys.exit(main())
