// The algorithms of cuDNN 9 for a convolution: a part of the tables in its documentation, chosen so
// that it has every reason to refuse one.

#include <algorithm>

#include "support/emulated_gpu/cudnn/cudnn_objects.h"

namespace emulated_gpu {

const std::vector<AlgorithmRule>& AlgorithmsOf(Direction direction) {
  // algo, nhwc, three axes nhwc, dilated, winograd, deterministic
  static const std::vector<AlgorithmRule> forward = {
      {1, true, true, true, false, true},     // implicit GEMM with precomputed indices
      {0, true, false, true, false, true},    // implicit GEMM
      {7, false, false, false, true, true},   // Winograd in several steps
      {2, false, false, false, false, true},  // GEMM
  };
  static const std::vector<AlgorithmRule> data = {
      {1, true, true, false, false, true},
      {0, true, false, true, false, false},
      {5, false, false, false, true, true},
  };
  static const std::vector<AlgorithmRule> filter = {
      {1, true, true, true, false, true},
      {0, true, false, true, false, false},
      {3, false, false, false, false, false},
      {5, false, false, false, true, true},
  };
  return direction == Direction::kForward ? forward : direction == Direction::kData ? data : filter;
}

const AlgorithmRule* FindAlgorithm(Direction direction, int algo) {
  for (const AlgorithmRule& rule : AlgorithmsOf(direction)) {
    if (rule.algo == algo) return &rule;
  }
  return nullptr;
}

int Takes(const AlgorithmRule& rule, const Convolution& conv) {
  const auto all = [](const int64_t(&lengths)[3], int64_t value) {
    return std::all_of(lengths, lengths + 3, [&](int64_t it) { return it == value; });
  };
  bool takes = true;
  if (conv.nhwc) {
    takes = conv.axes == 3 ? rule.three_axes_nhwc : rule.nhwc;
  } else if (!rule.dilated) {
    takes = all(conv.dilation, 1);
  }
  if (rule.winograd) {
    takes = takes && conv.axes == 2 && conv.kernel[1] == 3 && conv.kernel[2] == 3 &&
            all(conv.stride, 1) && all(conv.dilation, 1);
  }
  // Only tensor cores compute with bfloat16.
  if (conv.type == trainer::DType::kBF16 && conv.math_type == cudnn::kFmaMath) takes = false;
  return takes ? 0 : Refuse(cudnn::kNotSupported, "the algorithm does not take this convolution");
}

size_t WorkspaceBytes(const AlgorithmRule& rule, const Convolution& conv) {
  const auto floats = [](int64_t count) { return static_cast<size_t>(count) * sizeof(float); };
  if (rule.winograd) return floats(4 * (conv.InCount() + conv.OutCount()));
  if (rule.algo == 0) return 0;
  if (conv.direction == Direction::kForward && rule.algo == 2) {
    return floats(conv.OutCount() / conv.filters * conv.channels * conv.Taps());
  }
  return floats(2 * conv.FilterCount()) + 256;
}

}  // namespace emulated_gpu
