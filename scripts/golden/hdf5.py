"""Small HDF5 files as h5py and Caffe's users write them: tests/golden/*.h5.

The valid files hold numbers that the tests compute themselves. The tests must refuse the invalid
files.
"""

import pathlib

import h5py
import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"


def ramp(*shape, start=0.0):
    """start, start + 0.5, ... in row-major order."""
    return (start + 0.5 * np.arange(np.prod(shape, dtype=int))).reshape(shape)


def write(name, fill, **options):
    with h5py.File(FOLDER / name, "w", **options) as file:
        file.attrs["made_by"] = f"scripts/golden/hdf5.py, no seed; h5py {h5py.__version__}"
        fill(file)


def weights(file):
    """A net of two layers, one with slashes in its name, as Caffe's model files hold them."""
    file["data/ip/0"] = ramp(2, 3).astype(np.float32)
    file["data/ip/1"] = ramp(2, start=-1)  # double
    file["data/block/1x1/0"] = ramp(1, 2, start=100).astype(">f4")
    file.create_group("data/relu")


def state(file):
    file["iter"] = np.array([7], np.int32)
    file["current_step"] = np.array([2], np.int32)
    file.create_dataset("learned_net", data="hdf5_weights.h5",
                        dtype=h5py.string_dtype("ascii", 18))
    for i, shape in enumerate([(2, 3), (2,), (1, 2)]):
        file[f"history/{i}"] = ramp(*shape, start=10 * i).astype(np.float32)


def rows(start, count):
    def fill(file):
        number = start + np.arange(count)
        file.create_dataset("image", data=(number[:, None] * 100 + np.arange(12)).reshape(
            count, 3, 2, 2).astype(np.float32), chunks=(2, 3, 2, 2), compression="gzip")
        file["label"] = number.astype(np.int8)
        file["vector"] = (number[:, None] + np.array([0.0, 0.25])).astype(np.float64)
    return fill


def bad(file):
    file["good"] = ramp(4).astype(np.float32)
    file["soft"] = h5py.SoftLink("/good")
    file["external"] = h5py.ExternalLink("hdf5_weights.h5", "/data/ip/0")
    huge = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    huge.set_chunk((1024,))
    space = h5py.h5s.create_simple((2**40,))
    h5py.h5d.create(file.id, b"huge", h5py.h5t.IEEE_F32LE, space, huge)
    late = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    late.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
    h5py.h5d.create(file.id, b"late", h5py.h5t.IEEE_F32LE, space, late)
    outside = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    outside.set_external(b"/etc/passwd", 0, 16)
    h5py.h5d.create(file.id, b"outside", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((4,)),
                    outside)
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("hdf5_weights.h5", "data/ip/0", (4,))
    file.create_virtual_dataset("virtual", layout)
    file["words"] = ["a", "b"]
    file["truth"] = np.array([True, False])
    file["pairs"] = np.array([(1, 2)], [("a", "i4"), ("b", "i4")])
    file.create_dataset("none", dtype="f4", data=h5py.Empty("f4"))
    loop = file.create_group("loop")
    loop["again"] = loop


def large_chunk(file):
    """4 MiB in one chunk, more than libhdf5 keeps in memory unasked; row i holds i modulo 251."""
    values = np.repeat((np.arange(4096) % 251).astype(np.uint8)[:, None], 1024, axis=1)
    file.create_dataset("data", data=values, chunks=values.shape, compression="gzip")


def main():
    write("hdf5_weights.h5", weights)
    write("hdf5_latest.h5", weights, libver="latest", userblock_size=1024)
    write("hdf5_state.h5", state)
    write("hdf5_rows_a.h5", rows(0, 5))
    write("hdf5_rows_b.h5", rows(5, 3))
    write("hdf5_large_chunk.h5", large_chunk)
    write("hdf5_bad.h5", bad)
    with h5py.File(FOLDER / "hdf5_loop.h5", "w") as file:
        weights(file)
        file["data/ip/again"] = file["data"]


if __name__ == "__main__":
    main()
