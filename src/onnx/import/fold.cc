// Folds nodes that move or choose the numbers of constants. fold_math.cc folds nodes that compute.

#include "import/fold.h"

#include "import/infer.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The largest number of elements in a result. A few bytes of a model must not make the importer
// allocate more.
constexpr int64_t kMaxFolded = int64_t{1} << 27;

}  // namespace

const Constant& FoldContext::In(size_t i) const {
  if (i >= inputs.size() || inputs[i] == nullptr) {
    graph.Refuse(node, Join("input ", i, " is missing; the file is damaged"));
  }
  return *inputs[i];
}

const Dims& FoldContext::Integers(size_t i) const {
  if (In(i).is_float) graph.Refuse(node, Join("input ", i, " must be integers, not floats"));
  return In(i).ints;
}

void FoldContext::CheckDims(const Dims& dims) const {
  if (!AreValidDims(dims) || CountOf(dims) > kMaxFolded) {
    graph.Refuse(node, Join("it would compute a constant of the shape ", DimsText(dims),
                            ", which is not possible"));
  }
}

int FoldContext::Axis(int64_t axis, size_t rank) const { return AxisOf(graph, node, axis, rank); }

Dims StepsOf(const Dims& dims) {
  Dims steps(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) steps[i - 1] = steps[i] * dims[i];
  return steps;
}

int64_t Dot(const Dims& dims, const Dims& steps, int64_t index) {
  int64_t at = 0;
  for (size_t i = dims.size(); i-- > 0; index /= dims[i]) at += index % dims[i] * steps[i];
  return at;
}

Constant FoldTranspose(const FoldContext& c) {
  const Constant& x = c.In(0);
  const Dims steps = StepsOf(x.dims);
  Dims dims, moved;
  for (const int64_t axis : OrderOf(c.graph, c.node)) {
    dims.push_back(x.dims[static_cast<size_t>(axis)]);
    moved.push_back(steps[static_cast<size_t>(axis)]);
  }
  return SelectBySteps(x, dims, moved);
}

Constant FoldReshape(const FoldContext& c, Dims dims) {
  c.CheckDims(dims);
  Constant y = c.In(0);
  if (CountOf(dims) != static_cast<int64_t>(y.Count())) {
    c.graph.Refuse(
        c.node, Join("the shape ", DimsText(dims), " does not fit its input ", DimsText(y.dims)));
  }
  y.dims = std::move(dims);
  return y;
}

Constant FoldGather(const FoldContext& c) {
  const Constant& x = c.In(0);
  const Constant& indices = c.In(1);
  const auto axis = static_cast<size_t>(c.Axis(c.node.Int("axis", 0), x.dims.size()));
  Dims dims(x.dims.begin(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.dims.end());
  c.CheckDims(dims);
  Dims chosen = c.Integers(1);
  for (int64_t& index : chosen) {
    if (index < -x.dims[axis] || index >= x.dims[axis]) {
      c.graph.Refuse(c.node, Join("index ", index, " does not exist; the axis has ", x.dims[axis],
                                  " elements"));
    }
    if (index < 0) index += x.dims[axis];
  }
  int64_t inner = 1;
  for (size_t i = axis + 1; i < x.dims.size(); ++i) inner *= x.dims[i];
  const auto count = static_cast<int64_t>(chosen.size());
  return SelectElements(x, dims, [&](int64_t i) {
    const int64_t row = i / inner, outer = row / count;
    return (outer * x.dims[axis] + chosen[static_cast<size_t>(row % count)]) * inner + i % inner;
  });
}

Constant FoldConcat(const FoldContext& c) {
  const size_t rank = c.In(0).dims.size();
  const auto axis = static_cast<size_t>(c.Axis(c.node.Int("axis", 0), rank));
  Constant y;
  y.dims = c.In(0).dims;
  y.is_float = c.In(0).is_float;
  for (size_t k = 1; k < c.inputs.size(); ++k) {
    const Constant& x = c.In(k);
    Dims other = x.dims;
    if (other.size() == rank) other[axis] = y.dims[axis];
    if (other != y.dims || x.is_float != y.is_float) {
      c.graph.Refuse(c.node, Join("input ", k, " does not fit the ones before it"));
    }
    y.dims[axis] += x.dims[axis];
    c.CheckDims(y.dims);
  }
  if (CountOf(y.dims) == 0) return y;
  const auto rows = static_cast<size_t>(CountOf(std::span(y.dims).first(axis)));
  const auto append = [&](const auto& from, size_t row, auto& to) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(from.size() / rows * row);
    to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(from.size() / rows));
  };
  std::vector<const Constant*> parts(c.inputs.begin(), c.inputs.end());
  std::erase_if(parts, [](const Constant* part) { return part->Count() == 0; });
  for (size_t row = 0; row < rows; ++row) {
    for (const Constant* part : parts) {
      append(part->floats, row, y.floats);
      append(part->ints, row, y.ints);
    }
  }
  return y;
}

Constant FoldSlice(const FoldContext& c) {
  const Constant& x = c.In(0);
  Dims dims, steps = StepsOf(x.dims);
  int64_t first = 0;
  for (const AxisSlice& slice : SlicesOf(c.graph, c.node)) {
    int64_t& step = steps[dims.size()];
    first += slice.start * step;
    step *= slice.step;
    dims.push_back(slice.count);
  }
  return SelectBySteps(x, dims, steps, first);
}

std::vector<Constant> FoldSplit(const FoldContext& c) {
  const Constant& x = c.In(0);
  const auto axis = static_cast<size_t>(c.Axis(c.node.Int("axis", 0), x.dims.size()));
  const Dims lengths =
      SplitLengths(c.graph, c.node, x.dims[axis], IntsOf(c.graph, c.node, "split", 1));
  int64_t inner = 1, start = 0;
  for (size_t i = axis + 1; i < x.dims.size(); ++i) inner *= x.dims[i];
  std::vector<Constant> parts;
  for (const int64_t length : lengths) {
    Dims dims = x.dims;
    dims[axis] = length;
    parts.push_back(SelectElements(x, dims, [&](int64_t i) {
      const int64_t outer = i / (inner * length);
      return (outer * x.dims[axis] + start) * inner + i % (inner * length);
    }));
    start += length;
  }
  return parts;
}

Constant FoldExpand(const FoldContext& c, const Dims& dims) {
  const Constant& x = c.In(0);
  c.CheckDims(dims);
  return SelectBySteps(x, dims, BroadcastSteps(x.dims, dims));
}

Constant FoldTile(const FoldContext& c) {
  const Constant& x = c.In(0);
  const Dims& repeats = c.Integers(1);
  Dims dims = x.dims;
  if (repeats.size() != dims.size()) c.graph.Refuse(c.node, "repeats must name each axis once");
  for (size_t i = 0; i < dims.size(); ++i) {
    if (__builtin_mul_overflow(dims[i], repeats[i], &dims[i])) dims[i] = -1;
  }
  c.CheckDims(dims);
  const Dims steps = StepsOf(x.dims);
  return SelectElements(x, dims, [&](int64_t i) {
    int64_t at = 0;
    for (size_t k = dims.size(); k-- > 0; i /= dims[k]) at += i % dims[k] % x.dims[k] * steps[k];
    return at;
  });
}

Dims BroadcastSteps(const Dims& dims, const Dims& wide) {
  const Dims own = StepsOf(dims);
  Dims steps(wide.size(), 0);
  const size_t skip = wide.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1) steps[skip + i] = own[i];
  }
  return steps;
}

}  // namespace trainer
