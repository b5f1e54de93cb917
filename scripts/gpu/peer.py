#!/usr/bin/env python3
"""Trains a net of models/ in PyTorch and waits to be timed; check.py starts this program.

    peer.py --net=resnet50 --mode=f16 --batch=256 [--compile=default] [--device=cuda]

Makes the module of scripts/peer_nets.py in channels_last with fused SGD, compiles it, trains a few
steps and then writes {"ready": ...}. When it reads the line "quiet", after which no other program
uses the GPU, it lets cuDNN measure and choose its algorithms (cudnn.benchmark). For a line with a
number of seconds it trains about that long and answers {"ms": per step, ...}. bf16 and f16 use
autocast, f16 also a GradScaler, and f32 does not use TF32. If the compiler fails, it continues
without it and says so. The batch equals trainer's DummyData, 0.5 everywhere, because the clock of
some GPUs depends on the bits that change.
"""

import argparse
import json
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from peer_nets import PEERS  # noqa: E402

AUTOCAST = {"bf16": torch.bfloat16, "f16": torch.float16}
WARM_UP = 8  # steps: with CUDA graphs the first few run without a graph, then one records it


class Peer:
    def __init__(self, args):
        torch.manual_seed(1)
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        self.mode, self.device, self.how = args.mode, args.device, args.compile
        peer = PEERS[args.net]
        self.module = peer.make().to(self.device).to(memory_format=torch.channels_last)
        self.data = torch.full((args.batch, *peer.image), 0.5, device=self.device).to(
            memory_format=torch.channels_last)
        self.label = torch.ones(args.batch, dtype=torch.int64, device=self.device)
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=1e-4, momentum=0.9,
                                         weight_decay=1e-4, fused=True)
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.mode == "f16")
        self.setting = "eager"
        self.loss = self.plain_loss

    def plain_loss(self, data, label):
        with torch.autocast(self.device, dtype=AUTOCAST.get(self.mode, torch.float16),
                            enabled=self.mode in AUTOCAST):
            return self.module(data, label)

    def compile(self):
        """Compiles the loss and tries it. After a failure the loss is not compiled."""
        begin = time.monotonic()
        try:
            if self.how == "aot_eager":  # only the compiler's front end, which is faster
                self.loss = torch.compile(self.plain_loss, backend=self.how)
            else:
                self.loss = torch.compile(self.plain_loss, mode=self.how)
            self.train(2)
            self.setting = f"compile, {self.how}, {time.monotonic() - begin:.0f} s"
        except Exception as error:  # of the compiler, or of a program that it needs
            self.loss = self.plain_loss
            lines = str(error).strip().splitlines() or [""]
            self.setting = f"eager: no compile, {type(error).__name__}: {lines[0][:200]}"

    def quiet(self):
        """Lets cuDNN choose algorithms by measuring. With CUDA graphs, compiles again (from the
        compiler's cache), so that the graphs record these algorithms."""
        torch.backends.cudnn.benchmark = True
        if self.setting.startswith("compile") and self.how == "reduce-overhead":
            torch.compiler.reset()
            self.compile()
        self.warm_up()
        return {"setting": self.setting}

    def warm_up(self):
        self.train(WARM_UP if self.device == "cuda" else 1)
        if self.device == "cuda":  # leaves out memory for compiling and trying algorithms
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            self.train(2)
        self.leave_memory()

    def leave_memory(self):
        """Gives the GPU's memory back to the other programs that are measured."""
        if self.device == "cuda":
            torch.cuda.empty_cache()

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def train(self, steps):
        """Returns the milliseconds of a step."""
        self.wait()
        begin = time.perf_counter()
        for _ in range(steps):
            torch.compiler.cudagraph_mark_step_begin()
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss(self.data, self.label)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.wait()
        return (time.perf_counter() - begin) * 1000 / steps

    def sample(self, seconds):
        estimate = self.train(3)
        steps = max(3, round(seconds * 1000 / estimate))
        found = {"ms": self.train(steps), "steps": steps, **self.memory()}
        self.leave_memory()
        return found

    def memory(self):
        if self.device != "cuda":
            return {}
        return {"allocated_bytes": torch.cuda.max_memory_allocated(),
                "reserved_bytes": torch.cuda.max_memory_reserved()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", required=True, choices=PEERS)
    parser.add_argument("--mode", required=True, choices=("f32", "bf16", "f16"))
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--compile", default="default",
                        help="mode of torch.compile, or no, or aot_eager")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()

    def say(**words):
        print(json.dumps(words), flush=True)

    peer = Peer(args)
    if args.compile != "no":
        peer.compile()
    peer.warm_up()
    say(ready=True, setting=peer.setting, torch=torch.__version__,
        cudnn=torch.backends.cudnn.version() if args.device == "cuda" else None)
    for line in sys.stdin:
        say(**(peer.quiet() if line.strip() == "quiet" else peer.sample(float(line))))


if __name__ == "__main__":
    main()
