#!/usr/bin/env python3
"""Runs torchvision's nets in trainer and in PyTorch and compares their outputs.

    compare_torchvision.py --trainer=build/release/trainer [--models=resnet18,convnext_tiny]

Makes each net with random weights in PyTorch and writes them as a safetensors file. Runs one batch
of noise: `trainer features` with the deploy net of models/, whose tensor_names.txt names the tensors,
and the net in PyTorch. The probabilities must agree within 1e-4 of the largest one. Then exports the
weights by `trainer export --names`, which must give every tensor back bit for bit. Prints a line per
model. Exits with code 1 if a model differs. Needs Python with numpy, torch and torchvision.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision

ROOT = pathlib.Path(__file__).resolve().parents[1]
BOUND = 1e-4
BATCH = 2
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # red, green, blue


def small_vit():
    return torchvision.models.VisionTransformer(32, 4, 12, 3, 192, 768, num_classes=10)


# {folder in models/: (how to make the net, its prototxt's name, the side of an image)}
MODELS = {
    "resnet18": (torchvision.models.resnet18, "deploy", 224),
    "resnet50": (torchvision.models.resnet50, "deploy_torchvision", 224),
    "mobilenet_v2": (torchvision.models.mobilenet_v2, "deploy_torchvision", 224),
    "convnext_tiny": (torchvision.models.convnext_tiny, "deploy", 224),
    "vit_tiny": (small_vit, "deploy_torchvision", 32),
}


def randomize(net):
    """Replaces the parameters of a new net that are 0, 1 or tiny by random numbers."""
    with torch.no_grad():
        for name, value in [*net.named_parameters(), *net.named_buffers()]:
            is_small = name.endswith(("running_mean", "bias"))
            if is_small or name in ("class_token", "heads.head.weight"):
                value.uniform_(-0.1, 0.1)
            is_factor = value.dim() == 1 and name.endswith("weight")
            if is_factor or name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            if name.endswith("layer_scale"):
                value.uniform_(0.1, 1)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.numpy().tobytes()
        kind = {"float32": "F32", "int64": "I64"}[str(tensor.numpy().dtype)]
        header[name] = {"dtype": kind, "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_safetensors(path):
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    found = {}
    for name, tensor in json.loads(raw[8:start]).items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            values = np.frombuffer(raw[start + begin:start + end], "<f4")
            found[name] = values.reshape(tensor["shape"])
    return found


def run(*command):
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")


def logits(net, pixels, side):
    """Returns the logits of `pixels`, which are in BGR order with values from 0 to 255."""
    image = torch.from_numpy(pixels)
    if side == 224:
        image = image.flip(1) / 255
        image = (image - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(SPREAD).view(1, 3, 1, 1)
    with torch.no_grad():
        return net(image)


def compare(trainer, folder, work):
    """Returns the largest difference of a probability, and the tensors that export changed."""
    make, name, side = MODELS[folder]
    torch.manual_seed(1)
    net = make().eval()
    randomize(net)
    weights, pixels, out = work / f"{folder}.safetensors", work / "pixels.npz", work / "prob.npz"
    image = np.random.default_rng(1).uniform(0, 255, (BATCH, 3, side, side)).astype(np.float32)
    np.savez(pixels, data=image)
    last = [module for module in net.modules() if isinstance(module, torch.nn.Linear)][-1]
    last.weight.data /= logits(net, image, side).std()  # else one probability is 1, all others 0
    write_safetensors(weights, net.state_dict())
    model = f"--model={ROOT}/models/{folder}/{name}.prototxt"
    run(trainer, "features", model, f"--weights={weights}", f"--input={pixels}", "--blobs=prob",
        f"--out={out}", "--force")
    want = logits(net, image, side).softmax(1).numpy()
    worst = np.abs(np.load(out)["prob"] - want).max() / want.max()
    own, back = work / f"{folder}.caffemodel", work / "back.safetensors"
    run(trainer, "export", model, f"--weights={weights}", f"--out={own}", "--force")
    run(trainer, "export", f"--weights={own}", f"--names={ROOT}/models/{folder}/tensor_names.txt",
        f"--out={back}", "--force")
    found = read_safetensors(back)
    expected = {key: value.numpy() for key, value in net.state_dict().items()
                if not key.endswith("num_batches_tracked")}
    other = [key for key, value in expected.items()
             if key not in found or value.tobytes() != found[key].tobytes()
             or value.shape != found[key].shape]
    return worst, other + sorted(set(found) - set(expected))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--models", default=",".join(MODELS))
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models.split(","):
            worst, other = compare(arguments.trainer, model, pathlib.Path(folder))
            good = worst <= BOUND and not other
            failed = failed or not good
            print(f"{model}: {'OK' if good else 'DIFFERS'}, probabilities within {worst:.1e}, "
                  f"{len(other)} tensors differ after export {other[:3] or ''}".rstrip(), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
