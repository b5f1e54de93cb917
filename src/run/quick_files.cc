#include "quick_files.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/net/weights.h"

namespace trainer {
namespace {

// Returns whether two layers have the same numbers in all blobs.
bool SameBlobs(const caffe::LayerParameter& a, const caffe::LayerParameter& b) {
  return std::ranges::equal(a.blobs(), b.blobs(), [](const auto& x, const auto& y) {
    return std::ranges::equal(x.data(), y.data());
  });
}

}  // namespace

QuickFiles::QuickFiles(const caffe::SolverParameter& solver)
    : prefix_(Join(solver.snapshot_prefix(), "_quick_", getpid())) {}

QuickFiles::~QuickFiles() {
  std::error_code failed;
  std::vector<std::string> files;
  std::filesystem::directory_iterator entry(FolderOf(prefix_), failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    if (entry->path().filename().string().starts_with(FileNameOf(prefix_) + "_")) {
      files.push_back(entry->path().string());
    }
  }
  for (const std::string& file : files) {
    if (FileOps::Posix().Unlink(file) == 0 || errno == ENOENT) continue;
    LOG(WARNING) << EscapeControl(Join("--quick: cannot remove '", file,
                                       "': ", std::strerror(errno), "; remove it yourself"));
  }
}

uint64_t QuickFiles::ReadBack(const Net& net, bool compares) const {
  const std::optional<LoadedState> state = NewestSnapshot(prefix_);
  if (!state) throw Error(ErrorCode::kBadSnapshot, {prefix_}, "the snapshot of --quick is missing");
  const caffe::NetParameter read = ReadModel(state->model_path);
  std::map<std::string, const caffe::LayerParameter*> layers;
  for (const caffe::LayerParameter& layer : read.layer()) layers[layer.name()] = &layer;
  const caffe::NetParameter held = compares ? WeightsOf(net) : caffe::NetParameter();
  for (const caffe::LayerParameter& layer : held.layer()) {
    const auto found = layers.find(layer.name());
    if (layer.blobs_size() == 0) continue;
    if (found != layers.end() && SameBlobs(layer, *found->second)) continue;
    throw Error(ErrorCode::kBadSnapshot, {state->model_path},
                Join("the weights of layer '", layer.name(),
                     "' were read back with other values than the net has"));
  }
  return FileSize(state->path) + FileSize(state->model_path) +
         (state->averaged_path.empty() ? 0 : FileSize(state->averaged_path));
}

}  // namespace trainer
