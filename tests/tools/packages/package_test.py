"""Checks that the packages of scripts/packaging/pack.py work wherever they are unpacked.

    package_test.py CMAKE BUILD
"""

import base64
import csv
import hashlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)


def output(*command, **more):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **more)
    expect(done.returncode == 0, f"{command} ended with {done.returncode}: {done.stdout}")
    return done.stdout


def check_program(program, share, version, what):
    """Checks the program, without environment variables, and the files installed with it."""
    expect(output(program, "--version", env={}) == f"trainer {version}\n", f"{what}: --version")
    model = share / "trainer/models/lenet/deploy.prototxt"
    expect("conv1" in output(program, "show", f"--model={model}", env={}), f"{what}: LeNet")
    terms = share / "doc/trainer"
    expect("Redistribution" in (terms / "copyright").read_text(), f"{what}: its own terms")
    expect((terms / "licenses/zlib.txt").is_file(), f"{what}: the terms of what it carries")
    expect((share / "man/man1/trainer.1.gz").is_file(), f"{what}: the manual page")


def read_only(folder):
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o222)


def check_tarball(archive, folder, version):
    with tarfile.open(archive) as opened:
        opened.extractall(folder)
    (top,) = folder.iterdir()
    expect(top.name == f"trainer-{version}-linux-{os.uname().machine}", f"the tarball's {top.name}")
    moved = top.rename(folder / "a new name")
    read_only(moved)
    link = folder / "trainer"
    link.symlink_to(moved / "bin/trainer")
    check_program(link, moved / "share", version, "tarball")
    module = moved / f"share/trainer/modulefiles/trainer/{version}"
    expect("$ModulesCurrentModulefile" in module.read_text(), "the module file names a folder")


def check_record(wheel, version):
    """Compares RECORD, tags and modes with the files, as pip and its users rely on them."""
    with zipfile.ZipFile(wheel) as archive:
        listed = archive.read(f"trainer-{version}.dist-info/RECORD").decode()
        rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(listed))}
        expect(sorted(rows) == sorted(archive.namelist()), "RECORD lists other files")
        for name, (digest, size) in rows.items():
            data = archive.read(name)
            if name.endswith("/RECORD"):
                expect((digest, size) == ("", ""), "RECORD has a digest of itself")
                continue
            right = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            expect((digest, size) == (f"sha256={right}", str(len(data))), f"RECORD of {name}")
        tags = archive.read(f"trainer-{version}.dist-info/WHEEL").decode()
        expect(f"Tag: {wheel.stem.split('-', 2)[2]}\n" in tags, f"WHEEL has other tags: {tags}")
        mode = archive.getinfo(f"trainer-{version}.data/scripts/trainer").external_attr >> 16
        expect(mode & 0o111 == 0o111, "the program in the wheel cannot be run")


def check_wheel(wheel, folder, version):
    check_record(wheel, version)
    target = folder / "a target"
    output(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-cache-dir",
           "--disable-pip-version-check", "--target", target, wheel)
    if failures:
        return
    moved = target.rename(folder / "moved")
    read_only(moved)
    check_program(moved / "bin/trainer", moved / "share", version, "wheel")


def main(cmake, build):
    if importlib.util.find_spec("pip") is None:
        print("skipped: this Python has no pip")
        return 77
    listed = (ROOT / "CMakeLists.txt").read_text()
    version = re.search(r"^project\(trainer VERSION ([\d.]+)", listed, re.M).group(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix, packages = folder / "prefix", folder / "packages"
        output(cmake, "--install", build, "--prefix", prefix, "--strip")
        terms = prefix / "share/doc/trainer/licenses/zlib.txt"
        terms.parent.mkdir(parents=True)
        terms.write_text("as scripts/packaging/portable.sh collects them\n")
        packages.mkdir()
        output(sys.executable, ROOT / "scripts/packaging/pack.py", prefix, packages)
        if not failures:
            shutil.rmtree(prefix)
            (folder / "tarball").mkdir()
            (folder / "wheel").mkdir()
            check_tarball(next(packages.glob("*.tar.gz")), folder / "tarball", version)
            check_wheel(next(packages.glob("*.whl")), folder / "wheel", version)
        for path in folder.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
