#pragma once
// Files of a solver's state: .solverstate, a binary SolverState, or .solverstate.h5, HDF5. Caffe
// reads our files and this program reads Caffe's. Our files also contain their size and a CRC32C
// (state.proto), and the size and CRC32C of their weights.

#include <string>

#include "state.pb.h"
#include "trainer/base/file/file_ops.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {

// A state as read from `path`, and the path of its weights. `averaged_path` is "" if the state has
// no averaged weights.
struct LoadedState {
  caffe::SolverState state;
  std::string path, model_path, averaged_path;
};

// Writes `path` completely, or leaves it unchanged. Clears state's file_bytes and crc32c. The
// caller sets `state.learned_net`, model_crc32c and model_bytes, see SetModel. Throws as AtomicFile
// does.
void WriteState(const std::string& path, caffe::SolverState& state,
                FileOps& ops = FileOps::Posix());

// Records the weights to which the state belongs.
void SetModel(const std::string& model_path, const FileChecksum& seal, caffe::SolverState* state);
// Records the averaged weights that belong to the state.
void SetAveraged(const std::string& path, const FileChecksum& seal, caffe::SolverState* state);

// Reads a state and finds its weights, and its averaged weights if it has them. The weights are the
// file of the recorded name in the state's folder. If that file is missing and `allow_outside` is
// set, they are the file at the recorded path, which may be in any folder, and this is logged. The
// weights must have the checksum that the state records, if it records one; they are parsed only if
// they contain no checksum of their own. Throws kNoInput, kNoPermission, kIo; kUsage for a file of
// weights, by name or content; kBadSnapshot for all other errors: a truncated or changed state, and
// weights that are missing, damaged or belong to another state.
LoadedState ReadState(const std::string& path, bool allow_outside = false);
// Reads a state as ReadState does, but neither finds nor checks its weights.
caffe::SolverState ReadStateAlone(const std::string& path);

}  // namespace trainer
