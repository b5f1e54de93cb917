#!/usr/bin/env python3
"""Makes the pictures in docs/pictures again by running the program.

    scripts/docs/pictures.py TRAINER [NAME...]      NAME: run, report, net, samples; default: all

run.svg     a run in a terminal that is killed, resumed and compared with a run without interruption
report.png  the page of `trainer report` in Chromium; left out if Chromium is not installed
net.svg     a net drawn by `trainer draw`
rbm-samples.png  samples that `trainer sample` draws from models/rbm, trained on MNIST in advance
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from terminal import draw, record

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs/pictures"
MOST_BYTES = 200_000
NOTICE = "Other programs use this run's cores"  # about the machine that makes the pictures


def bash(script, folder, environment):
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, check=True,
                   env={**os.environ, **environment}, stdout=subprocess.DEVNULL)


def make_run(folder, environment):
    """Kills the run after its first snapshot. When that exists depends on the machine."""
    environment = environment | {"OMP_NUM_THREADS": "1"}
    bash("trainer dataset digits digits; trainer new reference/lenet --data=digits --epochs=2; "
         "trainer train --solver=reference/lenet/solver.prototxt 2>reference.log", folder, environment)
    for seconds in (6, 9, 14, 20):
        shutil.rmtree(folder / "lenet", ignore_errors=True)
        screen = record(
            ["trainer new lenet --data=digits --epochs=2",
             f"exec timeout --signal=KILL {seconds} trainer train --solver=lenet/solver.prototxt",
             "trainer train --solver=lenet/solver.prototxt --resume=auto",
             "cmp {lenet,reference/lenet}/snapshots/net_iter_626.caffemodel && "
             "echo the same bits"],
            folder, environment)
        rows = list(screen.rows(NOTICE))
        text = "\n".join("".join(character for character, _ in row) for row in rows)
        if "Killed" in text and "lenet from iteration" in text:
            break
    assert "lenet from iteration" in text and text.endswith("the same bits"), text
    (PICTURES / "run.svg").write_text(draw(rows, "A training run that is killed and resumed"))
    print(text)


def make_report(folder, environment):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        print("report.png: left out, there is no Chromium")
        return
    bash("trainer dataset digits digits; trainer new lenet --data=digits --epochs=4; "
         "trainer train --solver=lenet/solver.prototxt --run=lenet/run 2>train.log; "
         "trainer test --run=lenet/run 2>test.log; trainer report lenet/run --out=report.html", folder, environment)
    subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                    "--window-size=1000,920", f"--screenshot={PICTURES / 'report.png'}",
                    (folder / "report.html").as_uri()], check=True, capture_output=True)


def make_net(folder, environment):
    bash("ln -s $ROOT/models .; trainer dataset digits data/digits; trainer draw --model=models/lenet/train_test.prototxt --out=net.svg",
         folder, environment)
    shutil.copy(folder / "net.svg", PICTURES / "net.svg")


def make_samples(_, environment):
    """Training takes hours, so the weights of models/rbm on MNIST must already exist."""
    weights = sorted((ROOT / "run/rbm").glob("pcd_iter_*.caffemodel"),
                     key=lambda path: int(path.stem.rpartition("_")[2]))
    if not weights or not (ROOT / "data/mnist").is_dir():
        print("rbm-samples.png: left out, run/rbm or data/mnist is missing")
        return
    bash("trainer sample --model=models/rbm/train_test.prototxt --count=64 "
         f"--weights={weights[-1]} --out={PICTURES / 'rbm-samples.png'} --force 2>/dev/null", ROOT,
         environment)


MAKERS = {"run": make_run, "report": make_report, "net": make_net, "samples": make_samples}


def main(arguments):
    trainer = pathlib.Path(arguments[0]).resolve()
    PICTURES.mkdir(exist_ok=True)
    for name in arguments[1:] or MAKERS:
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "bin").mkdir()
            (pathlib.Path(folder) / "bin/trainer").symlink_to(trainer)
            environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "TERM": "xterm-256color",
                           "ROOT": str(ROOT)}
            MAKERS[name](pathlib.Path(folder), environment)
    for picture in sorted(PICTURES.iterdir()):
        size = picture.stat().st_size
        print(f"{picture.relative_to(ROOT)}: {size} bytes")
        assert size < MOST_BYTES, picture


if __name__ == "__main__":
    main(sys.argv[1:])
