#include "local_data.h"

#include <glog/logging.h>

#include <functional>
#include <map>
#include <optional>

#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/config/epochs.h"
#include "trainer/input/input_files.h"
#include "trainer/storage/path_redirects.h"

namespace trainer {
namespace {

// The data sets that nets read, by name, each with the function that copies it.
using Sources = std::map<std::string, std::function<std::unique_ptr<LocalCopy>()>>;

// Adds the function that copies the files which `layer` reads. It also redirects readers of a
// database to the copy. Adds nothing for layers without files and for window lists.
void AddSource(const LayerSpec& layer, const LocalCopyOptions& options, Sources* sources) {
  const std::optional<InputFiles> files = InputFilesOf(layer);
  if (!files || files->path.empty()) return;
  const std::string path = files->path, root = files->root;
  switch (files->kind) {
    case InputFiles::Kind::kDatabase:
      (*sources)[path] = [=] {
        auto copy = CopyDatabaseLocally(path, options);
        if (copy != nullptr) RedirectPath(path, copy->path());
        return copy;
      };
      break;
    case InputFiles::Kind::kTar:
      (*sources)[path] = [=] { return CopyTarShardsLocally(path, options); };
      break;
    case InputFiles::Kind::kHdf5List:
      (*sources)[path] = [=] { return CopyHdf5ListLocally(path, options); };
      break;
    case InputFiles::Kind::kImageList:
      (*sources)[Join(path, " below ", root)] = [=] {
        return CopyImageListLocally(path, root, options);
      };
      break;
    case InputFiles::Kind::kWindowList:
      break;
  }
}

// Calls AddSource for the layers that remain after the net's filter by phase, level and stage.
void AddSources(const NetUse& use, const LocalCopyOptions& options, Sources* sources) {
  for (const LayerSpec& layer : FilterLayers(*use.net, use.state)) {
    AddSource(layer, options, sources);
  }
}

// Returns whether --resume=auto will find a finished run, which needs no copy. Loads a snapshot
// only if the name of the newest one already has the last iteration. The last iteration of a run
// whose length is in epochs is not known here.
bool IsFinished(bool resumes, const SolverSpec& spec) {
  if (UsesEpochs(spec.proto)) return false;
  const std::vector<SnapshotNames> snapshots = FindSnapshots(spec.proto.snapshot_prefix());
  const auto is_last = [&](int iter) { return iter >= spec.proto.max_iter(); };
  if (!resumes || snapshots.empty() || !is_last(snapshots.front().iter)) return false;
  const std::optional<LoadedState> newest = NewestSnapshot(spec.proto.snapshot_prefix());
  return newest && is_last(newest->state.iter());
}

}  // namespace

std::vector<std::unique_ptr<LocalCopy>> CopyDataLocally(const SolverSource& solver,
                                                        const LocalCopyOptions& options,
                                                        bool resumes) {
  std::vector<std::unique_ptr<LocalCopy>> copies;
  if (options.folder == "off") return copies;
  Sources sources;
  bool finished = false;
  ErrorCollector reported_later;
  reported_later.Try([&] {
    const SolverSpec spec = ReadSolver(solver);
    AddSources(spec.train, options, &sources);
    for (const NetUse& test : spec.tests) AddSources(test, options, &sources);
    finished = IsFinished(resumes, spec);
  });
  if (finished) return copies;
  for (const auto& [name, copy_set] : sources) {
    if (auto copy = copy_set()) copies.push_back(std::move(copy));
  }
  LOG_IF(INFO, sources.empty() && reported_later.empty())
      << "--local_copy has no effect: no layer reads a database, tar files or a list of files";
  return copies;
}

}  // namespace trainer
