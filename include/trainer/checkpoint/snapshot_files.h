#pragma once
// Pairs of files, <prefix>_iter_<N>.caffemodel and <prefix>_iter_<N>.solverstate, from which a run
// resumes at iteration N. A run that averages its weights adds
// <prefix>_iter_<N>.averaged.caffemodel. As HDF5 all names end in .h5. The state is renamed last,
// so a pair is complete if its state exists.

#include <optional>
#include <string>
#include <vector>

#include "net.pb.h"
#include "state.pb.h"
#include "trainer/base/file/file_ops.h"
#include "trainer/checkpoint/solver_state.h"

namespace trainer {

enum class SnapshotFormat { kBinary, kHdf5 };

struct SnapshotNames {
  int iter = 0;
  std::string model, averaged, state;
};

// Returns the names for iteration `iter`, without padding.
SnapshotNames NamesFor(const std::string& prefix, int iter,
                       SnapshotFormat format = SnapshotFormat::kBinary);

// Writes all files under temporary names, reads them back, then renames the model, the averaged
// model if there is one, and the state, and flushes the folder. Sets state's iter and its fields
// about the models. Does not copy any message. On failure (kIo, kNoPermission, kCannotCreate,
// kConfig) no temporary file stays and all older files are as before; only if the last step,
// flushing the folder, fails, the new files are in place. A kill between the renames may leave a
// model without its state; if the model replaced an older one of the same iteration, the older
// state no longer matches and is skipped.
SnapshotNames SaveSnapshot(const std::string& prefix, int iter, caffe::NetParameter& net,
                           caffe::SolverState& state, FileOps& ops = FileOps::Posix(),
                           caffe::NetParameter* averaged = nullptr,
                           SnapshotFormat format = SnapshotFormat::kBinary);

// Returns the states of `prefix` that exist in either format, newest (highest iteration) first.
// Does not read them.
std::vector<SnapshotNames> FindSnapshots(const std::string& prefix);

// Returns the newest pair whose state and weights are undamaged and belong together, and logs each
// pair that it skipped and why. Returns nothing if no snapshot exists; throws kBadSnapshot if there
// are some and none is usable.
std::optional<LoadedState> NewestSnapshot(const std::string& prefix);

// Creates a folder in `folder`, accessible only to this user, for the last snapshot of a run whose
// own folder cannot be written. Returns the prefix of the snapshot's files in it, or "" if `folder`
// cannot be written. The folder's name depends on the absolute path of `prefix`.
std::string MakeRescuePrefix(const std::string& folder, const std::string& prefix);
// Returns the newest usable snapshot below a prefix that MakeRescuePrefix returned for `prefix` and
// one of `folders`. Ignores folders that other users own or may write.
std::optional<LoadedState> NewestRescued(const std::string& prefix,
                                         const std::vector<std::string>& folders);

}  // namespace trainer
