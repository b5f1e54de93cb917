#include "trainer/checkpoint/solver_state.h"

#include <glog/logging.h>

#include "sealed_file.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

bool IsNamedAsWeights(const std::string& path) {
  return path.ends_with(".caffemodel") || path.ends_with(".caffemodel.h5");
}

[[noreturn]] void RefuseWeights(const std::string& path) {
  const std::string state = path.substr(0, path.rfind(".caffemodel")) + ".solverstate";
  throw Error(ErrorCode::kUsage, {path},
              Join("this is a file of weights, not a solver state; to go on training give ",
                   Exists(state) ? Join("--snapshot=", state) : "the .solverstate beside it",
                   ", to start from these weights give --weights=", path));
}

// Where the weights of a state are. Files are often moved as pairs, so the folder of the state
// counts more than the path that was true when it was written.
std::string FindModel(const std::string& path, const std::string& stored) {
  const std::string name = FileNameOf(stored);
  if (name.empty()) {
    throw Error(ErrorCode::kBadSnapshot, {path}, "the state names no file of weights");
  }
  const std::string beside = JoinPath(FolderOf(path), name);
  if (Exists(beside)) return beside;
  if (!Exists(stored)) {
    throw Error(
        ErrorCode::kBadSnapshot, {path},
        Join("the weights of this state are missing: neither '", AbsolutePath(beside), "' nor '",
             AbsolutePath(stored), "' exists; put the .caffemodel beside the state"));
  }
  LOG(WARNING) << EscapeControl(
      Join("The weights of ", path, " are taken from another folder: ", AbsolutePath(stored)));
  return stored;
}

void CheckModel(const caffe::SolverState& state, const std::string& path,
                const std::string& model_path) {
  const std::optional<Seal> seal = CheckSeal(model_path);
  if (state.has_model_crc32c() &&
      (!seal || seal->crc32c != state.model_crc32c() || seal->file_bytes != state.model_bytes())) {
    throw Error(ErrorCode::kBadSnapshot, {model_path},
                Join("these are not the weights that the state '", path,
                     "' was saved with: size or checksum differ; use another snapshot"));
  }
  if (seal) return;
  try {
    ReadModel(model_path);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kData && e.code() != ErrorCode::kUsage) throw;
    throw Error(ErrorCode::kBadSnapshot,
                Join(e.what(), " (these are the weights of the state '", path, "')"));
  }
}

}  // namespace

void SetModel(const std::string& model_path, const Seal& seal, caffe::SolverState* state) {
  state->set_learned_net(model_path);
  state->set_model_crc32c(seal.crc32c);
  state->set_model_bytes(seal.file_bytes);
}

void WriteState(const std::string& path, caffe::SolverState& state, FileOps& ops) {
  state.clear_file_bytes();
  state.clear_crc32c();
  AtomicFile file(path, ops);
  WriteSealed(state, &file);
  file.Commit();
}

LoadedState ReadState(const std::string& path) {
  OpenForReading(path);  // a file that is not there comes before any thought about its name
  const bool named_as_weights = IsNamedAsWeights(path);
  if (named_as_weights && SniffKind(path) != FileKind::kState) RefuseWeights(path);
  CheckSeal(path);
  if (SniffKind(path) == FileKind::kModel) RefuseWeights(path);
  LoadedState loaded;
  ParseFile(path, "solver state (.solverstate)", ErrorCode::kBadSnapshot, &loaded.state);
  if (!loaded.state.has_iter() || loaded.state.iter() < 0) {
    throw Error(ErrorCode::kBadSnapshot, {path},
                "the file holds no iteration, so it is no solver state or damaged");
  }
  loaded.model_path = FindModel(path, loaded.state.learned_net());
  CheckModel(loaded.state, path, loaded.model_path);
  return loaded;
}

}  // namespace trainer
