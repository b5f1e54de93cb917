#pragma once
// Weights and solver states as HDF5, in Caffe's layout: /data/<layer>/<blob> (with snapshot_diff
// also /diff/...), a shared blob with its owner alone; /iter, /current_step, /learned_net,
// /history/<number>. A layer's name may hold slashes: each part is a group. What our states hold
// beyond Caffe's is in /trainer_state, a SolverState without history as bytes.
//
// HDF5 lets a file begin with a block of the user's own; ours is a seal, which holds a mark, the
// size of the file and a CRC32C, so that a cut or any flipped bit is found before the HDF5 library
// sees the file. Caffe, h5py and h5dump read such files as any other.

#include <string>

#include "net.pb.h"
#include "state.pb.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/hdf5/builder.h"

namespace trainer {

constexpr uint64_t kHdf5ChecksumBytes = 512;

// Write a message with its seal and leave Finish and Place to the caller; `state` comes back as it
// was. Throw kConfig as CheckHdf5Names.
FileChecksum WriteHdf5Model(const caffe::NetParameter& net, AtomicFile* file);
FileChecksum WriteHdf5State(caffe::SolverState& state, AtomicFile* file);

// Layers with names and blobs only. A blob that the file leaves out, such as a shared one, is there
// without shape and numbers. Throws kData.
caffe::NetParameter ReadHdf5Model(const std::string& path);
// Throws kBadSnapshot.
caffe::SolverState ReadHdf5State(const std::string& path);

// Whether a file that begins with `head` is, or was before a bit flipped, one of ours.
bool HasHdf5Checksum(const std::string& head);
// Checks such a file of `size` bytes. Throws kBadSnapshot.
FileChecksum VerifyHdf5Checksum(const std::string& path, uint64_t size);

}  // namespace trainer
