#include "trainer/checkpoint/solver_state.h"

#include <glog/logging.h>

#include "checksummed_file.h"
#include "hdf5_files.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

bool IsNamedAsModel(const std::string& path) {
  return path.ends_with(".caffemodel") || path.ends_with(".caffemodel.h5");
}

// Throws kUsage for a file of weights given as a state. The message names the state in the same
// snapshot.
[[noreturn]] void RefuseWeights(const std::string& path) {
  const std::string state = path.substr(0, path.rfind(".caffemodel")) + ".solverstate" +
                            (IsNamedAsHdf5(path) ? ".h5" : "");
  throw Error(
      ErrorCode::kUsage, {path},
      Join("this is a weights file, not a solver state; to resume training give ",
           Exists(state) ? Join("--snapshot=", state) : "the .solverstate of the same snapshot",
           "; to start from these weights give --weights=", path));
}

// Returns the path of the weights that the state `path` records as `stored`, and throws
// kBadSnapshot if they are missing. Files are often moved as pairs, so the state's folder is tried
// before the recorded path, which was correct only when it was written.
std::string FindModel(const std::string& path, const std::string& stored, const std::string& what,
                      bool allow_outside) {
  const std::string name = FileNameOf(stored);
  if (name.empty()) {
    throw Error(ErrorCode::kBadSnapshot, {path},
                Join("the solver state has no path of its ", what));
  }
  const std::string beside = JoinPath(FolderOf(path), name);
  if (Exists(beside)) return beside;
  if (!Exists(stored)) {
    throw Error(ErrorCode::kBadSnapshot, {path},
                Join("the ", what, " of this solver state are missing: neither '",
                     AbsolutePath(beside), "' nor '", AbsolutePath(stored),
                     "' exists; copy the .caffemodel to the folder of the solver state"));
  }
  if (!allow_outside) {
    throw Error(
        ErrorCode::kBadSnapshot, {path},
        Join("the ", what, " are not in the folder of this solver state, and its path is in ",
             "another folder: ", AbsolutePath(stored),
             "; copy the file to the folder of the solver state, or allow the path with "
             "--allow_outside"));
  }
  LOG(WARNING) << EscapeControl(
      Join("The ", what, " of ", path, " are read from another folder: ", AbsolutePath(stored)));
  return stored;
}

// Throws kBadSnapshot unless the weights are undamaged and have the checksum `expected` that the
// state records, if it records one. Weights without a checksum of their own are parsed.
void CheckModel(const std::optional<FileChecksum>& expected, const std::string& path,
                const std::string& model_path, const std::string& what) {
  const std::optional<FileChecksum> seal = VerifyChecksum(model_path);
  if (expected &&
      (!seal || seal->crc32c != expected->crc32c || seal->file_bytes != expected->file_bytes)) {
    throw Error(ErrorCode::kBadSnapshot, {model_path},
                Join("these are not the ", what, " that the solver state '", path,
                     "' was saved with: size or checksum differ; use another snapshot"));
  }
  if (seal) return;
  try {
    ReadModelAsWritten(model_path);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kData && e.code() != ErrorCode::kUsage) throw;
    throw Error(ErrorCode::kBadSnapshot,
                Join(e.what(), " (these are the ", what, " of the solver state '", path, "')"));
  }
}

}  // namespace

void SetModel(const std::string& model_path, const FileChecksum& seal, caffe::SolverState* state) {
  state->set_learned_net(model_path);
  state->set_model_crc32c(seal.crc32c);
  state->set_model_bytes(seal.file_bytes);
}

void SetAveraged(const std::string& path, const FileChecksum& seal, caffe::SolverState* state) {
  state->set_averaged_net(path);
  state->set_averaged_crc32c(seal.crc32c);
  state->set_averaged_bytes(seal.file_bytes);
}

void WriteState(const std::string& path, caffe::SolverState& state, FileOps& ops) {
  AtomicFile file(path, ops);
  WriteStateTo(state, &file);
  file.Commit();
}

caffe::SolverState ReadStateAlone(const std::string& path) {
  OpenForReading(path);  // reports a missing file before checking its name
  const bool named_as_weights = IsNamedAsModel(path);
  if (named_as_weights && SniffKind(path) != FileKind::kState) RefuseWeights(path);
  VerifyChecksum(path);
  if (SniffKind(path) == FileKind::kModel) RefuseWeights(path);
  caffe::SolverState state;
  if (IsHdf5(path)) {
    state = ReadHdf5State(path);
  } else {
    ParseFile(path, "solver state (.solverstate)", ErrorCode::kBadSnapshot, &state);
  }
  if (!state.has_iter() || state.iter() < 0) {
    throw Error(ErrorCode::kBadSnapshot, {path},
                "the file has no iteration number: it is not a solver state, or it is damaged");
  }
  return state;
}

LoadedState ReadState(const std::string& path, bool allow_outside) {
  LoadedState loaded;
  loaded.path = path;
  loaded.state = ReadStateAlone(path);
  const caffe::SolverState& state = loaded.state;
  std::optional<FileChecksum> expected;
  if (state.has_model_crc32c()) expected = {state.model_crc32c(), state.model_bytes()};
  loaded.model_path = FindModel(path, state.learned_net(), "weights", allow_outside);
  CheckModel(expected, path, loaded.model_path, "weights");
  if (state.has_averaged_net()) {
    loaded.averaged_path = FindModel(path, state.averaged_net(), "averaged weights", allow_outside);
    CheckModel(FileChecksum{state.averaged_crc32c(), state.averaged_bytes()}, path,
               loaded.averaged_path, "averaged weights");
  }
  return loaded;
}

}  // namespace trainer
