#pragma once
// How a float stands for a class or an index.

#include <cstdint>

#include "trainer/base/host_device.h"

namespace trainer {

inline constexpr int kIgnoredLabel = -1;
inline constexpr int kBadLabel = -2;

// Which labels count. Fractions are cut towards zero before anything else, as Caffe does: 0.5 and
// -0.5 are class 0.
struct LabelRule {
  int64_t classes = 0;
  bool has_ignore = false;
  int ignore = 0;

  // The class, or one of the two codes above. NaN and what 32 bits cannot hold are bad.
  HD int Read(float label) const {
    constexpr float kEnd = 2147483648.0f;  // 2^31
    if (!(label > -kEnd && label < kEnd)) return kBadLabel;
    const int index = static_cast<int>(label);
    if (has_ignore && index == ignore) return kIgnoredLabel;
    return index >= 0 && index < classes ? index : kBadLabel;
  }
};

}  // namespace trainer
