#pragma once
// RandAugment (Cubuk and others 2019, arXiv:1909.13719) and TrivialAugment (Müller and Hutter 2021,
// arXiv:2103.10158), with the operations and magnitudes of torchvision's RandAugment and
// TrivialAugmentWide.

#include <cstdint>

#include "augment/affine_warp.h"
#include "trainer/input/augment.h"

namespace trainer {

class RecordRng;

// The operations, in torchvision's order.
enum class AutoOperation {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
inline constexpr int kAutoOperations = 14;
inline constexpr int kAutoMagnitudes = 31;  // they are numbered from 0, the weakest

enum class AutoSpace { kRandAugment, kTrivialAugmentWide };

// Returns magnitude `number` of an operation, without sign, for an image of this size: a factor of
// shear, pixels, degrees, what is added to a factor of 1, bits, or a threshold.
double MagnitudeOf(AutoSpace space, AutoOperation operation, int number, int64_t height,
                   int64_t width);

// Whether the magnitude of an operation is negated for half of the images.
bool HasSign(AutoOperation operation);

// Changes an image of 1 or 3 channels. `style` is how shears, shifts and rotations compute pixels.
void ApplyOperation(AutoOperation operation, double magnitude, const WarpStyle& style,
                    const PixelSpan& part);

// Draws and applies `num_ops` operations of the given magnitude.
void RandAugment(int num_ops, int magnitude, const WarpStyle& style, RecordRng* draws,
                 const PixelSpan& part);
// Draws and applies one operation and its magnitude.
void TrivialAugment(const WarpStyle& style, RecordRng* draws, const PixelSpan& part);

}  // namespace trainer
