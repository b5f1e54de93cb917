#include "local_data.h"

#include <glog/logging.h>

#include <functional>
#include <map>
#include <optional>

#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/input/source.h"
#include "trainer/storage/path_redirects.h"

namespace trainer {
namespace {

// The data sets that nets read, by name, each with the function that copies it.
using Sources = std::map<std::string, std::function<std::unique_ptr<LocalCopy>()>>;

void AddSource(const LayerSpec& layer, const LocalCopyOptions& options, Sources* sources) {
  const auto find = [&](const std::string& path) { return ResolvePath(path, layer.Where().file); };
  const caffe::DataParameter& data = layer.proto().data_param();
  const caffe::ImageDataParameter& images = layer.proto().image_data_param();
  const std::string& rows = layer.proto().hdf5_data_param().source();
  if (layer.type() == "Data" && data.backend() == caffe::DataParameter::TAR) {
    if (data.source().empty()) return;
    const std::string tar = DatabasePath(layer);
    (*sources)[tar] = [=] { return CopyTarShardsLocally(tar, options); };
  } else if (layer.type() == "Data" && !data.source().empty()) {
    const std::string path = find(data.source());
    (*sources)[path] = [=] {
      auto copy = CopyDatabaseLocally(path, options);
      if (copy != nullptr) RedirectPath(path, copy->path());
      return copy;
    };
  } else if (layer.type() == "HDF5Data" && !rows.empty()) {
    const std::string list = find(rows);
    (*sources)[list] = [=] { return CopyHdf5ListLocally(list, options); };
  } else if (layer.type() == "ImageData" && !images.source().empty()) {
    const std::string list = find(images.source()), root = images.root_folder();
    (*sources)[Join(list, " below ", root)] = [=] {
      return CopyImageListLocally(list, root, options);
    };
  }
}

void AddSources(const NetUse& use, const LocalCopyOptions& options, Sources* sources) {
  for (const LayerSpec& layer : FilterLayers(*use.net, use.state)) {
    AddSource(layer, options, sources);
  }
}

// Whether --resume=auto will find a finished run, which needs no copy.
bool IsFinished(bool resumes, const SolverSpec& spec) {
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
