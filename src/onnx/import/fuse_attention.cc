// Exporters write self-attention with many orders of reshapes and transposes around two products.
// This rule need not know these orders, because it traces where each number moves.

#include <algorithm>
#include <cmath>

#include "import/fuse.h"
#include "import/view_chain.h"

namespace trainer {
namespace {

constexpr int kMaxViews = 16;  // nodes between two products; real models have at most 8

// Describes a matrix product with constant weights, y = x W^T + b. Each row of x is a position.
struct LinearNode {
  const ImportNode* node = nullptr;
  int64_t inputs = 0, outputs = 0;
};

// Describes q, k or v: the product that computes it, and which output of that product each element
// of a head is. The heads follow one another.
struct HeadInput {
  LinearNode linear;
  std::vector<int64_t> columns;  // (heads * size)
  std::vector<int64_t> rows;     // for each position of each item (N * L), the row of the product
  int source = -1;               // the input of the product, (rows..., inputs)
  float factor = 1;
};

struct Sizes {
  int64_t items = 0, steps = 0, heads = 0, size = 0;  // N, L, heads, numbers of a head
  int64_t Width() const { return heads * size; }
};

std::optional<LinearNode> ReadLinear(const ImportGraph& graph, const ImportNode* node) {
  if (node == nullptr || node->op != "Linear") return std::nullopt;
  const Dims& weight = graph.DimsOf(node->inputs[1]);
  const bool transposed = node->Int("transposed", 0) != 0;
  return LinearNode{node, weight[transposed ? 1 : 0], weight[transposed ? 0 : 1]};
}

// Returns weight (output, input) of the product.
float WeightAt(const ImportGraph& graph, const LinearNode& linear, int64_t output, int64_t input) {
  const Constant& weight = *graph.ConstantOf(linear.node->inputs[1]);
  const bool transposed = linear.node->Int("transposed", 0) != 0;
  return weight.floats[static_cast<size_t>(transposed ? output * linear.inputs + input
                                                      : input * linear.outputs + output)];
}

float BiasAt(const ImportGraph& graph, const LinearNode& linear, int64_t output) {
  const Constant* const bias = graph.ConstantOf(linear.node->Input(2));
  return bias == nullptr ? 0 : bias->floats[static_cast<size_t>(output)];
}

// Follows q, k or v to the product that computes it. Returns nothing if something else does.
std::optional<ViewChain> FollowToLinear(ImportGraph& graph, int value) {
  ViewChain chain;
  chain.source = value;
  for (int steps = 0; steps < kMaxViews; ++steps) {
    if (ReadLinear(graph, graph.ProducerOf(chain.source))) return chain;
    const std::optional<ViewChain> longer = ExtendUp(graph, chain);
    if (!longer) return std::nullopt;
    chain = *longer;
  }
  return std::nullopt;
}

// Splits the traced elements of (N * heads, L, D), or (N * heads, D, L) if `turned`, into rows and
// columns of the product. Returns false if a row depends on the index in the head, or a column on
// the position.
bool SplitElements(const Constant& traced, const Sizes& sizes, bool turned, int64_t outputs,
                   HeadInput* to) {
  to->columns.assign(static_cast<size_t>(sizes.Width()), -1);
  to->rows.assign(static_cast<size_t>(sizes.items * sizes.steps), -1);
  for (size_t i = 0; i < traced.ints.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t last = turned ? sizes.steps : sizes.size;
    const int64_t outer = at / (sizes.steps * sizes.size);
    const int64_t a = at / last % (turned ? sizes.size : sizes.steps), b = at % last;
    const int64_t step = turned ? b : a, place = turned ? a : b;
    const int64_t item = outer / sizes.heads, head = outer % sizes.heads;
    int64_t& column = to->columns[static_cast<size_t>(head * sizes.size + place)];
    int64_t& row = to->rows[static_cast<size_t>(item * sizes.steps + step)];
    const int64_t is_column = traced.ints[i] % outputs, is_row = traced.ints[i] / outputs;
    if ((column >= 0 && column != is_column) || (row >= 0 && row != is_row)) return false;
    column = is_column;
    row = is_row;
  }
  return true;
}

std::optional<HeadInput> ReadHeadInput(ImportGraph& graph, int value, const Sizes& sizes,
                                       bool turned) {
  const std::optional<ViewChain> chain = FollowToLinear(graph, value);
  if (!chain) return std::nullopt;
  HeadInput input;
  input.linear = *ReadLinear(graph, graph.ProducerOf(chain->source));
  input.source = input.linear.node->inputs[0];
  input.factor = chain->factor;
  const std::optional<Constant> traced =
      TraceElements(graph, graph.DimsOf(chain->source), chain->steps);
  if (!traced ||
      traced->ints.size() != static_cast<size_t>(sizes.items * sizes.steps * sizes.Width()) ||
      !SplitElements(*traced, sizes, turned, input.linear.outputs, &input)) {
    return std::nullopt;
  }
  return input;
}

// Returns whether the elements are rows of (N, L, C) in the order `rows`.
bool AreRows(const Constant& traced, const std::vector<int64_t>& rows, int64_t width) {
  if (traced.ints.size() != rows.size() * static_cast<size_t>(width)) return false;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t c = 0; c < width; ++c) {
      if (rows[i] < 0 || traced.ints[static_cast<size_t>(rows[i] * width + c)] !=
                             static_cast<int64_t>(i) * width + c) {
        return false;
      }
    }
  }
  return true;
}

// Returns the value (N, L, C) whose rows the product reads in the order `rows`; -1 if no value has
// them.
int FindSequence(ImportGraph& graph, int source, const std::vector<int64_t>& rows,
                 const Dims& wanted) {
  ViewChain chain;
  chain.source = source;
  for (int steps = 0; steps < 8; ++steps) {
    if (graph.DimsOf(chain.source) == wanted) {
      const std::optional<Constant> traced = TraceElements(graph, wanted, chain.steps);
      if (traced && AreRows(*traced, rows, wanted[2])) return chain.source;
    }
    const std::optional<ViewChain> longer = ExtendUp(graph, chain);
    if (!longer || longer->factor != 1) return -1;
    chain = *longer;
  }
  return -1;
}

// Describes the nodes after the second product: the reshapes, the output projection, and the nodes
// after it.
struct AttentionEnd {
  LinearNode linear;
  std::vector<int64_t> columns;  // the input of the product that holds each element of the heads
  int last = -1;                 // node whose output is (N, L, C)
};

// Inverts the map from (N * heads, L, D) to the input of the output projection.
bool ReadEndColumns(const Constant& traced, const Sizes& sizes, AttentionEnd* end,
                    std::vector<int64_t>* rows) {
  const int64_t width = sizes.Width();
  if (traced.ints.size() != static_cast<size_t>(sizes.items * sizes.steps * width)) return false;
  Constant inverse = MakeInts({}, std::vector<int64_t>(traced.ints.size(), -1));
  for (size_t i = 0; i < traced.ints.size(); ++i) {
    inverse.ints[static_cast<size_t>(traced.ints[i])] = static_cast<int64_t>(i);
  }
  HeadInput split;
  for (const int64_t element : inverse.ints) {
    if (element < 0) return false;
  }
  if (!SplitElements(inverse, sizes, false, width, &split)) return false;
  end->columns = split.columns;
  *rows = split.rows;
  return true;
}

std::optional<AttentionEnd> ReadEnd(ImportGraph& graph, int mixed, const Sizes& sizes) {
  std::vector<ViewStep> steps;
  int value = mixed;
  while (const std::optional<ViewStep> step = NextView(graph, value)) {
    if (steps.size() == kMaxViews) return std::nullopt;
    steps.push_back(*step);
    value = graph.node(step->node).outputs[0];
  }
  const std::optional<LinearNode> linear = ReadLinear(graph, graph.SoleConsumerOf(value));
  if (!linear || linear->inputs != sizes.Width() || linear->outputs != sizes.Width()) {
    return std::nullopt;
  }
  AttentionEnd end;
  end.linear = *linear;
  std::vector<int64_t> rows;
  const std::optional<Constant> traced = TraceElements(graph, graph.DimsOf(mixed), steps);
  if (!traced || !ReadEndColumns(*traced, sizes, &end, &rows)) return std::nullopt;
  // The rows must become positions again, either directly or through the nodes after the
  // projection.
  const Dims wanted = {sizes.items, sizes.steps, sizes.Width()};
  value = linear->node->outputs[0];
  end.last = graph.value(value).producer;
  steps.clear();
  for (int count = 0; count < 8; ++count) {
    if (graph.DimsOf(value) == wanted) {
      const std::optional<Constant> order =
          TraceElements(graph, graph.DimsOf(linear->node->outputs[0]), steps);
      bool fits = order.has_value();
      for (size_t i = 0; fits && i < order->ints.size(); ++i) {
        const auto width = static_cast<size_t>(wanted[2]);
        fits = order->ints[i] == rows[i / width] * wanted[2] + static_cast<int64_t>(i % width);
      }
      if (fits) return end;
    }
    const std::optional<ViewStep> step = NextView(graph, value);
    if (!step) return std::nullopt;
    steps.push_back(*step);
    end.last = step->node;
    value = graph.node(step->node).outputs[0];
  }
  return std::nullopt;
}

// Describes the scores before the softmax.
struct AttentionScores {
  const ImportNode* product = nullptr;
  float factor = 1;
  bool causal = false;
};

// Returns whether the constant (..., L, L) is 0 up to the diagonal and very negative after it.
// `dims` is the shape of the scores, (..., L, L).
bool IsCausalMask(const Constant& mask, const Dims& dims) {
  const size_t rank = mask.dims.size();
  if (rank < 2 || rank > dims.size() || !mask.is_float ||
      !std::equal(dims.end() - 2, dims.end(), mask.dims.end() - 2) ||
      dims.back() != dims[dims.size() - 2]) {
    return false;
  }
  const auto length = static_cast<size_t>(dims.back());
  for (size_t i = 0; i < mask.floats.size(); ++i) {
    const size_t row = i / length % length, column = i % length;
    if (column <= row ? mask.floats[i] != 0 : mask.floats[i] > -1e4f) return false;
  }
  return true;
}

std::optional<AttentionScores> ReadScores(ImportGraph& graph, int value) {
  AttentionScores scores;
  for (int steps = 0; steps < 4; ++steps) {
    const ImportNode* const node = graph.ProducerOf(value);
    if (node == nullptr) return std::nullopt;
    if (node->op == "MatMul") {
      scores.product = node;
      return scores;
    }
    if (const auto product = ReadWithNumber(graph, node, "Mul")) {
      scores.factor *= product->number;
      value = product->value;
    } else if (const auto quotient = ReadWithNumber(graph, node, "Div")) {
      scores.factor /= quotient->number;
      value = quotient->value;
    } else {
      const size_t at = node->op == "Add" && graph.ConstantOf(node->inputs[0]) != nullptr ? 0 : 1;
      const Constant* const mask = node->op == "Add" ? graph.ConstantOf(node->inputs[at]) : nullptr;
      if (mask == nullptr || scores.causal || scores.factor != 1 ||
          !IsCausalMask(*mask, graph.DimsOf(node->inputs[1 - at]))) {
        return std::nullopt;
      }
      scores.causal = true;
      value = node->inputs[1 - at];
    }
  }
  return std::nullopt;
}

// Adds the layer's node with its four weight arrays.
void AddAttention(ImportGraph& graph, const ImportNode& softmax, const Sizes& sizes,
                  const HeadInput (&inputs)[3], const AttentionEnd& end, int sequence,
                  bool causal) {
  const int64_t width = sizes.Width();
  Constant in = MakeFloats({3 * width, width}, {}), in_bias = MakeFloats({3 * width}, {});
  for (const HeadInput& input : inputs) {
    for (const int64_t column : input.columns) {
      for (int64_t c = 0; c < width; ++c) {
        in.floats.push_back(WeightAt(graph, input.linear, column, c));
      }
      in_bias.floats.push_back(BiasAt(graph, input.linear, column));
    }
  }
  Constant out = MakeFloats({width, width}, {}), out_bias = MakeFloats({width}, {});
  bool has_bias = end.linear.node->Input(2) >= 0;
  for (int64_t o = 0; o < width; ++o) {
    for (const int64_t column : end.columns) {
      out.floats.push_back(WeightAt(graph, end.linear, o, column));
    }
    out_bias.floats.push_back(BiasAt(graph, end.linear, o));
  }
  for (const HeadInput& input : inputs) has_bias = has_bias || input.linear.node->Input(2) >= 0;
  ImportNode node = MakeReplacement(graph.node(end.last), "MultiHeadAttention", {});
  node.name = softmax.name;
  node.SetInts("heads", {sizes.heads});
  node.SetInts("causal", {causal ? 1 : 0});
  node.inputs.push_back(sequence);
  node.inputs.push_back(graph.AddConstant(node, std::move(in)));
  if (has_bias) node.inputs.push_back(graph.AddConstant(node, std::move(in_bias)));
  node.inputs.push_back(graph.AddConstant(node, std::move(out)));
  if (has_bias) node.inputs.push_back(graph.AddConstant(node, std::move(out_bias)));
  graph.AddNode(std::move(node));
}

// Returns the sizes if the products have the shapes (..., L, D), (..., D, L) and (..., L, D).
std::optional<Sizes> ReadSizes(const ImportGraph& graph, const ImportNode& scores,
                               const ImportNode& mix) {
  const Dims &q = graph.DimsOf(scores.inputs[0]), &k = graph.DimsOf(scores.inputs[1]);
  const Dims& v = graph.DimsOf(mix.inputs[1]);
  const size_t rank = q.size();
  if (rank < 3 || k.size() != rank || v != q || k[rank - 1] != q[rank - 2]) return std::nullopt;
  Sizes sizes;
  sizes.steps = q[rank - 2];
  sizes.size = q[rank - 1];
  sizes.heads = CountOf(std::span(q).first(rank - 2));  // times the items, see FuseSoftmax
  return sizes;
}

bool FuseSoftmax(ImportGraph& graph, int index) {
  const ImportNode& softmax = graph.node(index);
  if (softmax.op != "Softmax") return false;
  const auto rank = static_cast<int64_t>(graph.DimsOf(softmax.inputs[0]).size());
  const int64_t axis = softmax.Int("axis", graph.opset() < 13 ? 1 : -1);
  if (axis != -1 && axis != rank - 1) return false;
  const ImportNode* const mix = graph.SoleConsumerOf(softmax.outputs[0]);
  const std::optional<AttentionScores> scores = ReadScores(graph, softmax.inputs[0]);
  if (!scores || mix == nullptr || mix->op != "MatMul" || mix->inputs[0] != softmax.outputs[0]) {
    return false;
  }
  std::optional<Sizes> sizes = ReadSizes(graph, *scores->product, *mix);
  const std::optional<ViewChain> chain = FollowToLinear(graph, mix->inputs[1]);
  if (!sizes || !chain) return false;
  // The product that computes v must have one row for each position of each item.
  const Dims& product = graph.DimsOf(chain->source);
  const int64_t rows = CountOf(product) / product.back();
  if (rows % sizes->steps != 0) return false;
  sizes->items = rows / sizes->steps;
  if (sizes->heads % sizes->items != 0) return false;
  sizes->heads /= sizes->items;
  const int values[3] = {scores->product->inputs[0], scores->product->inputs[1], mix->inputs[1]};
  HeadInput inputs[3];
  for (int i = 0; i < 3; ++i) {
    const std::optional<HeadInput> input = ReadHeadInput(graph, values[i], *sizes, i == 1);
    if (!input || input->linear.inputs != sizes->Width() ||
        (i > 0 && (input->rows != inputs[0].rows || input->source != inputs[0].source))) {
      return false;
    }
    inputs[i] = *input;
  }
  const float factor = scores->factor * inputs[0].factor * inputs[1].factor;
  const float usual = 1 / std::sqrt(static_cast<float>(sizes->size));
  if (std::fabs(factor - usual) > 1e-4f * usual || inputs[2].factor != 1) return false;
  const int sequence = FindSequence(graph, inputs[0].source, inputs[0].rows,
                                    {sizes->items, sizes->steps, sizes->Width()});
  const std::optional<AttentionEnd> end = ReadEnd(graph, mix->outputs[0], *sizes);
  if (sequence < 0 || !end) return false;
  AddAttention(graph, softmax, *sizes, inputs, *end, sequence, scores->causal);
  return true;
}

}  // namespace

void FuseAttention(ImportGraph& graph) { ApplyRule(graph, FuseSoftmax); }

}  // namespace trainer
