"""Tests how TensorBoard and a browser show a run; live_test.py tests the terminal.

    watching_test.py TRAINER tensorboard    TensorBoard's own reader finds every value of a run that
                                            was interrupted and resumed
    watching_test.py TRAINER report         the page is self-contained HTML, and a browser, if one
                                            is installed, draws it light and narrow

Exits with 77 if the other program is not installed. It looks for tensorboard in TRAINER_PYTHON, the
Python that runs this, an active environment, the interpreter of a tensorboard in the path, and
environments called venv or .venv in the tree and in its parent folder.
"""

import html.parser
import importlib.util
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

SKIPPED = 77
NET = """name: "small"
layer { name: "digits" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { scale: 0.00390625 }
  data_param { source: "data/train_lmdb" backend: LMDB batch_size: 16 } }
layer { name: "digits" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { scale: 0.00390625 }
  data_param { source: "data/test_lmdb" backend: LMDB batch_size: 16 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 8 kernel_size: 5 stride: 2 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = """net: "net.prototxt"
test_iter: 2 test_interval: 10 base_lr: 0.05 lr_policy: "fixed" momentum: 0.9
display: 5 max_iter: 40 snapshot: 10 snapshot_prefix: "snap" random_seed: 7
"""


class Job:
    def __init__(self, trainer, folder):
        self.trainer, self.folder = trainer, pathlib.Path(folder)
        (self.folder / "net.prototxt").write_text(NET)
        (self.folder / "solver.prototxt").write_text(SOLVER)
        self.run("dataset", "digits", "data", "--train=100", "--test=40")

    def run(self, *words):
        done = subprocess.run([self.trainer, *words], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def train(self, *words):
        return self.run("train", "--solver=solver.prototxt", *words)


def pythons():
    """Yields the Pythons that may have tensorboard, or None."""
    yield os.environ.get("TRAINER_PYTHON")
    yield sys.executable
    if "VIRTUAL_ENV" in os.environ:
        yield os.environ["VIRTUAL_ENV"] + "/bin/python"
    script = shutil.which("tensorboard")
    if script:
        first = pathlib.Path(script).read_bytes().split(b"\n")[0].decode(errors="replace")
        yield first[2:].split(" ")[0] if first.startswith("#!") else None
    root = pathlib.Path(__file__).resolve().parents[3]
    for folder in (root, root.parent):
        for name in ("venv", ".venv"):
            yield str(folder / name / "bin/python")


def go_on_with_tensorboard():
    """Starts again with a Python that has tensorboard, unless this one has it."""
    if importlib.util.find_spec("tensorboard"):
        return
    for python in pythons():
        if python and shutil.which(python) and subprocess.run(
                [python, "-c", "import tensorboard"], capture_output=True, check=False).returncode == 0:
            os.execv(python, [python, *sys.argv])
    print("tensorboard is not installed")
    sys.exit(SKIPPED)


def test_tensorboard(job):
    """Stops a run at iteration 30 and resumes it from 20. TensorBoard must show all 40."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    job.train("--run=run", "--set", "max_iter=30")
    job.train("--run=run", "--snapshot=snap_iter_20.solverstate")
    events = EventAccumulator(str(job.folder / "run"), size_guidance={
        "scalars": 0, "histograms": 0, "images": 0, "tensors": 0})
    events.Reload()
    lines = [json.loads(line) for line in (job.folder / "run/metrics.jsonl").open()]
    trained = {line["iter"]: line for line in lines if line["event"] == "train"}
    tested = {line["iter"]: line for line in lines if line["event"] == "test"}
    assert sorted(trained) == list(range(0, 41, 5)), sorted(trained)
    assert sorted(tested) == [0, 10, 20, 30, 40], sorted(tested)

    def scalars(tag):
        return [(e.step, e.value) for e in events.Scalars(tag)]

    def same(found, wanted):
        assert len(found) == len(wanted), (found, wanted)
        for (step, value), (iteration, number) in zip(found, wanted):
            assert step == iteration and abs(value - number) <= 1e-6 * abs(number), (found, wanted)

    same(scalars("train/loss"), [(i, trained[i]["loss"]) for i in sorted(trained)])
    same(scalars("train/output/loss"), [(i, trained[i]["outputs"]["loss"]) for i in range(0, 40, 5)])
    same(scalars("train/rate"), [(i, 0.05) for i in range(0, 40, 5)])
    same(scalars("test0/accuracy"), [(i, tested[i]["outputs"]["accuracy"]) for i in sorted(tested)])
    assert [step for step, _ in scalars("speed/images_per_second")] == [5, 10, 15, 25, 30, 35]
    check_pictures(events)
    check_settings(events)
    tags = events.Tags()
    print(f"{len(tags['scalars'])} scalars, {len(tags['histograms'])} histograms, "
          f"{len(tags['images'])} images, the graph, texts and hparams are found")


def check_pictures(events):
    for kind in ("weights", "gradients"):
        for param in ("conv/0", "conv/1", "ip/0", "ip/1"):
            found = events.Histograms(f"{kind}/{param}")
            assert [e.step for e in found] == [0, 10, 20, 30], [e.step for e in found]
    weights = events.Histograms("weights/conv/0")[0].histogram_value
    assert weights.num == 8 * 25 and sum(weights.bucket) == 200, weights
    assert weights.min < 0 < weights.max and len(weights.bucket) == len(weights.bucket_limit)
    assert [e.step for e in events.Images("filters/conv/0")] == [0, 10, 20, 30]
    image = events.Images("images/data/0")[0]
    assert image.encoded_image_string[:8] == b"\x89PNG\r\n\x1a\n" and image.width > 28, image.width
    assert sum(tag.startswith("images/data/") for tag in events.Tags()["images"]) == 8


def check_settings(events):
    graph = events.Graph()
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    if not isinstance(graph, GraphDef):
        graph = GraphDef.FromString(graph)
    nodes = {node.name: node for node in graph.node}
    assert list(nodes["loss"].input) == ["ip", "digits:1"], nodes["loss"]
    assert list(nodes["ip"].input) == ["relu"] and nodes["relu"].op == "ReLU"
    plugins = events.PluginTagToContent("hparams")
    assert set(plugins) == {"_hparams_/experiment", "_hparams_/session_start_info",
                            "_hparams_/session_end_info"}, plugins
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    start = HParamsPluginData.FromString(plugins["_hparams_/session_start_info"])
    hparams = start.session_start_info.hparams
    assert abs(hparams["base_lr"].number_value - 0.05) < 1e-9, hparams
    assert hparams["lr_policy"].string_value == "fixed"
    end = HParamsPluginData.FromString(plugins["_hparams_/session_end_info"])
    assert end.session_end_info.status == 1
    text = events.Tensors("net")[0].tensor_proto.string_val[0].decode()
    assert 'type: "Convolution"' in text, text


class Reader(html.parser.HTMLParser):
    """Checks that elements close in order and that nothing comes from outside."""

    VOID = {"meta", "img", "rect", "line", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        for name, value in attributes:
            assert name not in ("href", "onclick"), (tag, name)
            assert name != "src" or value.startswith("data:"), (tag, value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()


def corner(picture):
    """Returns the grey level of a PNG's upper left pixel, which no PNG filter changes."""
    data, pixels, at = picture.read_bytes(), b"", 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IDAT":
            pixels += data[at + 8:at + 8 + length]
        at += 12 + length
    return sum(zlib.decompress(pixels)[1:4]) / 3


def screenshots(job, page):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("no browser: the page was parsed, not drawn")
        return
    for scheme, look in enumerate(("dark", "light")):
        for width in (1280, 390):
            draw(job, page, browser, f"{look}_{width}",
                 [f"--blink-settings=preferredColorScheme={scheme}", f"--window-size={width},3600"])


def draw(job, page, browser, name, flags):
    picture = job.folder / f"{name}.png"
    subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                    *flags, f"--screenshot={picture}", page.as_uri()],
                   check=True, capture_output=True, timeout=200)
    assert picture.stat().st_size > 10000, name
    level = corner(picture)
    assert level < 60 if name.startswith("dark") else level > 200, (name, level)
    keep = os.environ.get("TRAINER_KEEP")
    if keep:
        shutil.copy(picture, keep)


def test_report(job):
    job.train("--run=first")
    job.train("--run=second", "--set", "base_lr=0.01", "--set", "snapshot_prefix=other")
    with (job.folder / "first/time.json").open("w") as out:
        out.write(subprocess.run([job.trainer, "time", "--solver=solver.prototxt", "--iterations=3",
                                  "--json"], cwd=job.folder, stdout=subprocess.PIPE, text=True,
                                 stderr=subprocess.DEVNULL, check=True).stdout)
    job.run("test", "--run=first")
    job.run("report", "first", "second", "--out=page.html")
    text = (job.folder / "page.html").read_text()
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open, reader.open
    assert {"svg", "polyline", "img", "table", "details"} <= reader.seen, reader.seen
    for part in ("Settings that differ", "base_lr", "filters of the first convolution",
                 "Time per layer", "Classes, accuracy", "Confusion matrix",
                 "Images with the highest loss", "images per second"):
        assert part in text, part
    screenshots(job, job.folder / "page.html")


def main(arguments):
    trainer = pathlib.Path(arguments[0]).resolve()
    if arguments[1] == "tensorboard":
        go_on_with_tensorboard()
    with tempfile.TemporaryDirectory() as folder:
        job = Job(trainer, folder)
        {"tensorboard": test_tensorboard, "report": test_report}[arguments[1]](job)


if __name__ == "__main__":
    main(sys.argv[1:])
