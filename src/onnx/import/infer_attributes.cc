#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/infer.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the shape of the first input. Throws if the input is left out.
const Dims& FirstDims(const ImportGraph& graph, const ImportNode& node) {
  if (node.Input(0) < 0) graph.Refuse(node, "its input is missing; the file is damaged");
  return graph.DimsOf(node.inputs[0]);
}

// Returns the floats of a constant input, or an empty list if it is left out. Throws if the input
// is not a constant.
std::vector<float> FloatsOf(const ImportGraph& graph, const ImportNode& node, size_t input) {
  const int value = node.Input(input);
  if (value < 0) return {};
  const Constant* const constant = graph.ConstantOf(value);
  if (constant == nullptr || !constant->is_float) {
    graph.Refuse(node, Join("its input ", input,
                            " is not a constant; a net has fixed sizes: export the model with "
                            "fixed sizes"));
  }
  return constant->floats;
}

// Expands values for the axes in `axes` to all axes.
template <class T>
std::vector<T> ForAllAxes(const ImportGraph& graph, const ImportNode& node, size_t rank,
                          const std::vector<T>& values, std::vector<T> all) {
  const Dims axes = node.Ints("axes");
  if (axes.empty() && values.size() == rank) return values;
  if (axes.size() != values.size()) {
    graph.Refuse(node, Join("it gives ", values.size(), " numbers for ", rank, " axes"));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    all[static_cast<size_t>(AxisOf(graph, node, axes[i], rank))] = values[i];
  }
  return all;
}

}  // namespace

std::vector<AxisSlice> SlicesOf(const ImportGraph& graph, const ImportNode& node) {
  const Dims& in = FirstDims(graph, node);
  const std::optional<Dims> starts = IntsOf(graph, node, "starts", 1);
  const std::optional<Dims> ends = IntsOf(graph, node, "ends", 2);
  if (!starts || !ends) graph.Refuse(node, "starts or ends are missing; the file is damaged");
  Dims axes = IntsOf(graph, node, "axes", 3).value_or(Dims());
  if (axes.empty()) {
    axes.resize(starts->size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  const Dims steps = IntsOf(graph, node, "steps", 4).value_or(Dims(starts->size(), 1));
  return ReadSlices(graph, node, in, *starts, *ends, axes, steps);
}

Dims OrderOf(const ImportGraph& graph, const ImportNode& node) {
  const size_t rank = FirstDims(graph, node).size();
  Dims order = node.Ints("perm");
  if (order.empty()) {
    order.resize(rank);
    std::iota(order.rbegin(), order.rend(), 0);
  }
  std::vector<bool> used(rank, false);
  for (int64_t& axis : order) {
    axis = AxisOf(graph, node, axis, rank);
    used[static_cast<size_t>(axis)] = true;
  }
  if (order.size() != rank || std::ranges::count(used, true) != static_cast<int64_t>(rank)) {
    graph.Refuse(node,
                 Join("perm ", DimsText(order), " does not name each of ", rank, " axes once"));
  }
  return order;
}

Dims PadsOf(const ImportGraph& graph, const ImportNode& node) {
  const size_t rank = FirstDims(graph, node).size();
  const Dims given = IntsOf(graph, node, "pads", 1).value_or(Dims());
  const Dims axes = IntsOf(graph, node, "axes", 3).value_or(Dims());
  Dims pads(2 * rank, 0);
  if (axes.empty() && given.size() == 2 * rank) pads = given;
  if (given.size() != 2 * (axes.empty() ? rank : axes.size())) {
    graph.Refuse(node, Join("pads has ", given.size(), " values for ", rank, " axes"));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(AxisOf(graph, node, axes[i], rank));
    pads[axis] = given[i];
    pads[rank + axis] = given[axes.size() + i];
  }
  for (const int64_t pad : pads) {
    if (pad > INT32_MAX || pad < -INT32_MAX)
      graph.Refuse(node, Join("a padding of ", pad, " is too large"));
  }
  return pads;
}

std::vector<double> ResizeFactors(const ImportGraph& graph, const ImportNode& node) {
  const Dims& in = FirstDims(graph, node);
  // Upsample, and Resize before opset 11, read the factors from input 1.
  std::vector<float> given = node.Floats("scales");
  if (given.empty()) given = FloatsOf(graph, node, node.inputs.size() > 2 ? 2 : 1);
  if (!given.empty()) {
    const std::vector<float> all =
        ForAllAxes(graph, node, in.size(), given, std::vector<float>(in.size(), 1.0f));
    return {all.begin(), all.end()};
  }
  const std::optional<Dims> sizes = IntsOf(graph, node, "sizes", 3);
  if (!sizes) graph.Refuse(node, "neither factors nor sizes are given; the file is damaged");
  const Dims all = ForAllAxes(graph, node, in.size(), *sizes, in);
  std::vector<double> factors;
  for (size_t i = 0; i < in.size(); ++i) {
    factors.push_back(static_cast<double>(all[i]) / static_cast<double>(in[i]));
  }
  return factors;
}

Dims ResizedDims(const ImportGraph& graph, const ImportNode& node) {
  const Dims in = FirstDims(graph, node);
  const int sizes = node.Input(3);
  if (node.Text("keep_aspect_ratio_policy", "stretch") != "stretch") {
    graph.Refuse(node, "keep_aspect_ratio_policy is not imported; export with fixed sizes");
  }
  if (graph.ConstantOf(sizes) != nullptr && graph.ConstantOf(sizes)->Count() > 0) {
    const std::optional<Dims> given = IntsOf(graph, node, "sizes", 3);
    return ForAllAxes(graph, node, in.size(), *given, in);
  }
  const std::vector<double> factors = ResizeFactors(graph, node);
  Dims out;
  for (size_t i = 0; i < in.size(); ++i) {
    // The runtimes multiply in float, where 0.7 * 10 is 7, so this rounds to float before it rounds
    // down.
    const float length = std::floor(static_cast<float>(static_cast<double>(in[i]) * factors[i]));
    if (!(length >= 1 && length < 1e9)) {
      graph.Refuse(node, Join("a factor of ", factors[i], " is not possible"));
    }
    out.push_back(static_cast<int64_t>(length));
  }
  return out;
}

std::vector<bool> ReducedAxes(const ImportGraph& graph, const ImportNode& node) {
  const size_t rank = FirstDims(graph, node).size();
  std::vector<bool> reduced(rank, false);
  if (node.op == "ArgMax") {
    reduced[static_cast<size_t>(AxisOf(graph, node, node.Int("axis", 0), rank))] = true;
    return reduced;
  }
  const Dims axes = IntsOf(graph, node, "axes", 1).value_or(Dims());
  if (axes.empty() && node.Int("noop_with_empty_axes", 0) == 0) reduced.assign(rank, true);
  for (const int64_t axis : axes) {
    reduced[static_cast<size_t>(AxisOf(graph, node, axis, rank))] = true;
  }
  return reduced;
}

}  // namespace trainer
