#include "export/layer_export.h"

#include <utility>

#include "export/net_export.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::map<std::string, ExportRule>& MutableRules() {
  static std::map<std::string, ExportRule> rules;
  return rules;
}

}  // namespace

int64_t FreeShape::Count(int from, int to) const {
  int64_t count = 1;
  for (int axis = from; axis < to; ++axis) count *= (*this)[axis];
  return count;
}

FreeShape FreeShape::Merged(int from, int to) const {
  FreeShape merged;
  for (int axis = 0; axis <= Rank(); ++axis) {
    if (axis == from) {
      merged.dims.push_back(Count(from, to));
      merged.free.push_back(false);
      for (int i = from; i < to; ++i) merged.free.back() = merged.free.back() || IsFree(i);
    }
    if (axis == Rank() || (axis >= from && axis < to)) continue;
    merged.dims.push_back((*this)[axis]);
    merged.free.push_back(IsFree(axis));
  }
  return merged;
}

const LayerSpec& LayerExport::spec() const { return net_.in_.nodes[node_].spec; }
GraphWriter& LayerExport::graph() const { return net_.writer_; }

int LayerExport::NumInputs() const { return static_cast<int>(net_.in_.nodes[node_].in.size()); }
int LayerExport::NumOutputs() const { return static_cast<int>(net_.in_.nodes[node_].out.size()); }

std::string LayerExport::In(int i) const {
  return net_.NameOf(net_.in_.nodes[node_].in[static_cast<size_t>(i)]);
}

std::optional<FloatArray> LayerExport::ConstantIn(int i) const {
  const ValueId id = net_.in_.nodes[node_].in[static_cast<size_t>(i)];
  if (!net_.constants_.contains(id)) return std::nullopt;
  return net_.ReadConstant(id);
}

const FreeShape& LayerExport::InShape(int i) const {
  return net_.axes_.shapes[net_.in_.nodes[node_].in[static_cast<size_t>(i)]];
}

const FreeShape& LayerExport::OutShape(int i) const {
  return net_.axes_.shapes[net_.in_.nodes[node_].out[static_cast<size_t>(i)]];
}

int LayerExport::NumParams() const { return static_cast<int>(net_.in_.nodes[node_].params.size()); }

std::vector<int64_t> LayerExport::ParamDims(int i) const {
  const Shape& shape = net_.in_.nodes[node_].params[static_cast<size_t>(i)]->shape;
  return {shape.dims().begin(), shape.dims().end()};
}

FloatArray LayerExport::ReadParam(int i) const {
  return ReadWeights(net_.net_, *net_.in_.nodes[node_].params[static_cast<size_t>(i)]);
}

std::string LayerExport::Param(int i, std::string_view role) const {
  std::string& name = net_.params_[net_.in_.nodes[node_].params[static_cast<size_t>(i)]];
  if (name.empty()) name = Constant(ReadParam(i), role);
  return name;
}

std::string LayerExport::Constant(const FloatArray& array, std::string_view role) const {
  return graph().Floats(array.values, array.dims, Join(spec().name(), ".", role));
}

std::optional<ChannelAffine> LayerExport::FoldedLayers() const {
  const std::vector<NodeId>& followers = net_.folding_.FollowersOf(node_);
  if (followers.empty()) return std::nullopt;
  return net_.folding_.Combine(net_.net_, followers);
}

void LayerExport::Set(int i, const std::string& value) const {
  const std::vector<NodeId>& followers = net_.folding_.FollowersOf(node_);
  const Node& last = net_.in_.nodes[followers.empty() ? node_ : followers.back()];
  const ValueId out = last.out[static_cast<size_t>(i)];
  const std::string name = net_.TargetName(out);
  net_.names_[out] = graph().Rename(value, name) ? name : value;
}

std::string LayerExport::Reshape(const std::string& x, const FreeShape& from,
                                 const FreeShape& to) const {
  std::vector<int64_t> dims;
  bool infers = false;
  const bool merges_free = from.NumFree() > 1 && to.NumFree() == 1;
  for (int axis = 0; axis < to.Rank(); ++axis) {
    if (!to.IsFree(axis)) {
      dims.push_back(to[axis]);
    } else if (!merges_free && axis < from.Rank() && from.IsFree(axis) && from[axis] == to[axis]) {
      dims.push_back(0);  // copies the length
    } else if (!std::exchange(infers, true)) {
      dims.push_back(-1);
    } else {
      Refuse("it changes several axes whose lengths depend on the batch size; give --batch=fixed");
    }
  }
  return graph().Reshape(x, dims);
}

int64_t LayerExport::FixedLength(const FreeShape& shape, int axis) const {
  if (!shape.IsFree(axis)) return shape[axis];
  Refuse(Join("the length of its axis ", axis, " depends on the batch size; give --batch=fixed"));
}

std::string LayerExport::Length(const std::string& x, const FreeShape& shape, int axis) const {
  if (!shape.IsFree(axis)) return graph().Ints({shape[axis]});
  return graph().Slice(graph().Add("Shape", {x}), 0, axis, axis + 1);
}

void LayerExport::Refuse(const std::string& why) const {
  spec().Fail(Join("cannot be exported to ONNX: ", why));
}

void LayerExport::RefuseIn(std::string_view param, std::string_view field,
                           const std::string& why) const {
  spec().FailIn(param, field, Join("cannot be exported to ONNX: ", why));
}

const std::map<std::string, ExportRule>& ExportRules() { return MutableRules(); }

RegisterExport::RegisterExport(std::initializer_list<const char*> types, const ExportRule& rule) {
  for (const char* type : types) MutableRules()[type] = rule;
}

}  // namespace trainer
