// Imports Resize, Upsample and Pad. Along each axis, the result is a matrix times the input. A
// layer that computes the same replaces the matrix where such a layer exists.

#include <algorithm>
#include <cmath>

#include "import/importers.h"
#include "import/infer.h"
#include "import/layer_helpers.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr float kMaxPadValue = 100;

// Describes how a Resize node maps an output to a position in the input, and which inputs it mixes.
struct ResizeRule {
  std::string mode, place, nearest;
  float cubic = -0.75f;
  bool excludes_outside = false;

  // Returns the position in the input of output i.
  double PositionOf(int64_t i, int64_t in, int64_t out, double factor) const {
    const auto x = static_cast<double>(i);
    if (place == "align_corners") {
      return out == 1 ? 0 : x * static_cast<double>(in - 1) / static_cast<double>(out - 1);
    }
    if (place == "asymmetric") return x / factor;
    if (place == "pytorch_half_pixel" && out == 1) return 0;
    if (place == "half_pixel_symmetric") {
      // The centres of input and output coincide, even if the factor does not give whole pixels.
      const double adjustment = static_cast<double>(out) / (factor * static_cast<double>(in));
      const double center = static_cast<double>(in) / 2;
      return center * (1 - adjustment) + (x + 0.5) / factor - 0.5;
    }
    return (x + 0.5) / factor - 0.5;
  }
};

ResizeRule ReadResizeRule(const NetBuilder& net, const ImportNode& node) {
  ResizeRule rule;
  // Before opset 11, Resize used the mode "asymmetric" and rounded down.
  const bool old = net.graph().opset() < 11;
  rule.mode = node.Text("mode", "nearest");
  rule.place = node.Text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  rule.nearest = node.Text("nearest_mode", old ? "floor" : "round_prefer_floor");
  rule.cubic = node.Float("cubic_coeff_a", -0.75f);
  rule.excludes_outside = node.Int("exclude_outside", 0) != 0;
  bool known = false;
  for (const char* place : {"align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel",
                            "half_pixel_symmetric"}) {
    known = known || rule.place == place;
  }
  if (!known || node.Int("antialias", 0) != 0 ||
      (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic")) {
    net.graph().Refuse(node,
                       Join("mode ", rule.mode, " with ", rule.place,
                            " or antialias cannot be imported; use nearest, linear or cubic"));
  }
  return rule;
}

int64_t NearestIndex(const ResizeRule& rule, double position) {
  if (rule.nearest == "floor") return static_cast<int64_t>(std::floor(position));
  if (rule.nearest == "ceil") return static_cast<int64_t>(std::ceil(position));
  if (rule.nearest == "round_prefer_ceil") return static_cast<int64_t>(std::floor(position + 0.5));
  return static_cast<int64_t>(std::ceil(position - 0.5));
}

// Returns the weight of the input at `distance` in Keys' cubic convolution.
double CubicWeight(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

AxisMatrix ResizeMatrix(const NetBuilder& net, const ImportNode& node, const ResizeRule& rule,
                        int64_t in, int64_t out, double factor) {
  AxisMatrix matrix = ZeroMatrix(net, node, out, in);
  const auto at = [&](int64_t row, int64_t column) -> float& {
    return matrix.values[static_cast<size_t>(row * in + std::clamp<int64_t>(column, 0, in - 1))];
  };
  for (int64_t i = 0; i < out; ++i) {
    const double position = rule.PositionOf(i, in, out, factor);
    const auto before = static_cast<int64_t>(std::floor(position));
    const double share = position - static_cast<double>(before);
    if (rule.mode == "nearest") {
      at(i, NearestIndex(rule, position)) = 1;
    } else if (rule.mode == "linear") {
      at(i, before) += static_cast<float>(1 - share);
      at(i, before + 1) += static_cast<float>(share);
    } else {
      double weights[4], sum = 0;
      for (int k = 0; k < 4; ++k) {
        const int64_t column = before - 1 + k;
        const bool drops = rule.excludes_outside && (column < 0 || column >= in);
        weights[k] = drops ? 0 : CubicWeight(share + 1 - k, rule.cubic);
        sum += weights[k];
      }
      for (int k = 0; k < 4; ++k) {
        at(i, before - 1 + k) += static_cast<float>(weights[k] / sum);
      }
    }
  }
  return matrix;
}

// Returns whether each row has a single 1, in column i / factor.
bool RepeatsPixels(const AxisMatrix& matrix, int64_t factor) {
  if (matrix.rows != matrix.columns * factor) return false;
  for (int64_t i = 0; i < matrix.rows; ++i) {
    if (matrix.values[static_cast<size_t>(i * matrix.columns + i / factor)] != 1) return false;
  }
  return true;
}

// Repeats each pixel by a Deconvolution that applies a kernel of ones to each channel.
int RepeatPixels(NetBuilder& net, const ImportNode& node, int x, const Dims& out) {
  const Dims in = net.DimsOf(x);
  const int64_t down = out[2] / in[2], right = out[3] / in[3];
  const NetBuilder::NewLayer added = net.Add(node, "Deconvolution", {x}, out);
  caffe::ConvolutionParameter* const param = added.layer->mutable_convolution_param();
  param->set_num_output(static_cast<uint32_t>(in[1]));
  param->set_group(static_cast<uint32_t>(in[1]));
  param->set_bias_term(false);
  param->set_kernel_h(static_cast<uint32_t>(down));
  param->set_kernel_w(static_cast<uint32_t>(right));
  param->set_stride_h(static_cast<uint32_t>(down));
  param->set_stride_w(static_cast<uint32_t>(right));
  CheckMadeNumbers(net, node, in[1] * down * right);
  const std::vector<float> ones(static_cast<size_t>(in[1] * down * right), 1.0f);
  net.AddWeight(node, added, {in[1], 1, down, right}, ones);
  net.KeepWeights(added, 1);
  return added.top;
}

void ImportResize(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  int top = net.BlobOf(node, 0);
  const Dims in = net.DimsOf(top), out = graph.DimsOf(node.outputs[0]);
  const ResizeRule rule = ReadResizeRule(net, node);
  const std::vector<double> factors = ResizeFactors(graph, node);
  const bool images = in.size() == 4 && in[0] == out[0] && in[1] == out[1];
  if (images && rule.mode == "linear" && rule.place == "align_corners") {
    const NetBuilder::NewLayer added = net.Add(node, "Interp", {top}, out);
    added.layer->mutable_interp_param()->set_height(static_cast<int32_t>(out[2]));
    added.layer->mutable_interp_param()->set_width(static_cast<int32_t>(out[3]));
    return net.SetOutput(node, 0, added.top);
  }
  std::vector<AxisMatrix> matrices(in.size());
  bool repeats = images, resizes = false;
  for (size_t axis = 0; axis < in.size(); ++axis) {
    if (in[axis] == out[axis] && factors[axis] == 1) continue;
    resizes = true;
    matrices[axis] = ResizeMatrix(net, node, rule, in[axis], out[axis], factors[axis]);
    repeats = repeats && RepeatsPixels(matrices[axis], out[axis] / in[axis]);
  }
  if (repeats && resizes) return net.SetOutput(node, 0, RepeatPixels(net, node, top, out));
  for (size_t axis = in.size(); axis-- > 0;) {
    if (matrices[axis].rows == 0) continue;
    if (axis == 0) graph.Refuse(node, "it resizes the batch");
    top = MultiplyAxis(net, node, top, axis, matrices[axis], Join("axis", axis));
  }
  net.SetOutput(node, 0, top);
}

// Returns the index of the input that position `i` copies, where position 0 is the first input; -1
// for the constant value.
int64_t PaddedIndex(const std::string& mode, int64_t i, int64_t in) {
  if (i >= 0 && i < in) return i;
  if (mode == "constant") return -1;
  if (mode == "edge") return i < 0 ? 0 : in - 1;
  if (mode == "wrap") return (i % in + in) % in;
  const int64_t period = std::max<int64_t>(2 * (in - 1), 1), at = (i % period + period) % period;
  return at < in ? at : period - at;
}

void ImportPad(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  int top = net.BlobOf(node, 0);
  const Dims in = net.DimsOf(top), pads = PadsOf(graph, node);
  const std::string mode = node.Text("mode", "constant");
  float value = node.Float("value", 0);
  if (node.Input(2) >= 0 && graph.opset() >= 11) {
    const std::optional<float> given = graph.NumberOf(node.inputs[2]);
    if (!given) graph.Refuse(node, "the value that it pads with is not a constant number");
    value = *given;
  }
  if (mode != "constant") value = 0;
  // A large value would lose the digits of the others when it is added and subtracted again.
  if (!(std::fabs(value) <= kMaxPadValue) ||
      (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")) {
    graph.Refuse(node, Join("padding of mode ", mode, " with ", value, " has no layer"));
  }
  // Padding is zeros, so subtracting the value before it and adding it afterwards pads with the
  // value.
  if (value != 0) top = net.Power(node, top, 1, -value, 1, "shift");
  for (size_t axis = in.size(); axis-- > 0;) {
    const int64_t before = pads[axis], after = pads[in.size() + axis];
    if (before == 0 && after == 0) continue;
    if (axis == 0) graph.Refuse(node, "it pads the batch");
    if (before <= 0 && after <= 0) {
      top = SlicePart(net, node, top, axis, -before, in[axis] + before + after, "crop");
      continue;
    }
    AxisMatrix matrix = ZeroMatrix(net, node, in[axis] + before + after, in[axis]);
    for (int64_t i = 0; i < matrix.rows; ++i) {
      const int64_t from = PaddedIndex(mode, i - before, in[axis]);
      if (from >= 0) matrix.values[static_cast<size_t>(i * in[axis] + from)] = 1;
    }
    top = MultiplyAxis(net, node, top, axis, matrix, Join("axis", axis));
  }
  if (value != 0) top = net.Power(node, top, 1, value, 1, "back");
  net.SetOutput(node, 0, top);
}

}  // namespace

void AddResizeImporters(NodeImporters* all) {
  (*all)["Resize"] = (*all)["Upsample"] = ImportResize;
  (*all)["Pad"] = ImportPad;
}

}  // namespace trainer
