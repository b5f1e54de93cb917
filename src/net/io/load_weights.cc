#include "trainer/net/load_weights.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/text/text.h"
#include "trainer/config/name_pattern.h"

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

}  // namespace

void WeightLoader::ForTraining(const std::vector<std::string>& reset) {
  std::vector<std::string> names;
  for (const Net* net : nets_) {
    for (const Node& node : net->graph().nodes) {
      if (!node.params.empty()) names.push_back(node.spec.name());
    }
    if (net == nets_.front() && !names.empty()) options_.may_differ = names.back();
  }
  options_.has_reset = true;
  std::vector<NamePattern> patterns;
  for (const std::string& text : reset) {
    const NamePattern& pattern = patterns.emplace_back(text, Join("--reset=", text));
    const bool known =
        std::ranges::any_of(names, [&](const auto& name) { return pattern.Matches(name); });
    if (known) continue;
    throw Error(ErrorCode::kUsage,
                EscapeControl(Join("--reset=", text, ": ", NoMatch(text, names),
                                   IsPattern(text) ? "; the" : " The", " layers with weights are ",
                                   FirstNames(names))));
  }
  if (patterns.empty()) return;
  options_.keeps = [patterns](const std::string& layer) {
    return std::ranges::any_of(patterns, [&](const auto& one) { return one.Matches(layer); });
  };
}

std::string WeightLoader::net_file() const {
  for (const Node& node : nets_.front()->graph().nodes) return node.spec.Where().file;
  return "";
}

void WeightLoader::Copy(const caffe::NetParameter& model, const std::string& file) {
  std::set<std::string> wanted;
  bool any_kept = false;
  for (Net* net : nets_) {
    const LoadReport report = CopyWeights(model, file, *net, options_);
    for (const LoadReport::Kept& kept : report.kept) kept_[kept.layer] = kept.sizes;
    any_kept = any_kept || !report.kept.empty();
    wanted.insert(report.loaded.begin(), report.loaded.end());
    AddNew(report.loaded, &with_weights_);
    AddNew(report.missing, &with_weights_);
  }
  const std::vector<std::string> given = LayersWithBlobs(model);
  if (wanted.empty() && !any_kept) {
    throw Error(ErrorCode::kData, {file},
                Join("no layer name in this file matches a layer of the net, so no weights can be "
                     "loaded. The file has: ",
                     given.empty() ? "no weights at all" : FirstNames(given), ". The net has: ",
                     with_weights_.empty() ? "no weights in the chosen phase, level and stage"
                                           : FirstNames(with_weights_)));
  }
  LOG(INFO) << EscapeControl(Join("Loaded ", Counted(wanted.size(), "layer"), " from ", file));
  std::vector<std::string> unused;
  for (const std::string& name : given) {
    if (!wanted.contains(name) && !kept_.contains(name)) unused.push_back(name);
  }
  if (!unused.empty()) {
    LOG(INFO) << EscapeControl(
        Join("Ignoring source layers (", unused.size(), ") of ", file, ": ", FirstNames(unused)));
  }
  loaded_.merge(wanted);
}

// Logs how many blobs of the first net the files had, and which layers keep the values of their
// fillers. A difference in size is a warning, because the user did not ask for it; --reset is not.
void WeightLoader::ReportKept() const {
  std::vector<std::string> layers;
  bool differs = false;
  for (const auto& [name, sizes] : kept_) {
    if (loaded_.contains(name)) continue;
    layers.push_back(Join(name, ": ", sizes.empty() ? "reset" : sizes));
    differs = differs || !sizes.empty();
  }
  if (layers.empty()) return;
  size_t all = 0, transferred = 0;
  for (const Node& node : nets_.front()->graph().nodes) {
    all += node.params.size();
    if (loaded_.contains(node.spec.name())) transferred += node.params.size();
  }
  const std::string text = EscapeControl(Join("transferred ", transferred, " of ", all, " blobs; ",
                                              FirstNames(layers), " (initialised by the fillers)"));
  if (differs) {
    LOG(WARNING) << text;
  } else {
    LOG(INFO) << text;
  }
}

std::vector<std::string> WeightLoader::Missing() const {
  std::vector<std::string> missing;
  for (const std::string& name : with_weights_) {
    if (!loaded_.contains(name) && !kept_.contains(name)) missing.push_back(name);
  }
  return missing;
}

void WeightLoader::Finish() const {
  ReportKept();
  const std::vector<std::string> missing = Missing();
  if (missing.empty()) return;
  LOG(WARNING) << EscapeControl(
      Join(Counted(missing.size(), "layer"), " of the net ", missing.size() == 1 ? "is" : "are",
           " not in the given weights files and will be initialised by the fillers: ",
           FirstNames(missing)));
}

}  // namespace trainer
