#pragma once
// Files of a solver's state: .solverstate, a binary SolverState, or .solverstate.h5, HDF5. Caffe
// reads ours and we read Caffe's; ours also carry their size and a CRC32C (state.proto), and those
// of their weights.

#include <string>

#include "state.pb.h"
#include "trainer/base/file/file_ops.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {

// A state as read from `path`, and the path of its weights. `averaged_path` is "" when it has no
// averaged ones.
struct LoadedState {
  caffe::SolverState state;
  std::string path, model_path, averaged_path;
};

// Writes `path` so that it is whole or as it was before. Clears state's file_bytes and crc32c.
// `state.learned_net`, model_crc32c and model_bytes are the caller's to set, see SetModel. Throws
// as AtomicFile does.
void WriteState(const std::string& path, caffe::SolverState& state,
                FileOps& ops = FileOps::Posix());

// Records the weights that the state belongs to.
void SetModel(const std::string& model_path, const FileChecksum& seal, caffe::SolverState* state);
// Records the averaged weights that belong to it.
void SetAveraged(const std::string& path, const FileChecksum& seal, caffe::SolverState* state);

// Reads a state and finds its weights, averaged ones too: the file of that name beside the state,
// else, with `allow_outside` and a line in the log, the path as it was written, which may lead
// anywhere. The weights' checksum must be the one that the state remembers, if it remembers one;
// they are not parsed. Throws kNoInput, kNoPermission, kIo; kUsage for a file of weights, by name
// or content; kBadSnapshot for all else: a cut or changed state, weights that are missing, damaged
// or of another state.
LoadedState ReadState(const std::string& path, bool allow_outside = false);
// The same without a look at the weights.
caffe::SolverState ReadStateAlone(const std::string& path);

}  // namespace trainer
