#!/usr/bin/env python3
"""Compares photographs per second, from JPEG to normalised batches of 224 x 224.

    input.py --trainer=build/release/trainer [--images=2000] [--rounds=5]

Alternates trainer, torchvision's DataLoader and webdataset, each with two threads or workers and
without a net. The peers run in two ways: with Pillow, as in their documentation, and "by tensors":
torchvision's decode_jpeg decodes, transforms work on byte tensors, and whole batches are
normalised, which is faster. All read the same JPEG files from an LMDB and from a tar file in a
temporary folder, both in the page cache. Each image is cropped to a random area and shape, resized,
randomly flipped and normalised. A round runs each once. Prints medians, the spread and the ratios.
Needs Python with torch, torchvision, Pillow, lmdb and webdataset; names the peers that are missing
and skips them.
"""

import argparse
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy as np
from PIL import Image

BATCH, CROP, WORKERS = 64, 224, 2
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

NET = """name: "input"
layer {{
  name: "images" type: "Data" top: "data" top: "label"
  transform_param {{ crop_size: {crop} mirror: true mean_value: 104 mean_value: 117 mean_value: 123
    scale: 0.0171 random_resized_crop_param {{ }} }}
  data_param {{ backend: {backend} source: "{source}" batch_size: {batch} {threads} }}
}}
layer {{ name: "end" type: "Silence" bottom: "data" bottom: "label" }}
"""


def photograph(rng):
    """Returns a JPEG of slopes, edges and grain, about as large as an image of ImageNet."""
    height, width = int(rng.integers(333, 501)), int(rng.integers(333, 501))
    coarse = Image.fromarray(rng.integers(0, 256, (12, 12, 3)).astype(np.uint8))
    image = np.asarray(coarse.resize((width, height), Image.BICUBIC)).astype(np.int16)
    image = image + rng.integers(-12, 13, image.shape)
    out = io.BytesIO()
    Image.fromarray(np.clip(image, 0, 255).astype(np.uint8)).save(out, "JPEG", quality=90)
    return out.getvalue()


def make_data(trainer, folder, count):
    rng = np.random.default_rng(1)
    files = [photograph(rng) for _ in range(count)]
    (folder / "files").mkdir()
    names = []
    with tarfile.open(folder / "images.tar", "w") as tar:
        for i, content in enumerate(files):
            (folder / "files" / f"{i:06}.jpg").write_bytes(content)
            names.append(f"{i:06}.jpg {i % 10}\n")
            for name, part in ((f"{i:06}.jpg", content), (f"{i:06}.cls", str(i % 10).encode())):
                info = tarfile.TarInfo(name)
                info.size = len(part)
                tar.addfile(info, io.BytesIO(part))
    (folder / "list.txt").write_text("".join(names))
    subprocess.run([trainer, "dataset", "images", f"{folder}/files/", folder / "list.txt",
                    folder / "lmdb", "--encoded"], check=True, capture_output=True)
    print(f"{count} JPEG files of {sum(map(len, files)) / count / 1024:.0f} KiB each")


class Trainer:
    def __init__(self, binary, folder, backend, source, threads=""):
        self.net = folder / f"{backend}{len(threads)}.prototxt"
        self.net.write_text(NET.format(crop=CROP, batch=BATCH, backend=backend, threads=threads,
                                       source=folder / source))
        self.binary = binary

    def rate(self, images):
        environment = {**os.environ, "OMP_NUM_THREADS": str(WORKERS)}
        command = [self.binary, "time", f"--model={self.net}", f"--iterations={images // BATCH}",
                   "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0:
            sys.exit(f"trainer failed:\n{done.stderr[-2000:]}")
        return BATCH / json.loads(done.stdout)["forward"]["mean_ms"] * 1000


def transforms():
    from torchvision import transforms as t
    return t.Compose([t.RandomResizedCrop(CROP), t.RandomHorizontalFlip(), t.ToTensor(),
                      t.Normalize(MEAN, STD)])


class ByPillow:
    """Functions that decode a JPEG file and that join the images of a batch."""

    def __init__(self):
        self.change = transforms()

    def image(self, jpeg):
        return self.change(Image.open(io.BytesIO(jpeg)).convert("RGB"))

    def batch(self, items):
        import torch
        return torch.stack([image for image, _ in items]), torch.tensor([label for _, label in items])


class ByTensors:
    """The functions of ByPillow, with byte tensors."""

    def __init__(self):
        import torch
        from torchvision.transforms import v2
        self.change = v2.Compose([v2.RandomResizedCrop(CROP, antialias=True),
                                  v2.RandomHorizontalFlip()])
        self.mean, self.std = (255 * torch.tensor(x).view(1, 3, 1, 1) for x in (MEAN, STD))

    def image(self, jpeg):
        import torch
        from torchvision.io import ImageReadMode, decode_jpeg
        return self.change(decode_jpeg(torch.frombuffer(bytearray(jpeg), dtype=torch.uint8),
                                       mode=ImageReadMode.RGB))

    def batch(self, items):
        import torch
        images = torch.stack([image for image, _ in items]).float()
        return images.sub_(self.mean).div_(self.std), torch.tensor([label for _, label in items])


class FromLmdb:
    """A map-style data set over the keys of an LMDB of Datum records."""

    def __init__(self, path, way):
        import lmdb
        self.path, self.environment, self.way = path, None, way
        with lmdb.open(path, readonly=True, lock=False) as environment, environment.begin() as view:
            self.keys = [bytes(key) for key, _ in view.cursor()]

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, i):
        import lmdb
        if self.environment is None:  # one for each worker
            self.environment = lmdb.open(self.path, readonly=True, lock=False)
        with self.environment.begin() as view:
            record = view.get(self.keys[i])
        start = record.find(b"\xff\xd8\xff")  # the JPEG in the Datum
        return self.way.image(record[start:]), i


class Loader:
    """A DataLoader of torch, which `make` creates again for each run."""

    def __init__(self, make):
        self.make = make

    def rate(self, images):
        seen, start = 0, None
        for batch in self.make():
            if start is None:
                start = time.perf_counter()  # the workers have started
                continue
            seen += len(batch[0])
            if seen >= images:
                break
        return seen / (time.perf_counter() - start)


def torchvision_loader(folder, way):
    from torch.utils.data import DataLoader
    data = FromLmdb(str(folder / "lmdb"), way)
    return lambda: DataLoader(data, BATCH, shuffle=True, num_workers=WORKERS, drop_last=True,
                              collate_fn=way.batch)


def webdataset_loader(folder, way):
    import webdataset as wds
    url = f"{folder}/images.tar"

    def make():
        data = wds.WebDataset([url, url], shardshuffle=False).shuffle(200)
        data = data.to_tuple("jpg", "cls").map_tuple(way.image, int)
        return wds.WebLoader(data.batched(BATCH, collation_fn=way.batch), batch_size=None,
                             num_workers=WORKERS)

    return make


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    binary = str(pathlib.Path(args.trainer).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_data(binary, folder, args.images)
        runs = {"trainer, LMDB": Trainer(binary, folder, "LMDB", "lmdb", f"threads: {WORKERS}"),
                "trainer, automatic": Trainer(binary, folder, "LMDB", "lmdb"),
                "trainer, tar": Trainer(binary, folder, "TAR", "images.tar")}
        for title, make, way in (
                ("torchvision, LMDB", torchvision_loader, ByPillow),
                ("torchvision by tensors", torchvision_loader, ByTensors),
                ("webdataset, tar", webdataset_loader, ByPillow),
                ("webdataset by tensors", webdataset_loader, ByTensors)):
            try:
                runs[title] = Loader(make(folder, way()))
            except ImportError as missing:
                print(f"{title}: left out, {missing.name} is not installed")
        rates = {title: [] for title in runs}
        for _ in range(args.rounds):
            for title, run in runs.items():
                rates[title].append(run.rate(args.images * 3 // 4))
        own = statistics.median(rates["trainer, LMDB"])
        for title, values in rates.items():
            middle = statistics.median(values)
            print(f"{title:22} {middle:8.0f} images/s ({min(values):.0f} to {max(values):.0f}), "
                  f"trainer's LMDB is {own / middle:.2f} times as fast")


if __name__ == "__main__":
    main()
