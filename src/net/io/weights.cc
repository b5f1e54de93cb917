#include "trainer/net/weights.h"

#include <iterator>
#include <map>
#include <set>

#include "trainer/base/process/huge_pages.h"
#include "trainer/base/text/text.h"
#include "trainer/config/blob.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

// Returns what to do about a layer whose blobs do not fit.
std::string Advice(const Node& node, const CopyOptions& options) {
  const std::string place = Join(" (", node.spec.Where().ToString(), "). ");
  if (!options.has_reset) {
    return place + "Use the net of this file, or rename the layer to train it from scratch";
  }
  return Join(place, "Use the net of this file, or train the layer from scratch with --reset=",
              node.spec.name());
}

void CopyBlob(const caffe::BlobProto& proto, const Param& param, const ParamStore& store,
              const Node& node, const std::string& file, int index, const CopyOptions& options) {
  const BlobData blob = ReadBlob(proto, {file}, BlobName(node.spec.name(), index));
  if (!FitsShape(blob, param.shape.dims())) {
    throw Error(
        ErrorCode::kData, {file},
        Join(BlobName(node.spec.name(), index), ": its shape is ", ShapeText(blob.dims),
             " in the file and ", param.shape.ToString(), " in the net", Advice(node, options)));
  }
  store.Import(param, blob.values, param.weight);
}

// Whether the file omits blob `index`, as HDF5 files do for a blob that another layer owns.
bool IsLeftOut(const caffe::LayerParameter& layer, int index) {
  return index >= layer.blobs_size() || layer.blobs(index).ByteSizeLong() == 0;
}

// Whether the file has every blob that the node owns, and not more blobs than the node.
bool IsComplete(const caffe::LayerParameter& layer, const Node& node) {
  const int wanted = static_cast<int>(node.params.size());
  bool complete = layer.blobs_size() <= wanted;
  for (int i = 0; i < wanted; ++i) {
    const Param& param = *node.params[static_cast<size_t>(i)];
    const bool own = param.layer == node.spec.name() && param.index == i;
    complete = complete && !(own && IsLeftOut(layer, i));
  }
  return complete;
}

void CheckBlobs(const caffe::LayerParameter& layer, const Node& node, const std::string& file,
                const CopyOptions& options) {
  if (IsComplete(layer, node)) return;
  throw Error(ErrorCode::kData, {file},
              Join("layer '", layer.name(), "' has ", Counted(layer.blobs_size(), "blob"),
                   " in the file and ", node.params.size(), " in the net", Advice(node, options)));
}

// Returns the first difference of size between the layer in the file and the node, "1000 -> 10", or
// "" if there is none. Sizes are the numbers of outputs if only these differ, else whole shapes.
std::string SizeDifference(const caffe::LayerParameter& layer, const Node& node,
                           const std::string& file) {
  if (!IsComplete(layer, node)) {
    return Join(layer.blobs_size(), " blobs -> ", node.params.size());
  }
  for (int i = 0; i < layer.blobs_size(); ++i) {
    if (IsLeftOut(layer, i)) continue;
    const Shape& shape = node.params[static_cast<size_t>(i)]->shape;
    const BlobData blob = ReadBlob(layer.blobs(i), {file}, BlobName(node.spec.name(), i));
    if (FitsShape(blob, shape.dims())) continue;
    std::vector<int64_t> dims = blob.dims;
    while (std::ssize(dims) > shape.Rank() && dims[0] == 1) dims.erase(dims.begin());
    const bool same_rank = shape.Rank() > 0 && std::ssize(dims) == shape.Rank();
    if (same_rank && std::equal(dims.begin() + 1, dims.end(), shape.dims().begin() + 1)) {
      return Join(dims[0], " -> ", shape[0]);
    }
    return Join(ShapeText(blob.dims), " -> ", shape.ToString());
  }
  return "";
}

// Whether the node is the Input layer for tensors of other stages.
bool IsEdge(const Graph& graph, const Node& node) {
  return std::ranges::any_of(
      graph.boundary_in, [&](ValueId edge) { return !node.out.empty() && node.out[0] == edge; });
}

void ExportValues(const ParamStore& store, const Param& param, const float* from,
                  google::protobuf::RepeatedField<float>* to) {
  const auto count = static_cast<int>(param.count());
  to->Clear();
  if (from == nullptr) return to->Resize(count, 0.0f);
  to->Reserve(count);
  AdviseHugePages(to->mutable_data(), static_cast<size_t>(count) * sizeof(float));
  to->AddNAlreadyReserved(count);
  store.Export(param, from, {to->mutable_data(), static_cast<size_t>(count)});
}

void AddBlob(const Param& param, const ParamStore& store, bool diff, caffe::LayerParameter& layer) {
  caffe::BlobProto* blob = layer.add_blobs();
  ExportBlob(store, param, param.weight, blob);
  if (diff) ExportValues(store, param, param.grad, blob->mutable_diff());
}

}  // namespace

void ExportBlob(const ParamStore& store, const Param& param, const float* device_values,
                caffe::BlobProto* blob) {
  for (const int64_t dim : param.shape.dims()) blob->mutable_shape()->add_dim(dim);
  ExportValues(store, param, device_values, blob->mutable_data());
}

caffe::NetParameter WeightsOf(const Net& net, bool diff) {
  caffe::NetParameter proto;
  WeightsTo(net, diff, &proto);
  return proto;
}

void WeightsTo(const Net& net, bool diff, caffe::NetParameter* proto) {
  proto->Clear();
  proto->set_name(net.graph().name);
  for (const Node& node : net.graph().nodes) {
    if (node.is_cast || IsEdge(net.graph(), node)) continue;
    caffe::LayerParameter* layer = proto->add_layer();
    *layer = node.spec.proto();
    layer->clear_blobs();
    for (const Param* param : node.params) AddBlob(*param, net.store(), diff, *layer);
  }
}

LoadReport CopyWeights(const caffe::NetParameter& source, const std::string& file, Net& net,
                       const CopyOptions& options) {
  LoadReport report;
  std::map<std::string, const Node*> targets;
  for (const Node& node : net.graph().nodes) targets.emplace(node.spec.name(), &node);
  std::map<std::string, bool> found;
  for (const caffe::LayerParameter& stored : source.layer()) {
    const auto target = targets.find(stored.name());
    if (target == targets.end()) {
      if (stored.blobs_size() > 0) report.unused.push_back(stored.name());
      continue;
    }
    if (!found.emplace(stored.name(), true).second || stored.blobs_size() == 0) continue;
    const Node& node = *target->second;
    const std::string& name = stored.name();
    if (options.keeps && options.keeps(name)) {
      report.kept.push_back({name, ""});
      continue;
    }
    caffe::LayerParameter adapted;
    const caffe::LayerParameter& layer =
        node.layer->AdaptBlobs(stored, file, &adapted) ? adapted : stored;
    const std::string sizes =
        name == options.may_differ ? SizeDifference(layer, node, file) : std::string();
    if (!sizes.empty()) {
      report.kept.push_back({name, sizes});
      continue;
    }
    CheckBlobs(layer, node, file, options);
    for (int i = 0; i < layer.blobs_size(); ++i) {
      if (IsLeftOut(layer, i)) continue;
      CopyBlob(layer.blobs(i), *node.params[static_cast<size_t>(i)], net.store(), node, file, i,
               options);
    }
    report.loaded.push_back(name);
  }
  for (const Node& node : net.graph().nodes) {
    const std::string& name = node.spec.name();
    const bool known = std::ranges::count(report.loaded, name) > 0 ||
                       std::ranges::count(report.kept, name, &LoadReport::Kept::layer) > 0;
    if (!node.params.empty() && !known) report.missing.push_back(name);
  }
  return report;
}

std::vector<std::string> WeightMismatches(const caffe::NetParameter& source,
                                          const std::string& file, const Net& net) {
  std::vector<std::string> differences;
  std::map<std::string, const caffe::LayerParameter*> given;
  for (const caffe::LayerParameter& layer : source.layer()) given.emplace(layer.name(), &layer);
  std::set<std::string> wanted;
  for (const Node& node : net.graph().nodes) {
    const std::string& name = node.spec.name();
    if (node.params.empty()) continue;
    wanted.insert(name);
    const auto found = given.find(name);
    const caffe::LayerParameter& layer =
        found == given.end() ? caffe::LayerParameter::default_instance() : *found->second;
    if (!IsComplete(layer, node)) {
      differences.push_back(layer.blobs_size() == 0
                                ? Join("layer '", name, "' is not in the file")
                                : Join("layer '", name, "' has ",
                                       Counted(layer.blobs_size(), "blob"), " in the file and ",
                                       node.params.size(), " in the net"));
      continue;
    }
    for (int i = 0; i < layer.blobs_size(); ++i) {
      if (IsLeftOut(layer, i)) continue;
      const Shape& shape = node.params[static_cast<size_t>(i)]->shape;
      const BlobData blob = ReadBlob(layer.blobs(i), {file}, BlobName(name, i));
      if (FitsShape(blob, shape.dims())) continue;
      differences.push_back(Join(BlobName(name, i), " has the shape ", ShapeText(blob.dims),
                                 " in the file and ", shape.ToString(), " in the net"));
    }
  }
  for (const auto& [name, layer] : given) {
    if (layer->blobs_size() > 0 && !wanted.contains(name)) {
      differences.push_back(Join("the net has no layer '", name, "'"));
    }
  }
  return differences;
}

}  // namespace trainer
