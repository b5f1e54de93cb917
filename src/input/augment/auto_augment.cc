#include "augment/auto_augment.h"

#include <cmath>

#include "augment/byte_changes.h"
#include "record_rng.h"

namespace trainer {
namespace {

// The greatest magnitudes.
struct AutoLimits {
  double shear, degrees, factor;
  int posterized_bits;  // bits that Posterize removes
};

AutoLimits LimitsOf(AutoSpace space) {
  if (space == AutoSpace::kRandAugment) return {0.3, 30, 0.9, 4};
  return {0.99, 135, 0.99, 6};
}

// The greatest shift of RandAugment is 150 pixels of an image with 331.
double GreatestShift(AutoSpace space, int64_t side) {
  return space == AutoSpace::kRandAugment ? 150.0 / 331.0 * static_cast<double>(side) : 32.0;
}

AutoOperation DrawOperation(RecordRng* draws) {
  return static_cast<AutoOperation>(draws->Below(kAutoOperations));
}

// Draws the sign and applies the operation.
void ApplySigned(AutoOperation operation, double magnitude, const WarpStyle& style,
                 RecordRng* draws, const PixelSpan& part) {
  const bool negative = draws->Below(2) == 1;
  if (negative && HasSign(operation)) magnitude = -magnitude;
  ApplyOperation(operation, magnitude, style, part);
}

// Rotates about the middle, as Pillow: against the clock for a positive angle.
AffineMap RotationBy(double degrees, const PixelSpan& part) {
  return MapOf({.degrees = -degrees}, part.height, part.width);
}

}  // namespace

double MagnitudeOf(AutoSpace space, AutoOperation operation, int number, int64_t height,
                   int64_t width) {
  const double share = static_cast<double>(number) / (kAutoMagnitudes - 1);
  const AutoLimits limits = LimitsOf(space);
  switch (operation) {
    case AutoOperation::kShearX:
    case AutoOperation::kShearY:
      return share * limits.shear;
    case AutoOperation::kTranslateX:
      return share * GreatestShift(space, width);
    case AutoOperation::kTranslateY:
      return share * GreatestShift(space, height);
    case AutoOperation::kRotate:
      return share * limits.degrees;
    case AutoOperation::kBrightness:
    case AutoOperation::kColor:
    case AutoOperation::kContrast:
    case AutoOperation::kSharpness:
      return share * limits.factor;
    case AutoOperation::kPosterize:
      return 8 - std::nearbyint(number * limits.posterized_bits /
                                static_cast<double>(kAutoMagnitudes - 1));
    case AutoOperation::kSolarize:
      return 255 * (1 - share);
    case AutoOperation::kIdentity:
    case AutoOperation::kAutoContrast:
    case AutoOperation::kEqualize:
      break;
  }
  return 0;
}

bool HasSign(AutoOperation operation) {
  return operation >= AutoOperation::kShearX && operation <= AutoOperation::kSharpness;
}

void ApplyOperation(AutoOperation operation, double magnitude, const WarpStyle& style,
                    const PixelSpan& part) {
  const auto factor = static_cast<float>(1 + magnitude);
  switch (operation) {
    case AutoOperation::kIdentity:
      return;
    case AutoOperation::kShearX:  // about the corner, as in AutoAugment
      return WarpAffine({.xy = magnitude}, style, part);
    case AutoOperation::kShearY:
      return WarpAffine({.yx = magnitude}, style, part);
    case AutoOperation::kTranslateX:
      return WarpAffine({.x0 = -std::trunc(magnitude)}, style, part);
    case AutoOperation::kTranslateY:
      return WarpAffine({.y0 = -std::trunc(magnitude)}, style, part);
    case AutoOperation::kRotate:
      return WarpAffine(RotationBy(magnitude, part), style, part);
    case AutoOperation::kBrightness:
      return ByteBrightness(factor, part);
    case AutoOperation::kColor:
      return ByteColor(factor, part);
    case AutoOperation::kContrast:
      return ByteContrast(factor, part);
    case AutoOperation::kSharpness:
      return Sharpness(factor, part);
    case AutoOperation::kPosterize:
      return Posterize(static_cast<int>(magnitude), part);
    case AutoOperation::kSolarize:
      return Solarize(static_cast<float>(magnitude), part);
    case AutoOperation::kAutoContrast:
      return AutoContrast(part);
    case AutoOperation::kEqualize:
      return Equalize(part);
  }
}

void RandAugment(int num_ops, int magnitude, const WarpStyle& style, RecordRng* draws,
                 const PixelSpan& part) {
  for (int i = 0; i < num_ops; ++i) {
    const AutoOperation operation = DrawOperation(draws);
    const double size =
        MagnitudeOf(AutoSpace::kRandAugment, operation, magnitude, part.height, part.width);
    ApplySigned(operation, size, style, draws, part);
  }
}

void TrivialAugment(const WarpStyle& style, RecordRng* draws, const PixelSpan& part) {
  const AutoOperation operation = DrawOperation(draws);
  const auto number = static_cast<int>(draws->Below(kAutoMagnitudes));
  const double size =
      MagnitudeOf(AutoSpace::kTrivialAugmentWide, operation, number, part.height, part.width);
  ApplySigned(operation, size, style, draws, part);
}

}  // namespace trainer
