#include "import/net_builder.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/config/blob.h"

namespace trainer {

NetBuilder::NetBuilder(ImportGraph& graph) : graph_(graph) {
  for (const int input : graph.inputs()) {
    const ImportValue& value = graph.value(input);
    caffe::LayerParameter* const layer = net_.add_layer();
    layer->set_name(names_.Unique(EscapeControl(value.name)));
    layer->set_type("Input");
    layer->add_top(layer->name());
    caffe::BlobShape* const shape = layer->mutable_input_param()->add_shape();
    for (const int64_t dim : value.dims) shape->add_dim(dim);
    const int blob = NewBlob(layer->name(), value.dims);
    blobs_.back().is_pinned = true;
    blob_of_value_[input] = blob;
  }
}

// Copies `dims`, because callers pass the shape of another blob, whose address may change.
int NetBuilder::NewBlob(const std::string& name, Dims dims) {
  blobs_.emplace_back();
  blobs_.back().name = name;
  blobs_.back().dims = std::move(dims);
  return static_cast<int>(blobs_.size()) - 1;
}

int NetBuilder::BlobOf(const ImportNode& node, size_t input) const {
  const int value = node.Input(input);
  if (value < 0) graph_.Refuse(node, Join("its input ", input, " is missing"));
  const auto found = blob_of_value_.find(value);
  if (found != blob_of_value_.end()) return found->second;
  graph_.Refuse(node, Join("its input ", input, " ('", graph_.value(value).name,
                           "') is a constant, which no layer for this operator can read"));
}

void NetBuilder::SetOutput(const ImportNode& node, size_t i, int blob) {
  if (i >= node.outputs.size() || node.outputs[i] < 0) return;
  const ImportValue& value = graph_.value(node.outputs[i]);
  Blob& to = blobs_[static_cast<size_t>(blob)];
  if (to.dims != value.dims) {
    graph_.Refuse(node, Join("the layers for it give the shape ", DimsText(to.dims), ", not ",
                             DimsText(value.dims), "; this is a defect of the program"));
  }
  to.is_pinned = to.is_pinned || value.is_output || value.consumers.size() > 1;
  blob_of_value_[node.outputs[i]] = blob;
}

NetBuilder::NewLayer NetBuilder::Add(const ImportNode& node, const std::string& type,
                                     const std::vector<int>& bottoms, const Dims& dims,
                                     const std::string& suffix) {
  caffe::LayerParameter* const layer = net_.add_layer();
  layer->set_name(names_.Choose(graph_, node, suffix));
  layer->set_type(type);
  for (const int bottom : bottoms) layer->add_bottom(blobs_[static_cast<size_t>(bottom)].name);
  layer->add_top(layer->name());
  return {layer, NewBlob(layer->name(), dims)};
}

int NetBuilder::AddTop(const NewLayer& to, const Dims& dims, const std::string& suffix) {
  const std::string name = names_.Unique(to.layer->name() + "_" + suffix);
  to.layer->add_top(name);
  return NewBlob(name, dims);
}

NetBuilder::NewLayer NetBuilder::AddUnary(const ImportNode& node, const std::string& type,
                                          int bottom, const std::string& suffix) {
  const Dims dims = DimsOf(bottom);
  NewLayer added = Add(node, type, {bottom}, dims, suffix);
  Blob& from = blobs_[static_cast<size_t>(bottom)];
  if (from.is_pinned || from.is_overwritten) return added;
  from.is_overwritten = true;
  added.layer->set_top(0, from.name);
  blobs_[static_cast<size_t>(added.top)].name = from.name;
  return added;
}

bool NetBuilder::Share(int blob) {
  Blob& shared = blobs_[static_cast<size_t>(blob)];
  shared.is_pinned = true;
  return !shared.is_overwritten;
}

void NetBuilder::AddWeight(const ImportNode& node, const NewLayer& to, const Dims& dims,
                           std::span<const float> values) {
  graph_.CountFolded(node, values.size());
  for (const float value : values) {
    if (!std::isfinite(value)) graph_.Refuse(node, "a weight is infinite or not a number");
  }
  caffe::LayerParameter*& layer = weights_of_[to.layer->name()];
  if (layer == nullptr) {
    layer = weights_.add_layer();
    layer->set_name(to.layer->name());
    layer->set_type(to.layer->type());
  }
  WriteBlob(dims, values, layer->add_blobs());
}

void NetBuilder::KeepWeights(const NewLayer& to, int arrays) {
  for (int i = 0; i < arrays; ++i) {
    caffe::ParamSpec* const param = to.layer->add_param();
    param->set_lr_mult(0);
    param->set_decay_mult(0);
  }
}

int NetBuilder::SourceOf(int blob, bool permuted) {
  const Blob& from = blobs_[static_cast<size_t>(blob)];
  if (from.source < 0 || from.order.empty() == permuted) return -1;
  Blob& source = blobs_[static_cast<size_t>(from.source)];
  if (source.is_overwritten) return -1;
  source.is_pinned = true;  // one more layer reads it
  return from.source;
}

void NetBuilder::AddReshapeDims(const Dims& from, const Dims& to,
                                caffe::LayerParameter* layer) const {
  const size_t last = to.empty() ? 0 : to.size() - 1;
  if (last > 0 && to.size() < from.size() &&
      std::equal(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(last), from.begin())) {
    layer->set_type("Flatten");
    if (last > 1) layer->mutable_flatten_param()->set_axis(static_cast<int32_t>(last));
    return;
  }
  caffe::BlobShape* const shape = layer->mutable_reshape_param()->mutable_shape();
  // Copies the batch from the bottom, so that the net works with any batch size.
  const bool copies = !from.empty() && !to.empty() && from[0] == to[0];
  for (size_t i = 0; i < to.size(); ++i) shape->add_dim(i == 0 && copies ? 0 : to[i]);
}

int NetBuilder::Reshape(const ImportNode& node, int blob, const Dims& dims,
                        const std::string& suffix) {
  if (const int source = SourceOf(blob, false); source >= 0) blob = source;
  if (DimsOf(blob) == dims) return blob;
  const NewLayer added = Add(node, "Reshape", {blob}, dims, suffix);
  AddReshapeDims(DimsOf(blob), dims, added.layer);
  blobs_[static_cast<size_t>(added.top)].source = blob;
  return added.top;
}

int NetBuilder::Permute(const ImportNode& node, int blob, const Dims& order,
                        const std::string& suffix) {
  Dims whole = order;
  const Dims before = blobs_[static_cast<size_t>(blob)].order;
  if (const int source = SourceOf(blob, true); source >= 0) {
    for (int64_t& axis : whole) axis = before[static_cast<size_t>(axis)];
    blob = source;
  }
  if (std::ranges::is_sorted(whole)) return blob;
  const Dims& from = DimsOf(blob);
  Dims to, moved;  // `moved` holds the axes longer than 1, in their new order
  for (const int64_t axis : whole) {
    to.push_back(from[static_cast<size_t>(axis)]);
    if (to.back() != 1) moved.push_back(axis);
  }
  if (std::ranges::is_sorted(moved) && from[0] == to[0]) return Reshape(node, blob, to, suffix);
  const NewLayer added = Add(node, "Permute", {blob}, to, suffix);
  for (const int64_t axis : whole) {
    added.layer->mutable_permute_param()->add_order(static_cast<uint32_t>(axis));
  }
  Blob& top = blobs_[static_cast<size_t>(added.top)];
  top.source = blob;
  top.order = whole;
  return added.top;
}

int NetBuilder::Power(const ImportNode& node, int blob, float scale, float shift, float power,
                      const std::string& suffix) {
  const NewLayer added = AddUnary(node, "Power", blob, suffix);
  caffe::PowerParameter* const param = added.layer->mutable_power_param();
  if (scale != 1) param->set_scale(scale);
  if (shift != 0) param->set_shift(shift);
  if (power != 1) param->set_power(power);
  return added.top;
}

void NetBuilder::RemoveUnused(caffe::NetParameter* net) const {
  std::set<std::string> needed;
  for (const int output : graph_.outputs()) {
    const auto found = blob_of_value_.find(output);
    if (found != blob_of_value_.end()) {
      needed.insert(blobs_[static_cast<size_t>(found->second)].name);
    }
  }
  std::vector<caffe::LayerParameter> kept;
  for (int i = net_.layer_size(); i-- > 0;) {
    const caffe::LayerParameter& layer = net_.layer(i);
    const bool wanted = std::ranges::any_of(
        layer.top(), [&](const std::string& top) { return needed.contains(top); });
    if (!wanted && layer.type() != "Input") continue;
    needed.insert(layer.bottom().begin(), layer.bottom().end());
    kept.push_back(layer);
  }
  for (size_t i = kept.size(); i-- > 0;) *net->add_layer() = std::move(kept[i]);
}

void NetBuilder::SilenceUnused(caffe::NetParameter* net) {
  std::set<std::string> read;
  for (const int output : graph_.outputs()) {
    read.insert(blobs_[static_cast<size_t>(blob_of_value_.at(output))].name);
  }
  for (const caffe::LayerParameter& layer : net->layer()) {
    read.insert(layer.bottom().begin(), layer.bottom().end());
  }
  caffe::LayerParameter silence;
  for (const caffe::LayerParameter& layer : net->layer()) {
    for (const std::string& top : layer.top()) {
      if (!read.contains(top)) silence.add_bottom(top);
    }
  }
  if (silence.bottom_size() == 0) return;
  silence.set_name(names_.Unique("unused"));
  silence.set_type("Silence");
  *net->add_layer() = silence;
}

ImportedNet NetBuilder::Finish() {
  ImportedNet imported;
  for (const int output : graph_.outputs()) {
    const auto found = blob_of_value_.find(output);
    if (found == blob_of_value_.end()) {
      throw Error(ErrorCode::kData, {graph_.path()},
                  EscapeControl(Join("the output '", graph_.value(output).name,
                                     "' does not depend on any input, so it needs no net")));
    }
    const std::string& blob = blobs_[static_cast<size_t>(found->second)].name;
    imported.outputs[graph_.value(output).name] = blob;
    if (imported.first_output.empty()) imported.first_output = blob;
  }
  RemoveUnused(&imported.net);
  SilenceUnused(&imported.net);
  std::set<std::string> layers;
  for (const caffe::LayerParameter& layer : imported.net.layer()) layers.insert(layer.name());
  for (caffe::LayerParameter& layer : *weights_.mutable_layer()) {
    if (layers.contains(layer.name())) imported.weights.add_layer()->Swap(&layer);
  }
  imported.notes = std::move(notes_);
  return imported;
}

}  // namespace trainer
