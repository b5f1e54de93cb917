"""Checks that a program installed by `cmake --install` works, and that the recipes match it.

    install_test.py CMAKE BUILD
"""

import ast
import gzip
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

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


def check_program(prefix, version):
    program = prefix / "bin/trainer"
    said = output(program, "--version", env={})
    expect(said == f"trainer {version}\n", f"--version says {said}")
    model = prefix / "share/trainer/models/lenet/deploy.prototxt"
    expect("conv1" in output(program, "show", f"--model={model}", env={}), "LeNet is not shown")
    found = output("readelf", "-d", program)
    expect("RPATH" not in found and "RUNPATH" not in found, "it looks for libraries of the build")


def check_pages(prefix):
    man = gzip.decompress((prefix / "share/man/man1/trainer.1.gz").read_bytes()).decode()
    expect(man.startswith(".TH TRAINER 1 ") and "\n.SH find\\-lr\n" in man, "the manual page")
    script = prefix / "share/bash-completion/completions/trainer"
    offered = output("bash", "-c", f". '{script}'; COMP_WORDS=(trainer swe); COMP_CWORD=1; _trainer;"
                                   "echo ${COMPREPLY[@]}")
    expect(offered == "sweep\n", f"bash offers '{offered}'")
    documents = prefix / "share/doc/trainer"
    for name in ("README.md", "copyright", "docs/prototxt.md"):
        expect((documents / name).is_file(), f"{name} is not there")


# Defines a module system's Tcl commands, which print what the module file sets.
STAND_IN = """
proc module-whatis {text} {}
proc conflict {name} {}
proc prepend-path {name folder} { puts "$name=$folder" }
proc setenv {name value} { puts "$name=$value" }
source [lindex $argv 0]
"""


def check_module(prefix, version):
    path = prefix / f"share/trainer/modulefiles/trainer/{version}"
    expect(path.read_text().startswith("#%Module1.0\n"), "the module file has no magic word")
    if shutil.which("tclsh") is None:
        print("the module file was not read: there is no tclsh")
        return
    with tempfile.NamedTemporaryFile("w", suffix=".tcl") as script:
        script.write(STAND_IN)
        script.flush()
        asked = output("tclsh", script.name, path)
    expect(asked.splitlines() == [f"PATH={prefix}/bin", f"MANPATH={prefix}/share/man",
                                  f"TRAINER={prefix}/bin/trainer",
                                  f"TRAINER_SHARE={prefix}/share/trainer"],
           f"the module file asks for {asked}")


def check_recipes(version):
    """Checks that the recipes are valid Python, of this version, and name every library."""
    recipes = ROOT / "scripts/packaging"
    for path in [*recipes.glob("spack/*"), *recipes.glob("easybuild/*")]:
        text = path.read_text()
        ast.parse(text, str(path))
        expect(f'"{version}"' in text or f"'{version}'" in text, f"{path} is of another version")
        for library in ("onednn", "protobuf", "lmdb", "leveldb", "hdf5", "libjpeg-turbo", "libpng",
                        "glog", "gflags"):
            expect(library in text.lower(), f"{path} does without {library}")


def main(cmake, build):
    listed = (ROOT / "CMakeLists.txt").read_text()
    version = re.search(r"^project\(trainer VERSION ([\d.]+)", listed, re.M).group(1)
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder) / "a prefix"
        output(cmake, "--install", build, "--prefix", prefix)
        if not failures:
            check_program(prefix, version)
            check_pages(prefix)
            check_module(prefix, version)
    check_recipes(version)
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
