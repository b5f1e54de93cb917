#include "trainer/checkpoint/snapshot.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "sealed_file.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr std::string_view kStateSuffix = ".solverstate";

// Renames the model, then the state. When the second rename fails, the first is undone: an older
// model of the same name is kept under a second link until both are done.
void PlacePair(AtomicFile* model, AtomicFile* state, FileOps& ops) {
  const std::string backup = TempPathFor(model->path() + ".old");
  const bool had_model = Exists(model->path());
  const bool kept = had_model && ops.Link(model->path(), backup) == 0;
  try {
    model->Place();
  } catch (...) {
    if (kept) ops.Unlink(backup);
    throw;
  }
  try {
    state->Place();
  } catch (...) {
    if (kept) {
      ops.Rename(backup, model->path());
    } else if (!had_model) {
      ops.Unlink(model->path());
    }
    throw;
  }
  if (kept) ops.Unlink(backup);
}

// The iteration in `name` if it is one of `stem`'s states, else -1.
int IterOf(std::string_view name, const std::string& stem) {
  if (!name.starts_with(stem) || !name.ends_with(kStateSuffix)) return -1;
  name.remove_prefix(stem.size());
  if (name.size() <= kStateSuffix.size()) return -1;
  name.remove_suffix(kStateSuffix.size());
  int iter = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), iter);
  return error == std::errc() && end == name.data() + name.size() ? iter : -1;
}

}  // namespace

SnapshotNames NamesFor(const std::string& prefix, int iter) {
  const std::string stem = Join(prefix, "_iter_", iter);
  return {iter, stem + ".caffemodel", stem + std::string(kStateSuffix)};
}

SnapshotNames SaveSnapshot(const std::string& prefix, int iter, caffe::NetParameter& net,
                           caffe::SolverState& state, FileOps& ops) {
  SnapshotNames names = NamesFor(prefix, iter);
  net.clear_file_bytes();
  net.clear_crc32c();
  AtomicFile model_file(names.model, ops);
  const Seal seal = WriteSealed(net, &model_file);
  model_file.Finish();

  state.set_iter(iter);
  SetModel(names.model, seal, &state);
  state.clear_file_bytes();
  state.clear_crc32c();
  AtomicFile state_file(names.state, ops);
  WriteSealed(state, &state_file);
  state_file.Finish();

  PlacePair(&model_file, &state_file, ops);
  SyncFolder(FolderOf(names.state), ops);
  return names;
}

std::vector<SnapshotNames> FindSnapshots(const std::string& prefix) {
  std::vector<SnapshotNames> found;
  const std::string stem = FileNameOf(prefix) + "_iter_";
  std::error_code failed;
  std::filesystem::directory_iterator entry(FolderOf(prefix), failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    const int iter = IterOf(name, stem);
    if (iter < 0) continue;
    SnapshotNames names = NamesFor(prefix, iter);
    if (FileNameOf(names.state) == name) found.push_back(std::move(names));  // no "_iter_007"
  }
  std::ranges::sort(found, std::greater(), &SnapshotNames::iter);
  return found;
}

std::optional<LoadedState> NewestSnapshot(const std::string& prefix) {
  const std::vector<SnapshotNames> found = FindSnapshots(prefix);
  std::string newest_problem;
  for (const SnapshotNames& names : found) {
    try {
      return ReadState(names.state);
    } catch (const Error& e) {
      LOG(WARNING) << "Snapshot of iteration " << names.iter << " is not usable: " << e.what();
      if (newest_problem.empty()) newest_problem = e.what();
    }
  }
  if (found.empty()) return std::nullopt;
  throw Error(ErrorCode::kBadSnapshot, Join("none of the ", found.size(), " snapshots of '", prefix,
                                            "' is usable; the newest: ", newest_problem,
                                            ". Move them away to start from the beginning"));
}

}  // namespace trainer
