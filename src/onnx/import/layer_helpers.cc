#include "import/layer_helpers.h"

#include <algorithm>
#include <numeric>

#include "import/fold.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int64_t kMaxMadeNumbers = int64_t{1} << 26;

// Returns the order of axes that exchanges `axis` with the last one.
Dims SwapWithLast(size_t rank, size_t axis) {
  Dims order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order.back());
  return order;
}

// Returns the shape with axes of length 1 in front, so that it has `rank` axes.
Dims PadFront(const Dims& dims, size_t rank) {
  Dims padded(rank - std::min(rank, dims.size()), 1);
  padded.insert(padded.end(), dims.begin(), dims.end());
  return padded;
}

}  // namespace

void CheckMadeNumbers(const NetBuilder& net, const ImportNode& node, int64_t numbers) {
  if (numbers <= kMaxMadeNumbers) return;
  net.graph().Refuse(node, Join("its layer would have ", numbers,
                                " fixed numbers that are not in the model, which are too many"));
}

AxisMatrix ZeroMatrix(const NetBuilder& net, const ImportNode& node, int64_t rows,
                      int64_t columns) {
  CheckMadeNumbers(net, node, rows > INT64_MAX / columns ? INT64_MAX : rows * columns);
  return {rows, columns, std::vector<float>(static_cast<size_t>(rows * columns), 0.0f)};
}

int SlicePart(NetBuilder& net, const ImportNode& node, int blob, size_t axis, int64_t start,
              int64_t count, const std::string& suffix) {
  Dims part = net.DimsOf(blob);
  if (start == 0 && count == part[axis]) return blob;
  Dims lengths;
  if (start > 0) lengths.push_back(start);
  const size_t wanted = lengths.size();
  lengths.push_back(count);
  if (start + count < part[axis]) lengths.push_back(part[axis] - start - count);
  Dims key = {blob, static_cast<int64_t>(axis)};
  key.insert(key.end(), lengths.begin(), lengths.end());
  if (const auto made = net.slices().find(key); made != net.slices().end()) {
    const int top = made->second[wanted];
    if (net.Share(top)) return top;
  }
  part[axis] = lengths[0];
  const NetBuilder::NewLayer added = net.Add(node, "Slice", {blob}, part, suffix);
  caffe::SliceParameter* const param = added.layer->mutable_slice_param();
  if (axis != 1) param->set_axis(static_cast<int32_t>(axis));
  std::vector<int> tops = {added.top};
  int64_t at = 0;
  for (size_t i = 1; i < lengths.size(); ++i) {
    at += lengths[i - 1];
    param->add_slice_point(static_cast<uint32_t>(at));
    part[axis] = lengths[i];
    tops.push_back(net.AddTop(added, part, "part"));
  }
  net.slices()[key] = tops;
  return tops[wanted];
}

int AddInnerProduct(NetBuilder& net, const ImportNode& node, int blob, int64_t outputs,
                    std::span<const float> weight, std::span<const float> bias) {
  Dims dims = net.DimsOf(blob);
  const int64_t inputs = dims.back();
  dims.back() = outputs;
  const NetBuilder::NewLayer added = net.Add(node, "InnerProduct", {blob}, dims);
  caffe::InnerProductParameter* const param = added.layer->mutable_inner_product_param();
  param->set_num_output(static_cast<uint32_t>(outputs));
  if (dims.size() != 2) param->set_axis(static_cast<int32_t>(dims.size()) - 1);
  if (bias.empty()) param->set_bias_term(false);
  net.AddWeight(node, added, {outputs, inputs}, weight);
  if (!bias.empty()) net.AddWeight(node, added, {outputs}, bias);
  return added.top;
}

int MultiplyAxis(NetBuilder& net, const ImportNode& node, int blob, size_t axis,
                 const AxisMatrix& matrix, const std::string& suffix) {
  const size_t rank = net.DimsOf(blob).size();
  const Dims order = SwapWithLast(rank, axis);
  const int moved = net.Permute(node, blob, order, suffix + "_last");
  Dims dims = net.DimsOf(moved);
  dims.back() = matrix.rows;
  const NetBuilder::NewLayer added = net.Add(node, "InnerProduct", {moved}, dims, suffix);
  caffe::InnerProductParameter* const param = added.layer->mutable_inner_product_param();
  param->set_num_output(static_cast<uint32_t>(matrix.rows));
  if (rank != 2) param->set_axis(static_cast<int32_t>(rank) - 1);
  param->set_bias_term(false);
  net.AddWeight(node, added, {matrix.rows, matrix.columns}, matrix.values);
  net.KeepWeights(added, 1);
  return net.Permute(node, added.top, order, suffix + "_back");
}

int BroadcastTo(NetBuilder& net, const ImportNode& node, int blob, const Dims& dims,
                const std::string& suffix) {
  const Dims padded = PadFront(net.DimsOf(blob), dims.size());
  int top = net.Reshape(node, blob, padded, suffix.empty() ? "axes" : suffix + "_axes");
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (padded[axis] == dims[axis]) continue;
    Dims tiled = net.DimsOf(top);
    tiled[axis] = dims[axis];
    const NetBuilder::NewLayer added =
        net.Add(node, "Tile", {top}, tiled, suffix.empty() ? "tile" : suffix + "_tile");
    added.layer->mutable_tile_param()->set_axis(static_cast<int32_t>(axis));
    added.layer->mutable_tile_param()->set_tiles(static_cast<int32_t>(dims[axis]));
    top = added.top;
  }
  return top;
}

bool FindCoveredAxes(const Dims& small, const Dims& large, bool whole, CoveredAxes* covered) {
  if (small.size() > large.size()) return false;
  const Dims padded = PadFront(small, large.size());
  size_t first = large.size(), end = 0;
  for (size_t i = 0; i < large.size(); ++i) {
    // With `whole`, both arrays are values of the net, so the first axis is the batch even if its
    // length is 1.
    const bool is_batch = whole && i == 0 && small.size() == large.size();
    if (padded[i] != large[i] && padded[i] != 1) return false;
    if ((padded[i] == 1 && !is_batch) || padded[i] != large[i]) continue;
    first = std::min(first, i);
    end = i + 1;
  }
  if (first >= end) return false;
  for (size_t i = first; whole && i < end; ++i) {
    if (padded[i] != large[i]) return false;
  }
  covered->axis = first;
  covered->dims.assign(large.begin() + static_cast<std::ptrdiff_t>(first),
                       large.begin() + static_cast<std::ptrdiff_t>(end));
  return true;
}

std::vector<float> FloatsOfConstant(const Constant& constant) {
  if (constant.is_float) return constant.floats;
  return {constant.ints.begin(), constant.ints.end()};
}

std::vector<float> NumbersFor(const Constant& constant, const Dims& large,
                              const CoveredAxes& covered) {
  const Dims padded = PadFront(constant.dims, large.size());
  const auto first = padded.begin() + static_cast<std::ptrdiff_t>(covered.axis);
  Constant part = constant;
  part.dims.assign(first, first + static_cast<std::ptrdiff_t>(covered.dims.size()));
  return FloatsOfConstant(
      SelectBySteps(part, covered.dims, BroadcastSteps(part.dims, covered.dims)));
}

int AddConstantTo(NetBuilder& net, const ImportNode& node, int blob, const Constant& constant,
                  const std::string& suffix) {
  CoveredAxes covered;
  const Dims dims = net.DimsOf(blob);
  if (constant.Count() == 1) {
    return net.Power(node, blob, 1, FloatsOfConstant(constant)[0], 1, suffix);
  }
  if (!FindCoveredAxes(constant.dims, dims, false, &covered)) {
    net.graph().Refuse(node, Join("the constant ", DimsText(constant.dims), " cannot be added to ",
                                  DimsText(dims)));
  }
  CheckMadeNumbers(net, node, CountOf(covered.dims) - static_cast<int64_t>(constant.Count()));
  const NetBuilder::NewLayer added = net.AddUnary(node, "Bias", blob, suffix);
  caffe::BiasParameter* const param = added.layer->mutable_bias_param();
  if (covered.axis != 1) param->set_axis(static_cast<int32_t>(covered.axis));
  if (covered.dims.size() != 1) param->set_num_axes(static_cast<int32_t>(covered.dims.size()));
  net.AddWeight(node, added, covered.dims, NumbersFor(constant, dims, covered));
  return added.top;
}

int MultiplyByConstant(NetBuilder& net, const ImportNode& node, int blob, const Constant& factor,
                       const Constant* offset, const std::string& suffix) {
  CoveredAxes covered;
  const Dims dims = net.DimsOf(blob);
  if (factor.Count() == 1) {
    const float shift = offset == nullptr ? 0 : FloatsOfConstant(*offset)[0];
    return net.Power(node, blob, FloatsOfConstant(factor)[0], shift, 1, suffix);
  }
  if (!FindCoveredAxes(factor.dims, dims, false, &covered)) {
    net.graph().Refuse(node, Join("the constant ", DimsText(factor.dims),
                                  " cannot be multiplied with ", DimsText(dims)));
  }
  CheckMadeNumbers(net, node, CountOf(covered.dims) - static_cast<int64_t>(factor.Count()));
  const NetBuilder::NewLayer added = net.AddUnary(node, "Scale", blob, suffix);
  caffe::ScaleParameter* const param = added.layer->mutable_scale_param();
  if (covered.axis != 1) param->set_axis(static_cast<int32_t>(covered.axis));
  if (covered.dims.size() != 1) param->set_num_axes(static_cast<int32_t>(covered.dims.size()));
  net.AddWeight(node, added, covered.dims, NumbersFor(factor, dims, covered));
  if (offset != nullptr) {
    param->set_bias_term(true);
    net.AddWeight(node, added, covered.dims, NumbersFor(*offset, dims, covered));
  }
  return added.top;
}

}  // namespace trainer
