#include "trainer/net/data_layers.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "trainer/base/log/log.h"

namespace trainer {
namespace {

std::vector<DataLayer*> DataLayersOf(const Net& net) {
  std::vector<DataLayer*> layers;
  for (const Node& node : net.graph().nodes) {
    DataLayer* const layer = node.layer->data_layer();
    if (layer != nullptr) layers.push_back(layer);
  }
  return layers;
}

// The node of the first data layer, or null.
const Node* FirstDataNode(const Net& net) {
  const auto& nodes = net.graph().nodes;
  const auto found =
      std::ranges::find_if(nodes, [](const Node& n) { return n.layer->data_layer() != nullptr; });
  return found == nodes.end() ? nullptr : &*found;
}

bool CanBeSharded(const Node& node) {
  if (node.has_dynamic_shape || node.signature.state_bytes > 0) return false;
  if (node.spec.proto().phase() != caffe::TEST) return false;  // a BatchNorm moves its averages
  if (node.signature.writes_files) return false;
  return node.layer->SaveState().empty() || node.layer->data_layer() != nullptr;
}

// Returns the layer without the order of its records, which a count does not need: a shuffled
// database reads all keys to find it.
LayerSpec InStoredOrder(LayerSpec layer) {
  caffe::LayerParameter& proto = layer.mutable_proto();
  if (proto.has_data_param()) proto.mutable_data_param()->clear_shuffle();
  if (proto.has_image_data_param()) proto.mutable_image_data_param()->clear_shuffle();
  return layer;
}

}  // namespace

void WaitForBatches(const Net& net, int passes) {
  for (DataLayer* const layer : DataLayersOf(net)) layer->WaitForBatches(passes);
}

void ReduceBadRecords(const Net& net, const std::function<void(std::span<float>)>& all_reduce) {
  std::vector<DataLayer*> layers = DataLayersOf(net);
  std::erase_if(layers, [](const DataLayer* layer) { return !layer->SkipsBadRecords(); });
  if (layers.empty()) return;
  std::vector<float> bad;
  for (DataLayer* const layer : layers) bad.push_back(static_cast<float>(layer->TakeBadRecords()));
  if (all_reduce) all_reduce(bad);
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i]->AddBadRecords(static_cast<int64_t>(bad[i]));
  }
}

bool ShardTestBatches(Net& net, const TestShard& shard) {
  if (net.graph().options.training || !std::ranges::all_of(net.graph().nodes, CanBeSharded))
    return false;
  if (shard.rank < shard.period) SetTestShard(net, shard);
  return true;
}

void SetTestShard(Net& net, const TestShard& shard) {
  for (DataLayer* const layer : DataLayersOf(net)) layer->SetTestShard(shard);
}

std::map<std::string, InputCounters> CountersOfDataLayers(const Net& net) {
  std::map<std::string, InputCounters> counters;
  for (const Node& node : net.graph().nodes) {
    const DataLayer* const layer = node.layer->data_layer();
    if (layer != nullptr) counters.emplace(node.spec.name(), layer->counters());
  }
  return counters;
}

double SecondsWaitedForData(const Net& net) {
  double seconds = 0;
  for (const DataLayer* const layer : DataLayersOf(net)) {
    seconds += layer->counters().wait_seconds + layer->counters().first_wait_seconds;
  }
  return seconds;
}

int64_t CountLayerRecords(const LayerSpec& layer) {
  if (layer.proto().memory_data_param().source() == "-") return 0;
  const WarningsOnly warnings;  // the layer logs its lines again when the net is made
  LayerEnv env;
  env.reading.phase = caffe::TRAIN;
  const std::unique_ptr<Layer> made = MakeLayer(InStoredOrder(layer), env);
  DataLayer* const data = made->data_layer();
  return data == nullptr ? 0 : data->CountRecords(true);
}

int64_t EpochOf(const Net& net) {
  const Node* const node = FirstDataNode(net);
  return node == nullptr ? -1 : node->layer->data_layer()->epoch();
}

int64_t RecordsPerPass(const Net& net) {
  const Node* const node = FirstDataNode(net);
  if (node == nullptr) return 0;
  const Shape& shape = net.graph().values[node->out[0]].shape;
  return shape.Rank() == 0 ? 1 : shape[0];
}

}  // namespace trainer
