#include "trainer/checkpoint/snapshot_files.h"

#include <glog/logging.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <span>
#include <sstream>
#include <tuple>

#include "checksummed_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr std::string_view kStateSuffix = ".solverstate", kWeightsSuffix = ".caffemodel",
                           kHdf5Suffix = ".h5";

// Renames the files in their order. If one cannot be renamed, the earlier renames are undone: an
// older file of the same name is kept under a second link until all are done.
void PlaceAll(std::span<AtomicFile* const> files, FileOps& ops) {
  struct Placed {
    std::string path, backup;
    bool had, kept;
  };
  std::vector<Placed> placed;
  try {
    for (AtomicFile* file : files) {
      Placed next{file->path(), TempPathFor(file->path() + ".old"), Exists(file->path()), false};
      // The last file needs no backup, because nothing after it can fail.
      next.kept = next.had && file != files.back() && ops.Link(next.path, next.backup) == 0;
      try {
        file->Place();
      } catch (...) {
        if (next.kept) ops.Unlink(next.backup);
        throw;
      }
      placed.push_back(std::move(next));
    }
  } catch (...) {
    for (const Placed& file : placed) {
      if (file.kept) {
        ops.Rename(file.backup, file.path);
      } else if (!file.had) {
        ops.Unlink(file.path);
      }
    }
    throw;
  }
  for (const Placed& file : placed) {
    if (file.kept) ops.Unlink(file.backup);
  }
}

// Returns the iteration in `name` if it is one of `stem`'s files with this suffix, else -1.
int IterOf(std::string_view name, const std::string& stem, std::string_view suffix) {
  if (name.ends_with(kHdf5Suffix)) name.remove_suffix(kHdf5Suffix.size());
  if (!name.starts_with(stem) || !name.ends_with(suffix)) return -1;
  name.remove_prefix(stem.size());
  if (name.size() <= suffix.size()) return -1;
  name.remove_suffix(suffix.size());
  return ParseNumber<int>(name).value_or(-1);
}

// Returns the snapshots whose file with `suffix` exists, newest first.
std::vector<SnapshotNames> FindBy(const std::string& prefix, std::string_view suffix) {
  std::vector<SnapshotNames> found;
  const std::string stem = FileNameOf(prefix) + "_iter_";
  std::error_code failed;
  std::filesystem::directory_iterator entry(FolderOf(prefix), failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    const int iter = IterOf(name, stem, suffix);
    if (iter < 0) continue;
    SnapshotNames names =
        NamesFor(prefix, iter,
                 name.ends_with(kHdf5Suffix) ? SnapshotFormat::kHdf5 : SnapshotFormat::kBinary);
    const std::string& file = suffix == kStateSuffix ? names.state : names.model;
    if (FileNameOf(file) == name) found.push_back(std::move(names));  // no "_iter_007"
  }
  std::ranges::sort(found, [](const SnapshotNames& a, const SnapshotNames& b) {
    return std::tie(b.iter, a.state) < std::tie(a.iter, b.state);
  });
  return found;
}

// Warns of weights without a state. They remain if a run is killed between the renames of a
// snapshot, or if the user removes states.
void WarnOfWeightsAlone(const std::string& prefix, const std::vector<SnapshotNames>& pairs,
                        std::optional<int> from) {
  for (const SnapshotNames& weights : FindBy(prefix, kWeightsSuffix)) {
    if (from && weights.iter <= *from) return;
    if (std::ranges::count(pairs, weights.iter, &SnapshotNames::iter) > 0) continue;
    LOG(WARNING) << EscapeControl(
        Join(weights.model,
             " has no solver state in the same folder; maybe its run was killed while it saved. ",
             from ? Join("The newest complete snapshot is from iteration ", *from)
                  : std::string("There is no complete snapshot")));
    return;
  }
}

// Returns the start of the names of a run's rescue folders: "lenet_rescue_1a2b3c4d_". The number
// is the CRC-32C of the prefix's absolute path, so equal names in different folders rarely collide.
std::string RescueStem(const std::string& prefix) {
  const std::string path = AbsolutePath(prefix);
  std::ostringstream number;
  number << std::hex << std::setw(8) << std::setfill('0') << Crc32c(path.data(), path.size());
  return Join(FileNameOf(prefix), "_rescue_", number.str(), "_");
}

// Returns whether `path` is a folder, not a link to one, that this user owns and no other user may
// write to.
bool IsPrivateFolder(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

SnapshotNames NamesFor(const std::string& prefix, int iter, SnapshotFormat format) {
  const std::string stem = Join(prefix, "_iter_", iter);
  const std::string_view end = format == SnapshotFormat::kHdf5 ? kHdf5Suffix : "";
  return {iter, Join(stem, ".caffemodel", end), Join(stem, ".averaged.caffemodel", end),
          Join(stem, kStateSuffix, end)};
}

SnapshotNames SaveSnapshot(const std::string& prefix, int iter, caffe::NetParameter& net,
                           caffe::SolverState& state, FileOps& ops, caffe::NetParameter* averaged,
                           SnapshotFormat format) {
  SnapshotNames names = NamesFor(prefix, iter, format);
  AtomicFile model_file(names.model, ops);
  SetModel(names.model, WriteModelTo(net, &model_file), &state);
  model_file.Finish();
  std::optional<AtomicFile> averaged_file;
  if (averaged != nullptr) {
    averaged_file.emplace(names.averaged, ops);
    SetAveraged(names.averaged, WriteModelTo(*averaged, &*averaged_file), &state);
    averaged_file->Finish();
  }

  state.set_iter(iter);
  AtomicFile state_file(names.state, ops);
  WriteStateTo(state, &state_file);
  state_file.Finish();

  std::vector<AtomicFile*> files = {&model_file};
  if (averaged_file) files.push_back(&*averaged_file);
  files.push_back(&state_file);
  PlaceAll(files, ops);
  SyncFolder(FolderOf(names.state), ops);
  return names;
}

std::vector<SnapshotNames> FindSnapshots(const std::string& prefix) {
  return FindBy(prefix, kStateSuffix);
}

std::optional<LoadedState> NewestSnapshot(const std::string& prefix) {
  const std::vector<SnapshotNames> found = FindSnapshots(prefix);
  std::string newest_problem;
  for (const SnapshotNames& names : found) {
    try {
      LoadedState newest = ReadState(names.state);
      WarnOfWeightsAlone(prefix, found, names.iter);
      return newest;
    } catch (const Error& e) {
      LOG(WARNING) << "The snapshot of iteration " << names.iter << " cannot be used: " << e.what();
      if (newest_problem.empty()) newest_problem = e.what();
    }
  }
  if (found.empty()) {
    WarnOfWeightsAlone(prefix, found, std::nullopt);
    return std::nullopt;
  }
  throw Error(ErrorCode::kBadSnapshot,
              Join("none of the ", found.size(), " snapshots of '", prefix,
                   "' can be used; the newest: ", newest_problem,
                   ". To start from the beginning, move the snapshots away"));
}

std::string MakeRescuePrefix(const std::string& folder, const std::string& prefix) {
  std::string made = AbsolutePath(JoinPath(folder, RescueStem(prefix) + "XXXXXX"));
  return mkdtemp(made.data()) == nullptr ? "" : JoinPath(made, FileNameOf(prefix));
}

std::optional<LoadedState> NewestRescued(const std::string& prefix,
                                         const std::vector<std::string>& folders) {
  std::optional<LoadedState> newest;
  const std::string stem = RescueStem(prefix);
  for (const std::string& folder : folders) {
    std::error_code failed;
    std::filesystem::directory_iterator entry(folder, failed);
    for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
      const std::string path = entry->path().string();
      if (!FileNameOf(path).starts_with(stem) || !IsPrivateFolder(path)) continue;
      try {
        std::optional<LoadedState> found = NewestSnapshot(JoinPath(path, FileNameOf(prefix)));
        if (!found || (newest && found->state.iter() <= newest->state.iter())) continue;
        newest = std::move(found);
      } catch (const Error& error) {
        LOG(WARNING) << "The snapshot in the rescue folder " << EscapeControl(path)
                     << " cannot be used: " << error.what();
      }
    }
  }
  return newest;
}

}  // namespace trainer
