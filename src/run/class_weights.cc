#include "class_weights.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/text/text.h"
#include "trainer/datasets/class_counts.h"
#include "trainer/input/input_files.h"
#include "trainer/metrics/label_consumers.h"
#include "trainer/net/compile.h"
#include "trainer/net/param_store.h"
#include "trainer/run/device.h"

namespace trainer {
namespace {

bool HasPower(const LayerSpec& layer) {
  return layer.proto().loss_param().has_class_weight_power();
}

// Returns whether a net of the solver has a layer with class_weight_power.
bool HasPower(const SolverSpec& spec) {
  return std::ranges::any_of(spec.nets, [](const NetSpec& net) {
    return std::ranges::any_of(net.layers, [](const LayerSpec& layer) { return HasPower(layer); });
  });
}

// Counts the classes of the labels that `use` compares. Throws kConfig at the loss's line if that
// cannot be done or would correct the imbalance twice.
std::vector<int64_t> CountClasses(const Graph& graph, const LabelConsumer& use) {
  const LayerSpec& loss = graph.nodes[NodeId(use.layer)].spec;
  const auto fail = [&](const std::string& message) {
    loss.FailIn("loss_param", "class_weight_power", message);
  };
  if (use.source < 0) {
    fail(
        "class_weight_power needs the labels of a data layer, but layers compute these labels; "
        "write class_weight instead");
  }
  const LayerSpec& data = graph.nodes[NodeId(use.source)].spec;
  const auto files = InputFilesOf(data);
  if (files && files->balanced) {
    fail(Join("layer '", data.name(),
              "' balances the classes already (sampling: BALANCED); remove "
              "one of the two, or write class_weight"));
  }
  const std::map<float, int64_t> labels = CountLabels(data, use.source_top);
  if (labels.empty()) {
    fail(
        Join("class_weight_power counts single labels of Data, ImageData and HDF5Data layers, but "
             "these are output ",
             use.source_top, " of layer '", data.name(), "' (", data.type(),
             "); write class_weight instead"));
  }
  std::vector<int64_t> counts(static_cast<size_t>(use.classes));
  for (const auto& [label, count] : labels) {
    const int index = use.ClassOf(label);  // training reports a label that is not a class
    if (index >= 0) counts[static_cast<size_t>(index)] += count;
  }
  return counts;
}

// Logs the weights of a layer: all of a few classes, else the least and the greatest.
void LogWeights(const LayerSpec& layer, const std::vector<float>& weights) {
  constexpr size_t kShown = 10;
  std::vector<std::string> texts;
  for (const float weight : weights) texts.push_back(Join(weight));
  const auto [least, most] = std::ranges::minmax_element(weights);
  LOG(INFO) << EscapeControl(
      Join("Layer '", layer.name(), "': class_weight_power: ",
           layer.proto().loss_param().class_weight_power(), " gives the class weights ",
           weights.size() <= kShown ? JoinList(texts)
                                    : Join(*least, " (class ", least - weights.begin(), ") to ",
                                           *most, " (class ", most - weights.begin(), ")")));
}

// Returns a net of layers that have only a name and the class_weight of the training net's layer
// with that name.
caffe::NetParameter CountWeights(const SolverSpec& spec) {
  NetOptions options;
  options.state = spec.train.state;
  options.training = true;
  options.log = false;
  options.output_files = OutputFiles::kCheckOnly;
  const std::unique_ptr<Device> device = MakeDevice();
  ParamStore params(*device);
  const auto graph = Compile(*spec.train.net, options, *device, params, SizeLimit::kNone);
  caffe::NetParameter weighted;
  for (const LabelConsumer& use : FindLabelConsumers(*graph)) {
    const LayerSpec& loss = graph->nodes[NodeId(use.layer)].spec;
    if (!HasPower(loss)) continue;
    const std::vector<float> weights = InverseFrequencyWeights(
        CountClasses(*graph, use), loss.proto().loss_param().class_weight_power());
    LogWeights(loss, weights);
    caffe::LayerParameter& layer = *weighted.add_layer();
    layer.set_name(loss.name());
    layer.mutable_loss_param()->mutable_class_weight()->Add(weights.begin(), weights.end());
  }
  return weighted;
}

// Replaces the field in one layer. Throws kConfig if `weighted` has no layer with its name.
void ReplacePower(const caffe::NetParameter& weighted, LayerSpec* layer) {
  const auto found =
      std::ranges::find(weighted.layer(), layer->name(), &caffe::LayerParameter::name);
  if (found == weighted.layer().end()) {
    layer->FailIn(
        "loss_param", "class_weight_power",
        "class_weight_power takes the weights of the training net's loss of the same name, "
        "and there is none; write class_weight instead");
  }
  caffe::LossParameter& loss = *layer->mutable_proto().mutable_loss_param();
  loss.clear_class_weight_power();
  *loss.mutable_class_weight() = found->loss_param().class_weight();
}

}  // namespace

bool ResolveClassWeights(Communicator* ranks, SolverSpec* spec) {
  if (!HasPower(*spec)) return false;
  std::string message;
  if (ranks == nullptr || ranks->rank().rank == 0) {
    message = CountWeights(*spec).SerializeAsString();
  }
  if (ranks != nullptr) message = ranks->BroadcastString(message);
  caffe::NetParameter weighted;
  weighted.ParseFromString(message);
  for (NetSpec& net : spec->nets) {
    for (LayerSpec& layer : net.layers) {
      if (HasPower(layer)) ReplacePower(weighted, &layer);
    }
  }
  return true;
}

}  // namespace trainer
