"""The pages of docs/reference: they are what the program prints, and their examples of layers that
read files are planned with such files (`trainer layers` plans the others itself).

    reference_test.py TRAINER
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = """
trainer dataset digits digits --train=20 --test=10
trainer dataset convert digits/train_lmdb digits.h5
python3 scripts/make_shapes.py photos
cd photos
for picture in $(find . -name '*.p*' | sort | head -n 3); do
  echo "${picture#./} 0" >> ../photos.txt
  printf '# %d\\n%s\\n3\\n48\\n48\\n2\\n1 0.9 4 4 30 30\\n0 0.1 0 0 20 20\\n' \\
    $((windows++)) "$PWD/$picture" >> ../windows.txt
done
"""


def main(trainer):
    code = subprocess.run([sys.executable, "-B", ROOT / "scripts/make_reference.py", trainer,
                           "--check"], check=False).returncode
    asked = subprocess.run([trainer, "layers", "--json"], text=True, capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "trainer").symlink_to(trainer)
        (folder / "scripts").symlink_to(ROOT / "scripts")
        script = f'PATH="{folder}:$PATH"\nwindows=0\n{DATA}'
        subprocess.run(["bash", "-euc", script], cwd=folder, check=True, capture_output=True)
        count = 0
        for layer in json.loads(asked.stdout)["layers"]:
            example = layer["example"]
            if example["reads"] or example["writes"]:
                continue
            (folder / "net.prototxt").write_text(example["text"])
            done = subprocess.run([trainer, "show", "--model=net.prototxt"], cwd=folder, text=True,
                                  capture_output=True, check=False)
            count += 1
            if done.returncode or "data " not in done.stdout:
                print(f"{layer['type']}: {done.stdout}{done.stderr}")
                code = 1
    print(f"{count} layers that read files")
    return code if count == 4 else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
