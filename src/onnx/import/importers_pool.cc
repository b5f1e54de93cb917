#include <algorithm>
#include <optional>

#include "import/importers.h"
#include "import/layer_helpers.h"
#include "import/window.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Describes how a Pooling layer computes the windows of a node along one axis. With padding `pad`
// at both ends it computes `made` windows, and a Slice drops the first `skip`.
struct AxisPooling {
  int64_t pad = 0, skip = 0, made = 0;
};

constexpr int64_t kMaxSkippedWindows = 64;

// Returns the number of windows that a Pooling layer computes.
int64_t PoolWindows(int64_t in, int64_t kernel, int64_t stride, int64_t pad, bool ceil, bool clip) {
  const int64_t room = in + 2 * pad - kernel;
  int64_t out = room < 0 ? 0 : (room + (ceil ? stride - 1 : 0)) / stride + 1;
  if (clip && (out - 1) * stride >= in + pad) --out;
  return out;
}

// Finds a padding with which a Pooling layer computes the windows of the node. Padding beyond the
// node's own shifts the first window by whole strides.
std::optional<AxisPooling> FindPooling(const ImportWindow& window, size_t axis, bool ceil,
                                       bool clip) {
  const int64_t kernel = window.kernel[axis], stride = window.stride[axis];
  for (int64_t skip = 0; skip < kMaxSkippedWindows; ++skip) {
    const int64_t pad = window.pad_begin[axis] + skip * stride;
    if (pad >= kernel) break;
    const int64_t made = PoolWindows(window.in[axis], kernel, stride, pad, ceil, clip);
    if (made >= skip + window.out[axis]) return AxisPooling{pad, skip, made};
  }
  return std::nullopt;
}

struct PoolingChoice {
  bool ceil = false;
  std::vector<AxisPooling> axes;
};

// Returns how a Pooling layer computes the node, preferably without extra windows.
PoolingChoice ChoosePooling(const NetBuilder& net, const ImportNode& node,
                            const ImportWindow& window) {
  std::optional<PoolingChoice> best;
  int64_t best_extra = 0;
  for (const bool ceil : {false, true}) {
    // Padding along one axis clips the last window along the other axis, too.
    for (const bool clip : {false, true}) {
      PoolingChoice choice{ceil, {}};
      int64_t extra = 0;
      bool pads = false;
      for (size_t axis = 0; axis < window.in.size(); ++axis) {
        const std::optional<AxisPooling> found = FindPooling(window, axis, ceil, clip);
        if (!found) break;
        extra += found->made - window.out[axis];
        pads = pads || found->pad > 0;
        choice.axes.push_back(*found);
      }
      if (choice.axes.size() < window.in.size() || pads != clip) continue;
      if (best && extra >= best_extra) continue;
      best = choice;
      best_extra = extra;
    }
  }
  if (!best) {
    net.graph().Refuse(
        node, Join("padding of ", window.pad_begin[0], " and ", window.pad_end[0],
                   " for windows of ", window.kernel[0], " has no counterpart in a Pooling layer"));
  }
  return *best;
}

// Returns, for each window along an axis, the divisor of the Pooling layer divided by the node's
// divisor.
std::vector<float> DivisorRatios(const ImportWindow& window, size_t axis,
                                 const AxisPooling& pooling, bool counts_padding) {
  std::vector<float> ratios;
  const int64_t in = window.in[axis], kernel = window.kernel[axis];
  for (int64_t i = 0; i < window.out[axis]; ++i) {
    const int64_t start = i * window.stride[axis] - window.pad_begin[axis];
    const int64_t layer = std::min(start + kernel, in + pooling.pad) - start;
    const int64_t padded = std::min(start + kernel, in + window.pad_end[axis]) - start;
    const int64_t inside = std::min(start + kernel, in) - std::max<int64_t>(start, 0);
    ratios.push_back(static_cast<float>(layer) /
                     static_cast<float>(std::max<int64_t>(counts_padding ? padded : inside, 1)));
  }
  return ratios;
}

void SetPooling(const ImportWindow& window, const PoolingChoice& choice,
                caffe::PoolingParameter* param) {
  const auto set = [](int64_t h, int64_t w, int64_t standard, auto both, auto of_h, auto of_w) {
    if (h == w && h == standard) return;
    if (h == w) return both(static_cast<uint32_t>(h));
    of_h(static_cast<uint32_t>(h));
    of_w(static_cast<uint32_t>(w));
  };
  set(
      window.kernel[0], window.kernel[1], 0, [&](uint32_t v) { param->set_kernel_size(v); },
      [&](uint32_t v) { param->set_kernel_h(v); }, [&](uint32_t v) { param->set_kernel_w(v); });
  set(
      window.stride[0], window.stride[1], 1, [&](uint32_t v) { param->set_stride(v); },
      [&](uint32_t v) { param->set_stride_h(v); }, [&](uint32_t v) { param->set_stride_w(v); });
  set(
      choice.axes[0].pad, choice.axes[1].pad, 0, [&](uint32_t v) { param->set_pad(v); },
      [&](uint32_t v) { param->set_pad_h(v); }, [&](uint32_t v) { param->set_pad_w(v); });
  if (!choice.ceil) param->set_round_mode(caffe::PoolingParameter::FLOOR);
}

// If the divisors of an average differ, adds a fixed Scale layer that corrects them.
int CorrectDivisors(NetBuilder& net, const ImportNode& node, const ImportWindow& window,
                    const PoolingChoice& choice, int blob) {
  const bool counts_padding = node.Int("count_include_pad", 0) != 0;
  CheckMadeNumbers(net, node, window.out[0] * window.out[1]);
  const std::vector<float> rows = DivisorRatios(window, 0, choice.axes[0], counts_padding);
  const std::vector<float> columns = DivisorRatios(window, 1, choice.axes[1], counts_padding);
  Constant factors = MakeFloats({window.out[0], window.out[1]}, {});
  bool differ = false;
  for (const float row : rows) {
    for (const float column : columns) {
      factors.floats.push_back(row * column);
      differ = differ || row * column != 1;
    }
  }
  if (!differ) return blob;
  const NetBuilder::NewLayer added = net.AddUnary(node, "Scale", blob, "divisor");
  added.layer->mutable_scale_param()->set_axis(2);
  added.layer->mutable_scale_param()->set_num_axes(2);
  net.AddWeight(node, added, factors.dims, factors.floats);
  net.KeepWeights(added, 1);
  return added.top;
}

// Appends an axis of length 1 to the windows of a sequence, because a Pooling layer reads images.
void WidenWindow(ImportWindow* window) {
  for (Dims* values :
       {&window->kernel, &window->stride, &window->dilation, &window->in, &window->out}) {
    values->push_back(1);
  }
  window->pad_begin.push_back(0);
  window->pad_end.push_back(0);
}

void ImportPool(NetBuilder& net, const ImportNode& node) {
  const ImportGraph& graph = net.graph();
  int x = net.BlobOf(node, 0);
  const Dims in = net.DimsOf(x), out = graph.DimsOf(node.outputs[0]);
  if (in.size() > 4) graph.Refuse(node, "pooling of three spatial axes has no layer");
  if (graph.IsUsed(node, 1)) {
    graph.Refuse(node,
                 "the positions of the greatest values (output 1) are used; no layer gives "
                 "them");
  }
  ImportWindow window = ReadWindow(graph, node, in, {});
  if (std::ranges::any_of(window.dilation, [](int64_t d) { return d != 1; })) {
    graph.Refuse(node, "pooling with dilations has no layer");
  }
  if (in.size() == 3) {
    WidenWindow(&window);
    x = net.Reshape(node, x, {in[0], in[1], in[2], 1}, "image");
  }
  const PoolingChoice choice = ChoosePooling(net, node, window);
  const NetBuilder::NewLayer added =
      net.Add(node, "Pooling", {x}, {in[0], in[1], choice.axes[0].made, choice.axes[1].made});
  caffe::PoolingParameter* const param = added.layer->mutable_pooling_param();
  param->set_pool(node.op == "MaxPool" ? caffe::PoolingParameter::MAX
                                       : caffe::PoolingParameter::AVE);
  SetPooling(window, choice, param);
  int top = added.top;
  for (const size_t axis : {0u, 1u}) {
    top = SlicePart(net, node, top, axis + 2, choice.axes[axis].skip, window.out[axis], "crop");
  }
  if (node.op == "AveragePool") top = CorrectDivisors(net, node, window, choice, top);
  if (in.size() == 3) top = net.Reshape(node, top, out, "sequence");
  net.SetOutput(node, 0, top);
}

void ImportGlobalPool(NetBuilder& net, const ImportNode& node) {
  const int x = net.BlobOf(node, 0);
  const Dims in = net.DimsOf(x), out = net.graph().DimsOf(node.outputs[0]);
  // The image may have any arrangement of the positions, because the mean does not depend on it.
  const int image =
      in.size() == 4
          ? x
          : net.Reshape(node, x, {in[0], in[1], CountOf(std::span(in).subspan(2)), 1}, "image");
  const NetBuilder::NewLayer added = net.Add(node, "Pooling", {image}, {in[0], in[1], 1, 1});
  caffe::PoolingParameter* const param = added.layer->mutable_pooling_param();
  param->set_pool(node.op == "GlobalMaxPool" ? caffe::PoolingParameter::MAX
                                             : caffe::PoolingParameter::AVE);
  param->set_global_pooling(true);
  net.SetOutput(node, 0, net.Reshape(node, added.top, out, "shape"));
}

}  // namespace

void AddPoolImporters(NodeImporters* all) {
  (*all)["MaxPool"] = (*all)["AveragePool"] = ImportPool;
  (*all)["GlobalMaxPool"] = (*all)["GlobalAveragePool"] = ImportGlobalPool;
}

}  // namespace trainer
