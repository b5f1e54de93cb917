#pragma once
// The seal of our HDF5 files. HDF5 lets a file begin behind a block of the user's own; ours holds a
// mark, the size of the file and a CRC32C, so that a cut or any flipped bit is found before the
// HDF5 library sees the file. Caffe, h5py and h5dump read such files as any other.

#include <string>

#include "trainer/base/atomic_file.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/hdf5/sketch.h"

namespace trainer {

constexpr uint64_t kHdf5SealBytes = 512;  // what the Hdf5Sketch has to leave free

// Writes a sketch made with kHdf5SealBytes; leaves Finish and Place to the caller.
Seal WriteSealedHdf5(Hdf5Sketch& sketch, AtomicFile* file);

// Whether a file that begins with `head` is, or was before a bit flipped, one of ours.
bool HasHdf5Seal(const std::string& head);

// Checks such a file of `size` bytes. Throws kBadSnapshot.
Seal CheckHdf5Seal(const std::string& path, uint64_t size);

}  // namespace trainer
