// Computes the shapes that nodes give to arrays, for constants and for values of the net.

#include <algorithm>
#include <set>

#include "import/fold.h"
#include "trainer/base/text/text.h"

namespace trainer {

std::vector<AxisSlice> ReadSlices(const ImportGraph& graph, const ImportNode& node,
                                  const Dims& dims, const Dims& starts, const Dims& ends,
                                  const Dims& axes, const Dims& steps) {
  std::vector<AxisSlice> slices(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) slices[i].count = dims[i];
  if (starts.size() > dims.size() || ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    graph.Refuse(node, "starts, ends, axes and steps have different lengths, or too many values");
  }
  for (size_t k = 0; k < starts.size(); ++k) {
    const auto axis = static_cast<size_t>(AxisOf(graph, node, axes[k], dims.size()));
    const int64_t length = dims[axis], step = steps[k];
    if (step == 0 || step < -INT32_MAX || step > INT32_MAX) {
      graph.Refuse(node, Join("step ", step, " is not possible"));
    }
    // A position before the first or after the last element is clamped to the range.
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
    const auto clamp = [&](int64_t at) {
      return std::clamp(at < 0 ? std::max(at, -length - 1) + length : at, low, high);
    };
    const int64_t first = clamp(starts[k]), last = clamp(ends[k]);
    const int64_t span = step > 0 ? last - first : first - last, size = std::abs(step);
    const int64_t count = span > 0 ? (span + size - 1) / size : 0;
    slices[axis] = {first, count > 1 ? step : 1, count};
  }
  return slices;
}

Dims SplitLengths(const ImportGraph& graph, const ImportNode& node, int64_t length,
                  const std::optional<Dims>& given) {
  Dims lengths;
  if (given) {
    lengths = *given;
  } else {
    const auto parts = static_cast<int64_t>(node.outputs.size());
    const int64_t part = parts > 0 ? (length + parts - 1) / parts : length;
    for (int64_t left = length; left > 0; left -= part) lengths.push_back(std::min(left, part));
  }
  int64_t sum = 0;
  bool wrong = lengths.size() != node.outputs.size();
  for (const int64_t part : lengths) {
    wrong = wrong || part < 0 || part > length - sum;
    sum += wrong ? 0 : part;
  }
  if (wrong || sum != length) {
    graph.Refuse(node, Join("the lengths of its ", node.outputs.size(),
                            " parts do not add up to the ", length, " elements of the axis"));
  }
  return lengths;
}

Dims ReshapedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in,
                  const Dims& shape) {
  Dims dims = shape;
  int inferred = -1;
  int64_t known = 1;
  bool wrong = false;
  for (size_t i = 0; i < dims.size() && !wrong; ++i) {
    if (dims[i] == 0 && node.Int("allowzero", 0) == 0) {
      wrong = i >= in.size();
      if (!wrong) dims[i] = in[i];
    }
    if (dims[i] == -1 && inferred < 0) {
      inferred = static_cast<int>(i);
    } else {
      wrong = wrong || dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known);
    }
  }
  const int64_t count = CountOf(in);
  if (!wrong && inferred >= 0) {
    wrong = known == 0 || count % known != 0;
    if (!wrong) dims[static_cast<size_t>(inferred)] = count / known;
  }
  if (wrong || !AreValidDims(dims) || CountOf(dims) != count) {
    graph.Refuse(node,
                 Join("the shape ", DimsText(shape), " does not fit its input ", DimsText(in)));
  }
  return dims;
}

Dims SqueezedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in,
                  const std::optional<Dims>& axes) {
  std::set<int> removed;
  for (const int64_t axis : axes.value_or(Dims())) {
    removed.insert(AxisOf(graph, node, axis, in.size()));
  }
  Dims dims;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool remove = axes ? removed.contains(static_cast<int>(i)) : in[i] == 1;
    if (remove && in[i] != 1) {
      graph.Refuse(node, Join("axis ", i, " has ", in[i], " elements, so it cannot be removed"));
    }
    if (!remove) dims.push_back(in[i]);
  }
  return dims;
}

Dims UnsqueezedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in,
                    const Dims& axes) {
  const size_t rank = in.size() + axes.size();
  if (rank > 32) graph.Refuse(node, "its result would have more than 32 axes");
  std::set<int> added;
  for (const int64_t axis : axes) added.insert(AxisOf(graph, node, axis, rank));
  if (added.size() != axes.size()) graph.Refuse(node, "axes names an axis twice");
  Dims dims;
  auto next = in.begin();
  for (size_t i = 0; i < rank; ++i) {
    dims.push_back(added.contains(static_cast<int>(i)) ? 1 : *next++);
  }
  return dims;
}

Dims FlattenedDims(const ImportGraph& graph, const ImportNode& node, const Dims& in) {
  int64_t axis = node.Int("axis", 1);
  if (axis != static_cast<int64_t>(in.size())) axis = AxisOf(graph, node, axis, in.size());
  const auto split = static_cast<size_t>(axis);
  return {CountOf(std::span(in).first(split)), CountOf(std::span(in).subspan(split))};
}

Dims BroadcastDims(const ImportGraph& graph, const ImportNode& node, const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      graph.Refuse(node, Join("its inputs ", DimsText(a), " and ", DimsText(b),
                              " cannot be broadcast to one shape"));
    }
    dims[dims.size() - 1 - i] = x == 1 ? y : x;
  }
  if (!AreValidDims(dims)) graph.Refuse(node, "its result is too large for any memory");
  return dims;
}

}  // namespace trainer
