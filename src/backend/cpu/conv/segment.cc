#include "cpu/conv/segment.h"

#include <cstring>

#include "cpu/simd.h"
#include "trainer/base/text/text.h"

namespace trainer::cpu {

SegmentShape::SegmentShape(const ConvDesc& desc)
    : batch(desc.batch),
      c(desc.in_channels),
      h(desc.in[0]),
      w(desc.in[1]),
      m(desc.out_channels),
      kh(desc.kernel[0]),
      kw(desc.kernel[1]),
      oh(desc.Out()[0]),
      ow(desc.Out()[1]),
      sh(desc.stride[0]),
      sw(desc.stride[1]),
      ph(desc.pad[0]),
      pw(desc.pad[1]),
      dh(desc.dilation[0]),
      segment(kw * c),
      row((w + 2 * pw) * c),
      padded((h + 2 * ph) * row),
      x_image(h * w * c),
      y_image(oh * ow * m),
      m_wide(RoundUpToLanes(m)),
      segment_wide(RoundUpToLanes(segment)),
      threads(TeamSize()),
      bias(desc.bias) {}

void SegmentShape::CopyInside(const float* image, float* to) const {
  for (int64_t r = 0; r < h; ++r) {
    std::memcpy(to + (r + ph) * row + pw * c, image + r * w * c, w * c * sizeof(float));
  }
}

std::vector<int64_t> SegmentShape::PixelOffsets() const {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < oh * ow; ++i) offsets.push_back(i / ow * sh * row + i % ow * sw * c);
  return offsets;
}

std::vector<int64_t> SegmentShape::TapOffsets() const {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < kh * segment; ++i) {
    offsets.push_back(i / segment * dh * row + i % segment);
  }
  return offsets;
}

std::string SegmentsRefuse(const ConvDesc& desc) {
  if (!HasWideLanes()) return "it needs AVX2";
  if (desc.dtype != DType::kF32) return "it supports f32 only";
  if (desc.in.size() != 2) return "it supports images only";
  if (desc.group != 1) return "it supports one group only";
  if (desc.dilation[1] > 1 && desc.kernel[1] > 1) return "the kernel is dilated along the width";
  constexpr int64_t kMaxPixels = int64_t{1} << 24;  // a table has an entry for each pixel
  const std::vector<int64_t> out = desc.Out();
  if (out[0] > kMaxPixels / out[1]) return "the image has too many pixels for its table";
  const int64_t lanes = LanesFor(kLanes);
  if (desc.WeightShape().Count(2) == 1 && lanes < kLanes) {
    return "the kernel is 1 x 1, and with AVX2 other kernels are faster then";
  }
  // oneDNN is faster if the vectors are full, or if the weights need blocking for the caches.
  if (desc.in_channels % lanes == 0 && desc.out_channels % lanes == 0) {
    return Join("all channels fill whole vectors of ", lanes, ", and oneDNN is faster then");
  }
  const bool large = desc.WeightShape().Count(1) > 2048 || desc.out_channels > 512;
  return large ? "the weight is too large for the nearest caches" : "";
}

std::string SegmentsRefuseForwardOrData(const ConvDesc& desc) {
  if (desc.WeightShape().Count(2) == 1) {
    return "the kernel is 1 x 1, a matrix product, and oneDNN is faster then";
  }
  return SegmentsRefuse(desc);
}

}  // namespace trainer::cpu
