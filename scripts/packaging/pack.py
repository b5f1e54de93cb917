#!/usr/bin/env python3
"""Packs an installed prefix as a tarball, which runs from any folder, and as a wheel, for pip.

    pack.py PREFIX FOLDER

The wheel's name has a platform tag. manylinux_2_27 means that the program needs glibc 2.27 or newer
and no other library. linux means that the program needs libraries of this machine.
"""

import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import stat
import subprocess
import sys
import tarfile
import zipfile

# The manylinux standard (PEP 600) lets programs load these from the system.
OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0",
                 "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2"}
# All entries have one time, so the same files make the same archive.
TIME = int(os.environ.get("SOURCE_DATE_EPOCH", 1577836800))
SUMMARY = "trains neural networks described in Caffe's prototxt"


def output(*command):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True).stdout


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def system_tag(files):
    """Returns the platform tag, and the needed libraries outside of the package and of PEP 600."""
    programs = [path for path in files.values() if is_elf(path)]
    carried = {path.name for path in programs}
    needed, newest = set(), (2, 5)
    for path in programs:
        text = output("readelf", "--wide", "--dynamic", "--version-info", str(path))
        needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
        for version in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", text):
            newest = max(newest, tuple(map(int, version)))
    others = sorted(needed - carried - OF_THE_SYSTEM)
    return "linux" if others else "manylinux_%d_%d" % newest, others


def module_that_moves(text):
    """Makes the module file find the prefix from its own path."""
    return re.sub(r'^set prefix ".*"$', "set prefix [file normalize [file join [file dirname "
                  "$ModulesCurrentModulefile] .. .. .. ..]]", text, flags=re.M)


def contents(name, path):
    data = path.read_bytes()
    return module_that_moves(data.decode()).encode() if "/modulefiles/" in name else data


def write_tarball(files, top, to):
    with to.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, TIME) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in files.items():
            data = contents(name, path)
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mtime = len(data), TIME
            entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(data))


def wheel_entries(files, version, tag):
    """[(name in the wheel, bytes, whether it can be run)]"""
    data, about = f"trainer-{version}.data", f"trainer-{version}.dist-info"
    entries = []
    for name, path in files.items():
        if name == "bin/trainer":
            entries.append((f"{data}/scripts/trainer", path.read_bytes(), True))
        elif "/modulefiles/" not in name:  # a virtual environment needs no module file
            entries.append((f"{data}/data/{name}", path.read_bytes(), False))
        if name.endswith("/doc/trainer/copyright"):
            entries.append((f"{about}/LICENSE", path.read_bytes(), False))
    entries.append((f"{about}/WHEEL", (
        f"Wheel-Version: 1.0\nGenerator: trainer\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
    ).encode(), False))
    entries.append((f"{about}/METADATA", (
        f"Metadata-Version: 2.1\nName: trainer\nVersion: {version}\nSummary: {SUMMARY}\n"
        "License: BSD-2-Clause\nLicense-File: LICENSE\n"
        "Classifier: Operating System :: POSIX :: Linux\n\n"
        "Start with `trainer demo`. Pages are in share/doc/trainer of the environment, models in\n"
        "share/trainer/models, the terms of the libraries inside in share/doc/trainer/licenses.\n"
    ).encode(), False))
    return entries


def write_wheel(files, version, tag, to):
    entries = wheel_entries(files, version, tag)
    record = f"trainer-{version}.dist-info/RECORD"
    lines = []
    for name, data, _ in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    lines.append(f"{record},,\n")
    entries.append((record, "".join(lines).encode(), False))
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data, runs in entries:
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | (0o755 if runs else 0o644)) << 16
            archive.writestr(entry, data)


def main(prefix, folder):
    prefix, folder = pathlib.Path(prefix), pathlib.Path(folder)
    files = {path.relative_to(prefix).as_posix(): path
             for path in sorted(prefix.rglob("*")) if path.is_file()}
    version = output(str(prefix / "bin/trainer"), "--version").split()[1]
    system, others = system_tag(files)
    tag = f"{system}_{os.uname().machine}"
    top = f"trainer-{version}-linux-{os.uname().machine}"
    tarball, wheel = folder / f"{top}.tar.gz", folder / f"trainer-{version}-py3-none-{tag}.whl"
    write_tarball(files, top, tarball)
    write_wheel(files, version, tag, wheel)
    whole = sum(path.stat().st_size for path in files.values())
    for made in (tarball, wheel):
        print(f"pack: {made}: {made.stat().st_size / 1e6:.1f} MB, unpacked {whole / 1e6:.1f} MB")
    if others:
        print(f"pack: the program needs {', '.join(others)} of the machine that it runs on")


if __name__ == "__main__":
    main(*sys.argv[1:])
