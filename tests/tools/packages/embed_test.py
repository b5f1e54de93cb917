"""Checks that an external C++ program finds libtrainer.so by CMake and predicts like the trainer.

    embed_test.py CMAKE BUILD

The program and its CMakeLists.txt are the blocks of docs/models.md, "From C++".
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
failures = []

NET = """name: "small"
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 1 dim: 4 dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""
TRAIN = """layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 1 dim: 1 dim: 4 dim: 4 } shape { dim: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = """net: "train.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 1 random_seed: 1
snapshot_prefix: "net"
"""


def expect(holds, what):
    if not holds:
        failures.append(what)


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **more)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def output(*command, **more):
    done = run(*command, **more)
    expect(done.returncode == 0,
           f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def block(kind, name):
    """Returns the block of the page whose first line names the file."""
    page = (ROOT / "docs/models.md").read_text()
    found = re.search(rf"^```{kind}\n((?://|#) {re.escape(name)}\n.*?)^```$", page, re.M | re.S)
    if found is None:
        raise SystemExit(f"docs/models.md has no block {name}")
    return found.group(1)


def check_exports(library):
    """Checks that only Predictor is exported. GOMP_parallel would replace the program's own."""
    lines = output("nm", "-D", "-C", "--defined-only", library).splitlines()
    names = [line.split(maxsplit=2)[2] for line in lines]
    expect(any("trainer::Predictor::Run(" in name for name in names), f"exported are {names[:5]}")
    others = [name for name in names if "trainer::Predictor::" not in name]
    expect(not others, f"the library also exports {others[:5]}")


def build(cmake, prefix, folder):
    source = folder / "source"
    source.mkdir()
    (source / "answers.cpp").write_text(block("cpp", "answers.cpp"))
    (source / "CMakeLists.txt").write_text(block("cmake", "CMakeLists.txt"))
    output(cmake, "-G", "Ninja", "-S", source, "-B", folder / "program",
           f"-DCMAKE_PREFIX_PATH={prefix}")
    output(cmake, "--build", folder / "program")
    return folder / "program/answers"


def check_answers(program, trainer, folder):
    files = {"deploy.prototxt": NET, "train.prototxt": TRAIN, "solver.prototxt": SOLVER}
    for name, text in files.items():
        (folder / name).write_text(text)
    pixels = bytes(range(0, 240, 5))  # red, green, blue
    (folder / "a.ppm").write_bytes(b"P6 4 4 255\n" + pixels)
    output(trainer, "train", "--solver=solver.prototxt", cwd=folder)
    net, weights = "deploy.prototxt", "net_iter_1.caffemodel"
    said = output(trainer, "predict", f"--model={net}", f"--weights={weights}", "--json", "--top=3",
                  "a.ppm", cwd=folder)
    done = run(program, net, weights, 4, 4, cwd=folder, input=pixels)
    expect(done.returncode == 0 and done.stderr == "", f"the program ended so: {done}")
    if failures:
        return
    wanted = {answer["class"]: answer["score"]
              for answer in json.loads(said)["images"][0]["answers"]}
    got = dict(enumerate(map(float, done.stdout.split())))
    expect(wanted.keys() == got.keys() and
           all(abs(got[number] - wanted[number]) < 1e-5 for number in got),
           f"the program computes {got}, predict {wanted}")
    done = run(program, net, "none.caffemodel", 4, 4, cwd=folder, input=pixels)
    expect(done.returncode == 66 and "none.caffemodel" in done.stderr and
           done.stderr.count("\n") == 1, f"a missing file gives {done}")


def main(cmake, build_folder):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = folder / "a prefix"
        output(cmake, "--install", build_folder, "--prefix", prefix, "--component", "dev")
        if not failures:
            (library,) = prefix.glob("lib*/**/libtrainer.so")
            check_exports(library)
            program = build(cmake, prefix, folder)
        if not failures:
            check_answers(program, pathlib.Path(build_folder) / "trainer", folder)
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
