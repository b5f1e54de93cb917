#pragma once
// Pairs of files, <prefix>_iter_<N>.caffemodel and <prefix>_iter_<N>.solverstate, that let a run go
// on from iteration N. A run that averages its weights adds <prefix>_iter_<N>.averaged.caffemodel.
// As HDF5 all names end in .h5. The state is put in place last, so a pair is complete when its
// state exists.

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

// The names for iteration `iter`, without padding.
SnapshotNames NamesFor(const std::string& prefix, int iter,
                       SnapshotFormat format = SnapshotFormat::kBinary);

// Writes all files under temporary names, reads them back, then renames the model, the averaged
// model if there is one, and the state, and makes that permanent. Fills state's iter and what it
// says of the models. Needs no copy of any message. On failure (kIo, kNoPermission, kCannotCreate,
// kConfig) no temporary file stays and all older files are as before; only when the last step,
// flushing the folder, fails are the new files in place. A kill between the renames may leave a
// model without its state; when it replaced an older pair of the same iteration, that state then no
// longer matches and is skipped.
SnapshotNames SaveSnapshot(const std::string& prefix, int iter, caffe::NetParameter& net,
                           caffe::SolverState& state, FileOps& ops = FileOps::Posix(),
                           caffe::NetParameter* averaged = nullptr,
                           SnapshotFormat format = SnapshotFormat::kBinary);

// The states of `prefix` that exist in either format, newest (highest iteration) first. Nothing is
// read.
std::vector<SnapshotNames> FindSnapshots(const std::string& prefix);

// The newest pair whose state and weights are undamaged and belong together; the log names each one
// that was passed over and why. Nothing when there is no snapshot at all; throws kBadSnapshot when
// there are some and none is usable.
std::optional<LoadedState> NewestSnapshot(const std::string& prefix);

// Creates a folder in `folder`, for the own user alone, for the last snapshot of a run whose own
// folder refuses it. Returns the prefix of the snapshot's files in it, or "" if `folder` cannot be
// written. The folder's name depends on the absolute path of `prefix`.
std::string MakeRescuePrefix(const std::string& folder, const std::string& prefix);
// The newest usable snapshot below a prefix that MakeRescuePrefix returned for `prefix` and one of
// `folders`. Folders that other users own or may write are ignored.
std::optional<LoadedState> NewestRescued(const std::string& prefix,
                                         const std::vector<std::string>& folders);

}  // namespace trainer
