#include "trainer/layers/setup_context.h"

#include <algorithm>

#include "trainer/base/text/text.h"

namespace trainer {

bool NodeSignature::AgreesWith(const NodeSignature& other) const {
  const auto same = [](const Output& a, const Output& b) {
    return a.dtype == b.dtype && a.view_of == b.view_of && a.persists == b.persists &&
           a.kept == b.kept;
  };
  return in == other.in && std::ranges::equal(out, other.out, same) && in_place == other.in_place &&
         state_bytes == other.state_bytes && constants == other.constants;
}

SetupContext::SetupContext(const LayerSpec& spec, bool training,
                           std::span<const Shape* const> shapes, std::span<const DType> types,
                           size_t outputs, bool is_frozen)
    : spec_(spec), training_(training), is_frozen_(is_frozen), shapes_(shapes), types_(types) {
  signature_.in.resize(shapes.size());
  signature_.out.resize(outputs);
}

void SetupContext::Output(int i, const Shape& shape, DType dtype) {
  NodeSignature::Output& out = OutputOf(i);
  out.shape = shape;
  out.dtype = dtype;
  out.view_of = -1;
  if (shape.Count() > 0) return;
  spec_.Fail(Join("output '", spec_.proto().top(i), "' would be empty: shape ", shape.ToString()));
}

void SetupContext::OutputView(int i, int j, const Shape& shape) {
  if (shape.Count() != Input(j).Count()) {
    spec_.Fail(Join("output shape ", shape.ToString(),
                    " has a different number of values than the input ", Input(j).ToString()));
  }
  Output(i, shape, InputType(j));
  OutputOf(i).view_of = j;
}

void SetupContext::AllowInPlace() {
  signature_.in_place = true;
  signature_.grad_in_place = 0;
}

int SetupContext::Param(std::string_view name, const Shape& shape,
                        const caffe::FillerParameter& filler, const ParamOptions& options) {
  const bool is_bias = name.find("bias") != std::string_view::npos;
  signature_.params.push_back({shape, filler, options, is_bias || name == "scale"});
  return static_cast<int>(signature_.params.size()) - 1;
}

void SetupContext::Scratch(size_t bytes) {
  signature_.needs.scratch = std::max(signature_.needs.scratch, bytes);
}

void SetupContext::Constants(std::span<const float> values) {
  signature_.constants.assign(values.begin(), values.end());
}

void PrepareContext::Scratch(size_t bytes) { needs_.scratch = std::max(needs_.scratch, bytes); }

}  // namespace trainer
