"""Twenty SGD iterations of the nets for ImageNet: the modules of scripts/peer_nets.py, float64.

Like nets.py, but trainer's own random numbers crop and mirror the records of 256 x 256 and choose
the dropped values. The stored sums of a BatchNorm are compared as well.
"""

import pathlib
import sys

import torch
from torch import nn

from golden_file import GoldenFile, hash_images
from nets import ITERATIONS, Case
from philox import crops, dropout_mask

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from peer_nets import PEERS  # noqa: E402

SIDE, ZOOM, RECORDS, BATCH, SEED = 256, 32, 4, 2, 1701
MEAN = (104, 117, 123)


class PhiloxDropout(nn.Module):
    """The Dropout layer `name`. It counts its passes, which select the random numbers."""

    def __init__(self, name, ratio):
        super().__init__()
        self.name, self.ratio, self.step = name, ratio, 0

    def forward(self, x):
        keep = dropout_mask(SEED, self.name, self.step, x.numel(), self.ratio)
        self.step += 1
        return x * torch.from_numpy(keep).reshape(x.shape) / (1 - self.ratio)


class PeerCase(Case):
    """A net of PEERS.

    `free` bounds the weights before a normalisation, whose scale only changes their effective rate.
    `gain` is the center and the bound of a normalisation's factors. `last` bounds the weights of
    the last layer: the smaller they are, the less all other weights move.
    """

    def __init__(self, name, scale=1.0, mean=MEAN, free=1, gain=(0, 1), last=None, **solver):
        peer = PEERS[name]
        self.module = peer.make().double()
        small = (3, SIDE // ZOOM, SIDE // ZOOM)
        super().__init__(name, lambda case, x, y: case.module(x, y), small, peer.classes, BATCH,
                         scale, random_seed=SEED, **solver)
        self.mean = torch.tensor(mean, dtype=torch.float64).reshape(3, 1, 1)
        self.crop = peer.image[1]
        self.extra = {"records": RECORDS, "zoom": ZOOM}
        multipliers = iter(peer.multipliers(self.module))
        layers = list(self.module.layers.items())
        for (layer, module), (_, after) in zip(layers, layers[1:] + [("", None)]):
            if isinstance(module, nn.Dropout):
                self.module.layers[layer] = PhiloxDropout(layer, module.p)
            if isinstance(module, nn.BatchNorm2d):
                self.keep_statistics(module)
            for which, param in module.named_parameters():
                center, bound = 0, None
                if which == "weight" and isinstance(module, nn.BatchNorm2d):
                    center, bound = gain
                elif which == "weight" and isinstance(after, nn.BatchNorm2d):
                    bound = free
                elif which == "weight" and after is None:
                    bound = last
                self.learn(param, *next(multipliers), bound=bound, center=center)

    def keep_statistics(self, module):
        """Stores Caffe's sums, in which a batch weighs 0.999 times the next, and the sum of 1."""
        module.running_var.zero_()
        for average in (module.running_mean, module.running_var):
            self.stored.append((lambda average=average: average / module.momentum, 0, 0))
        keep = 1 - module.momentum
        self.stored.append((lambda: torch.tensor(sum(keep**i for i in range(ITERATIONS))), 0, 0))

    def data(self, indices):
        known = [i % RECORDS for i in indices]
        labels, small = hash_images(known, self.image, self.classes)
        records = small.repeat(ZOOM, axis=2).repeat(ZOOM, axis=3)
        images = torch.empty(len(records), 3, self.crop, self.crop, dtype=torch.float64)
        places = crops(SEED, "data", list(indices), SIDE - self.crop)
        for image, record, (mirror, top, left) in zip(images, torch.from_numpy(records), places):
            window = record[:, top : top + self.crop, left : left + self.crop]
            image.copy_((window.flip(2) if mirror else window).sub(self.mean).mul(self.scale))
        return torch.tensor(labels), images


# With these rates the losses change much more in twenty iterations than a ReLU that flips because
# of float32 rounding can change them. The decay is large enough for its multipliers to matter.
CASES = {
    "alexnet": {"scale": 0.02, "base_lr": 4e-5, "weight_decay": 0.05},
    "googlenet": {"scale": 0.02, "base_lr": 2e-3, "weight_decay": 0.05},
    # In normalised nets with random weights, float32 gradients are only accurate to one percent.
    "resnet50": {"base_lr": 2e-6, "weight_decay": 1},
    "mobilenet_v2": {"scale": 0.017, "mean": (103.94, 116.78, 123.68), "free": 30, "gain": (1, 0.5),
                     "last": 0.01, "base_lr": 4e-5, "weight_decay": 1},
}


def main():
    torch.set_num_threads(1)
    for name, options in CASES.items():
        out = GoldenFile(f"big_net_{name}.txt", "none (integer hash)",
                         f"Losses of 20 SGD iterations of {name}, and sums of the weights after "
                         "them.")
        PeerCase(name, **options).write(out)
        out.save()


if __name__ == "__main__":
    main()
