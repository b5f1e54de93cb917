#pragma once
// Decodes and compares boxes of four corners (xmin, ymin, xmax, ymax), as in SSD.

#include <algorithm>
#include <cmath>

#include "layers.pb.h"
#include "trainer/base/host_device.h"

namespace trainer {

// How four predicted numbers and a prior box encode a box (SSD, arXiv:1512.02325): CORNER adds the
// numbers to the corners; CORNER_SIZE first multiplies them by the prior's width and height;
// CENTER_SIZE moves the center by shares of the size and scales the size by exp.
struct BoxCoding {
  caffe::PriorBoxParameter::CodeType type = caffe::PriorBoxParameter::CORNER;
  bool times_variance = true;  // the predictions are first multiplied by the prior's variances

  // Replaces the predictions in `box` by the decoded box.
  void Decode(const float* prior, const float* variance, float* box) const {
    float move[4];
    for (int i = 0; i < 4; ++i) move[i] = times_variance ? variance[i] * box[i] : box[i];
    const float width = prior[2] - prior[0], height = prior[3] - prior[1];
    if (type == caffe::PriorBoxParameter::CENTER_SIZE) {
      const float x = move[0] * width + (prior[0] + prior[2]) / 2;
      const float y = move[1] * height + (prior[1] + prior[3]) / 2;
      const float half_width = std::exp(move[2]) * width / 2;
      const float half_height = std::exp(move[3]) * height / 2;
      box[0] = x - half_width;
      box[1] = y - half_height;
      box[2] = x + half_width;
      box[3] = y + half_height;
      return;
    }
    const bool in_sizes = type == caffe::PriorBoxParameter::CORNER_SIZE;
    for (int i = 0; i < 4; ++i) {
      const float size = !in_sizes ? 1.0f : i % 2 == 0 ? width : height;
      box[i] = prior[i] + move[i] * size;
    }
  }
};

// Returns the area of a box, or 0 if an end is before its start.
inline float AreaOf(const float* box) {
  return box[2] < box[0] || box[3] < box[1] ? 0.0f : (box[2] - box[0]) * (box[3] - box[1]);
}

// Returns the area of the intersection of two boxes divided by the area of their union (IoU); 0 if
// they do not overlap.
inline float Overlap(const float* a, const float* b) {
  const float width = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const float height = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  if (!(width > 0 && height > 0)) return 0;
  const float shared = width * height;
  return shared / (AreaOf(a) + AreaOf(b) - shared);
}

}  // namespace trainer
