#include "trainer/net/load_weights.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/text/text.h"
#include "trainer/net/weights.h"

namespace trainer {
namespace {

void AddNew(std::span<const std::string> names, std::vector<std::string>* to) {
  for (const std::string& name : names) {
    if (std::ranges::find(*to, name) == to->end()) to->push_back(name);
  }
}

std::vector<std::string> LayersWithBlobs(const caffe::NetParameter& model) {
  std::vector<std::string> names;
  for (const caffe::LayerParameter& layer : model.layer()) {
    if (layer.blobs_size() > 0) names.push_back(layer.name());
  }
  return names;
}

// "1 layer", "3 layers"
std::string Layers(size_t count) { return Join(count, count == 1 ? " layer" : " layers"); }

// "a, b, c and 40 more"
std::string FirstNames(std::span<const std::string> names) {
  constexpr size_t kShown = 8;
  if (names.size() <= kShown) return JoinList(names);
  return Join(JoinList(names.first(kShown)), " and ", names.size() - kShown, " more");
}

}  // namespace

void WeightLoader::Copy(const caffe::NetParameter& model, const std::string& file) {
  std::set<std::string> wanted;
  for (Net* net : nets_) {
    const LoadReport report = CopyWeights(model, file, *net);
    wanted.insert(report.loaded.begin(), report.loaded.end());
    AddNew(report.loaded, &with_weights_);
    AddNew(report.missing, &with_weights_);
  }
  const std::vector<std::string> given = LayersWithBlobs(model);
  if (wanted.empty()) {
    throw Error(ErrorCode::kData, {file},
                Join("no layer name in this file matches a layer of the net, so no weights can be "
                     "loaded. The file has: ",
                     given.empty() ? "no weights at all" : FirstNames(given), ". The net has: ",
                     with_weights_.empty() ? "no weights in the chosen phase, level and stage"
                                           : FirstNames(with_weights_)));
  }
  LOG(INFO) << EscapeControl(Join("Loaded ", Layers(wanted.size()), " from ", file));
  std::vector<std::string> unused;
  for (const std::string& name : given) {
    if (!wanted.contains(name)) unused.push_back(name);
  }
  if (!unused.empty()) {
    LOG(INFO) << EscapeControl(
        Join("Ignoring source layers (", unused.size(), ") of ", file, ": ", FirstNames(unused)));
  }
  loaded_.merge(wanted);
}

void WeightLoader::Finish() const {
  std::vector<std::string> missing;
  for (const std::string& name : with_weights_) {
    if (!loaded_.contains(name)) missing.push_back(name);
  }
  if (missing.empty()) return;
  LOG(WARNING) << EscapeControl(
      Join(Layers(missing.size()), " of the net ", missing.size() == 1 ? "is" : "are",
           " not in the given weights files and will be initialised by the fillers: ",
           FirstNames(missing)));
}

}  // namespace trainer
