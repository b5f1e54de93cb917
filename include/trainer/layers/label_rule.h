#pragma once
// Codes that LabelRule::Read returns for a float that is not a class or index.

#include <cstdint>

#include "trainer/base/host_device.h"

namespace trainer {

inline constexpr int kIgnoredLabel = -1;
inline constexpr int kBadLabel = -2;

// Converts labels to classes. Fractions are first cut towards zero, as in Caffe: 0.5 and -0.5 are
// class 0.
struct LabelRule {
  int64_t classes = 0;
  bool has_ignore = false;
  int ignore = 0;

  // Returns the class, from 0 to classes - 1. Returns kIgnoredLabel for the label `ignore`, and
  // kBadLabel for any other number outside that range, NaN included.
  HD int Read(float label) const {
    constexpr float kEnd = 2147483648.0f;  // 2^31
    if (!(label > -kEnd && label < kEnd)) return kBadLabel;
    const int index = static_cast<int>(label);
    if (has_ignore && index == ignore) return kIgnoredLabel;
    return index >= 0 && index < classes ? index : kBadLabel;
  }
};

}  // namespace trainer
