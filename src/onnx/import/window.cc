#include "import/window.h"

#include <algorithm>
#include <climits>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the list of an attribute, or `standard` for each axis. Throws for another number of
// values and for values out of range.
Dims AxisValues(const ImportGraph& graph, const ImportNode& node, const char* attribute,
                size_t axes, int64_t standard, int64_t least) {
  Dims values = node.Ints(attribute);
  if (values.empty()) values.assign(axes, standard);
  if (values.size() != axes) {
    graph.Refuse(node, Join(attribute, " has ", values.size(), " values for ", axes, " axes"));
  }
  for (const int64_t value : values) {
    if (value < least || value > INT_MAX) {
      graph.Refuse(node, Join(attribute, " has the value ", value, "; it must be at least ", least,
                              " and below 2^31"));
    }
  }
  return values;
}

// Reads everything except the padding and the output.
ImportWindow ReadKernel(const ImportGraph& graph, const ImportNode& node, const Dims& input,
                        Dims kernel) {
  if (input.size() < 3) {
    graph.Refuse(node, Join("its input ", DimsText(input), " has no spatial axes"));
  }
  ImportWindow window;
  window.in.assign(input.begin() + 2, input.end());
  if (std::ranges::any_of(window.in, [](int64_t length) { return length > INT_MAX; })) {
    graph.Refuse(node, Join("its input ", DimsText(input), " is too large"));
  }
  const size_t axes = window.in.size();
  const Dims written = AxisValues(graph, node, "kernel_shape", axes, 1, 1);
  if (kernel.empty() && !node.Has("kernel_shape")) graph.Refuse(node, "kernel_shape is missing");
  window.kernel = kernel.empty() ? written : std::move(kernel);
  if (node.Has("kernel_shape") && written != window.kernel) {
    graph.Refuse(node, Join("kernel_shape ", DimsText(written), " differs from the weight's ",
                            DimsText(window.kernel)));
  }
  window.stride = AxisValues(graph, node, "strides", axes, 1, 1);
  window.dilation = AxisValues(graph, node, "dilations", axes, 1, 1);
  const Dims pads = AxisValues(graph, node, "pads", 2 * axes, 0, INT_MIN);
  window.pad_begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  window.pad_end.assign(pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  return window;
}

// Distributes `total` padding as auto_pad says.
void SetSamePadding(ImportWindow& window, size_t axis, int64_t total, bool upper) {
  total = std::max<int64_t>(total, 0);
  window.pad_begin[axis] = upper ? total / 2 : total - total / 2;
  window.pad_end[axis] = total - window.pad_begin[axis];
}

}  // namespace

ImportWindow ReadWindow(const ImportGraph& graph, const ImportNode& node, const Dims& input,
                        Dims kernel) {
  ImportWindow window = ReadKernel(graph, node, input, std::move(kernel));
  const std::string same = node.Text("auto_pad", "NOTSET");
  const bool ceil = node.Int("ceil_mode", 0) != 0;
  for (size_t i = 0; i < window.in.size(); ++i) {
    const int64_t in = window.in[i], stride = window.stride[i];
    const int64_t reach = window.dilation[i] * (window.kernel[i] - 1) + 1;
    if (same == "VALID") window.pad_begin[i] = window.pad_end[i] = 0;
    if (same.starts_with("SAME")) {
      const int64_t out = (in + stride - 1) / stride;
      SetSamePadding(window, i, (out - 1) * stride + reach - in, same == "SAME_UPPER");
    }
    const int64_t room = in + window.pad_begin[i] + window.pad_end[i] - reach;
    if (room < 0 || window.pad_begin[i] < 0 || window.pad_end[i] < 0) {
      graph.Refuse(node, Join("a kernel that covers ", reach, " positions does not fit into ", in,
                              " positions with padding of ", window.pad_begin[i], " and ",
                              window.pad_end[i]));
    }
    int64_t out = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    // The last window must start in the input or in the padding before it, as in PyTorch and Caffe.
    if (ceil && (out - 1) * stride >= in + window.pad_begin[i]) --out;
    window.out.push_back(out);
  }
  return window;
}

ImportWindow ReadTransposedWindow(const ImportGraph& graph, const ImportNode& node,
                                  const Dims& input, Dims kernel) {
  ImportWindow window = ReadKernel(graph, node, input, std::move(kernel));
  const size_t axes = window.in.size();
  Dims extra = AxisValues(graph, node, "output_padding", axes, 0, 0);
  // Some exporters also write the batch and the channels into output_shape.
  const bool is_whole = node.Ints("output_shape").size() == axes + 2;
  Dims wanted = AxisValues(graph, node, "output_shape", axes + (is_whole ? 2 : 0), 0, 0);
  if (is_whole) wanted.erase(wanted.begin(), wanted.begin() + 2);
  const std::string same = node.Text("auto_pad", "NOTSET");
  for (size_t i = 0; i < axes; ++i) {
    int64_t full = window.stride[i] * (window.in[i] - 1) +
                   window.dilation[i] * (window.kernel[i] - 1) + 1 + extra[i];
    if (same == "VALID") window.pad_begin[i] = window.pad_end[i] = 0;
    if (node.Has("output_shape") || same.starts_with("SAME")) {
      const int64_t out = node.Has("output_shape") ? wanted[i] : window.in[i] * window.stride[i];
      if (out > full) {  // output_padding adds positions after the last window
        extra[i] += out - full;
        full = out;
      }
      // The format puts the odd element at the end for SAME_UPPER, and at the beginning otherwise.
      SetSamePadding(window, i, full - out, same == "SAME_UPPER");
    }
    const int64_t out = full - window.pad_begin[i] - window.pad_end[i];
    window.pad_end[i] -= extra[i];
    if (out < 1 || window.pad_begin[i] < 0) {
      graph.Refuse(node, Join("its output would have ", out, " positions along spatial axis ", i));
    }
    window.out.push_back(out);
  }
  return window;
}

}  // namespace trainer
