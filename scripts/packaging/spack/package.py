"""A recipe of Spack. In the root of the sources:

    spack repo create ~/spack-trainer trainer
    mkdir -p ~/spack-trainer/packages/trainer
    cp scripts/packaging/spack/package.py ~/spack-trainer/packages/trainer/
    spack repo add ~/spack-trainer
    spack dev-build trainer@0.1.0
"""

from spack.package import *


class Trainer(CMakePackage):
    """Trains neural networks described in Caffe's prototxt, on CPUs, on GPUs of NVIDIA and on
    several machines."""

    homepage = "file:///usr/share/doc/trainer"
    manual_download = True  # the sources are yours: spack dev-build takes them from the folder
    license("BSD-2-Clause")

    version("0.1.0")

    variant("mpi", default=True, description="Ranks on several machines")
    variant("cuda", default=False, description="Code for GPUs of NVIDIA")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("protobuf@3.12:3.21")
    # Its parallel regions run on the program's own threads, in the place of GCC's OpenMP.
    depends_on("onednn@2.6:2.7 cpu_runtime=omp", when="%gcc")
    depends_on("lmdb")
    depends_on("leveldb")
    depends_on("hdf5~mpi")
    depends_on("libjpeg-turbo")
    depends_on("libpng")
    depends_on("libtiff")
    depends_on("zlib-api")
    depends_on("glog")
    depends_on("gflags")
    depends_on("mpi", when="+mpi")  # opened at run time
    depends_on("cuda@12:", when="+cuda")
    conflicts("%gcc@:11", msg="C++20 needs GCC 12 or newer")
    conflicts("%clang", msg="oneDNN must be built with GCC's OpenMP")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("TRAINER_TESTS", False),
            self.define("TRAINER_BENCH", False),
            self.define("TRAINER_MPI", "ON" if self.spec.satisfies("+mpi") else "OFF"),
            self.define("TRAINER_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
        ]
