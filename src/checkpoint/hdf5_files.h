#pragma once
// Weights and solver states as HDF5, in Caffe's layout: /data/<layer>/<blob> (with snapshot_diff
// also /diff/...), a shared blob only under its owner; /iter, /current_step, /learned_net,
// /history/<number>. A layer's name may contain slashes: each part is a group. The data of our
// states that Caffe's do not have is in /trainer_state, the bytes of a SolverState without history.
//
// HDF5 allows a file to begin with a user block. Ours is a seal, which contains a mark, the size of
// the file and a CRC32C, so that truncation or any flipped bit is found before the HDF5 library
// reads the file. Caffe, h5py and h5dump read such files like any other.

#include <string>

#include "net.pb.h"
#include "state.pb.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/hdf5/builder.h"

namespace trainer {

constexpr uint64_t kHdf5ChecksumBytes = 512;

// Writes the layers' blobs with a seal; the caller calls Finish and Place. Throws kConfig as
// CheckHdf5Names does.
FileChecksum WriteHdf5Model(const caffe::NetParameter& net, AtomicFile* file);
// Writes a state with a seal; the caller calls Finish and Place. `state` is unchanged afterwards.
FileChecksum WriteHdf5State(caffe::SolverState& state, AtomicFile* file);

// Reads layers with names and blobs only. A blob that the file leaves out, such as a shared one, is
// returned without shape and numbers. Throws kData.
caffe::NetParameter ReadHdf5Model(const std::string& path);
// Reads a state in Caffe's layout, and what only our states have. Throws kBadSnapshot.
caffe::SolverState ReadHdf5State(const std::string& path);

// Returns whether a file that begins with `head` was written by this program, also if some bits of
// its mark flipped.
bool HasHdf5Checksum(const std::string& head);
// Returns the CRC32C in a seal, without verifying it; 0 if `head` is shorter than a seal.
uint32_t StoredHdf5Checksum(const std::string& head);
// Verifies the seal of a file of `size` bytes for which HasHdf5Checksum is true, and returns it.
// Throws kBadSnapshot for a truncated or changed file.
FileChecksum VerifyHdf5Checksum(const std::string& path, uint64_t size);

}  // namespace trainer
