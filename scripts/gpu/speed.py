#!/usr/bin/env python3
"""Training steps on one GPU: trainer and PyTorch, in turns.

    speed.py --trainer=TRAINER [--nets=resnet50,googlenet] [--modes=f32,tf32,bf16,f16] [--rounds=3]
             [--seconds=150] [--json=FILE] [--dry]

A step is forward, backward and update, on batches that lie on the GPU: trainer's DummyData holds
one, PyTorch (scripts/peer_nets.py) takes two in turns. PyTorch
runs at the best of NCHW and channels_last, with cudnn.benchmark and its fused SGD; TF32 is off for
f32 and on for tf32; bf16 and f16 are autocast, f16 with a GradScaler. Ends early when the seconds
are over, and says what is missing then. Needs PyTorch with CUDA; with --dry, which shows that all of
this works, PyTorch computes on the CPU, with cifar10_quick, batches of two and one round.
"""

import argparse
import gc
import json
import pathlib
import re
import statistics
import sys
import tempfile
import time

import torch

from generated import ROOT, run

sys.path.insert(0, str(ROOT / "scripts"))
from peer_nets import PEERS  # noqa: E402

BATCHES = {"resnet50": 128, "googlenet": 128, "caffenet": 256, "cifar10_quick": 100,
           "mobilenet_v2": 128}
FLAGS = {"f32": ["--notf32"], "tf32": ["--tf32"],
         "bf16": ["--notf32", "--set", "default_forward_type=BFLOAT16"],
         "f16": ["--notf32", "--set", "default_forward_type=FLOAT16"]}
AUTOCAST = {"bf16": torch.bfloat16, "f16": torch.float16}
RATE_LINE = re.compile(r"Iteration (\d+) \(([\d.e+-]+) iter/s")
SAMPLE_SECONDS = 1.5

DATA = """layer {{
  name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {{
    shape {{ {shape} }} shape {{ dim: {batch} }}
    data_filler {{ type: "constant" value: 0.5 }} data_filler {{ type: "constant" value: 1 }}
  }}
}}
"""
SOLVER = """net: "{net}"
base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0001
display: {display} max_iter: {iterations} snapshot_after_train: false solver_mode: GPU
random_seed: 1 snapshot_prefix: "{folder}/net"
"""


def layers_of(text):
    """(what stands before the layers, each layer's text): braces counted, comments left out."""
    text = re.sub(r"#[^\n]*", "", text)
    head, rest = text.split("layer {", 1)
    found = []
    for part in re.split(r"^layer \{", "layer {" + rest, flags=re.MULTILINE):
        if part.strip():
            found.append("layer {" + part)
    return head, found


class OurNet:
    def __init__(self, trainer, name, folder, batch):
        self.trainer, self.name, self.folder, self.batch = trainer, name, folder, batch
        text = (ROOT / f"models/{name}/train_test.prototxt").read_text(encoding="utf-8")
        head, layers = layers_of(text)
        kept = [layer for layer in layers if 'type: "Data"' not in layer and "TEST" not in layer]
        shape = " ".join(f"dim: {n}" for n in (batch, *PEERS[name].image))
        self.net = folder / f"{name}.prototxt"
        self.net.write_text(head + DATA.format(shape=shape, batch=batch) + "".join(kept),
                            encoding="utf-8")

    def milliseconds(self, mode, display):
        """Of a step; the first interval warms up."""
        solver = self.folder / f"{self.name}_solver.prototxt"
        solver.write_text(SOLVER.format(net=self.net, folder=self.folder, display=display,
                                        iterations=3 * display + 1), encoding="utf-8")
        text = run([self.trainer, "train", f"--solver={solver}", "--gpu=0", *FLAGS[mode]], 120)
        rates = [float(rate) for i, rate in RATE_LINE.findall(text) if int(i) > display]
        return 1000 / statistics.median(rates)


class Peer:
    """A PyTorch module at one setting."""

    def __init__(self, name, mode, layout, batch, device):
        torch.manual_seed(1)
        self.mode, self.device = mode, device
        peer = PEERS[name]
        self.module = peer.make().to(device).to(memory_format=layout)
        shape = (batch, *peer.image)
        self.batches = [(torch.randn(shape, device=device).to(memory_format=layout),
                         torch.randint(0, peer.classes, shape[:1], device=device))
                        for _ in range(2)]
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=1e-4, momentum=0.9,
                                         weight_decay=1e-4, fused=True)
        self.scaler = torch.amp.GradScaler(device, enabled=mode == "f16")

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def milliseconds(self, steps):
        tf32 = self.mode == "tf32"
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
        self.wait()
        begin = time.perf_counter()
        for i in range(steps):
            self.optimizer.zero_grad()
            with torch.autocast(self.device, dtype=AUTOCAST.get(self.mode, torch.float16),
                                enabled=self.mode in AUTOCAST):
                loss = self.module(*self.batches[i % 2])
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.wait()
        return (time.perf_counter() - begin) * 1000 / steps


def best_peer(name, mode, batch, device):
    best = None
    for layout in (torch.contiguous_format, torch.channels_last):
        peer = Peer(name, mode, layout, batch, device)
        peer.milliseconds(3)
        found = peer.milliseconds(5)
        if best is None or found < best[0]:
            best = (found, peer)
    return best


def compare(ours, mode, rounds, device):
    name, dry = ours.name, device == "cpu"
    estimate, peer = best_peer(name, mode, ours.batch, device)
    steps = 1 if dry else max(5, int(SAMPLE_SECONDS * 1000 / estimate))
    trainer_ms, pytorch_ms = [], []
    for _ in range(rounds):
        trainer_ms.append(ours.milliseconds(mode, steps))
        pytorch_ms.append(peer.milliseconds(steps))
    figures = {"net": name, "mode": mode, "batch": ours.batch, "trainer_ms": trainer_ms,
               "pytorch_ms": pytorch_ms,
               "pytorch_memory_mib": 0 if dry else torch.cuda.max_memory_allocated() / 2**20,
               "ratio": statistics.median(trainer_ms) / statistics.median(pytorch_ms)}
    print(f"{name:14} {ours.batch:5} {mode:5} {statistics.median(trainer_ms):10.2f} "
          f"{statistics.median(pytorch_ms):10.2f} {figures['ratio']:6.2f}", flush=True)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--nets", default=",".join(BATCHES), help="with commas between")
    parser.add_argument("--modes", default="f32,tf32,bf16,f16", help="with commas between")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=150, help="to end within")
    parser.add_argument("--json", help="write the figures to this file too")
    parser.add_argument("--dry", action="store_true", help="small, PyTorch on the CPU")
    args = parser.parse_args()
    device = "cpu" if args.dry else "cuda"
    if args.dry:
        args.nets, args.rounds = "cifar10_quick", 1
        gpu = f"dry run, torch {torch.__version__}"
    else:
        gpu = torch.cuda.get_device_name(0)
    begin, slowest = time.monotonic(), 0.0
    print(gpu if args.dry else f"{gpu}, torch {torch.__version__}, cuDNN "
                               f"{torch.backends.cudnn.version()}")
    print(f"{'net':14} {'batch':>5} {'mode':5} {'trainer ms':>10} {'PyTorch ms':>10} {'ratio':>6}")
    figures, left_out = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.nets.split(","):
            ours = OurNet(pathlib.Path(args.trainer).resolve(), name, pathlib.Path(folder),
                          2 if args.dry else BATCHES[name])
            for mode in args.modes.split(","):
                started = time.monotonic()
                if started - begin + slowest > args.seconds:
                    left_out.append(f"{name} {mode}")
                    continue
                if not args.dry:
                    torch.cuda.reset_peak_memory_stats()
                figures.append(compare(ours, mode, args.rounds, device))
                slowest = max(slowest, time.monotonic() - started)
                gc.collect()
                torch.cuda.empty_cache()
                if args.json:
                    pathlib.Path(args.json).write_text(json.dumps(
                        {"gpu": gpu, "torch": torch.__version__,
                         "figures": figures}, indent=1), encoding="utf-8")
    if left_out:
        print(f"no time was left for: {', '.join(left_out)}")


if __name__ == "__main__":
    main()
