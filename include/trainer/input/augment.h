#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trainer/base/random/philox.h"
#include "trainer/config/layer_spec.h"
#include "trainer/input/mean_image.h"
#include "trainer/storage/datum.h"

namespace trainer {

class RecordRng;

// A rectangle of an image of bytes (C, H, W), in the order blue, green, red, that may be changed.
struct PixelSpan {
  uint8_t* pixels = nullptr;   // the first pixel
  int64_t row = 0, plane = 0;  // bytes from one row, or channel, to the next
  int channels = 0;
  int64_t height = 0, width = 0;

  uint8_t* Row(int c, int64_t y) const { return pixels + c * plane + y * row; }
};

// Changes the windows of records in TRAIN nets, in the order of this list. All random numbers
// depend on the key and the record's number alone.
//   vflip       top to bottom, with this probability
//   affine      random_affine_param: rotates, shifts, resizes and shears about the middle, each by
//               a uniform draw: torchvision's RandomAffine
//   auto        auto_augment: see auto_augment.h
//   brightness  x * f;  contrast  m + (x - m) * f, m the mean grey of the part;
//   saturation  g + (x - g) * f, g the pixel's grey;  hue  rotated by f of the whole circle:
//               in a random order, each clipped to 0 to 255
//               (f = 1 + u, u uniform in [-limit, limit]; for hue f = u)
//   lighting    x + 255 * sum_k a_k l_k v_k, a_k normal with this deviation, l and v the
//               eigenvalues and -vectors of ImageNet's colors: Krizhevsky and others 2012,
//               section 4.1
//   blur        gaussian_blur_param: with a Gaussian kernel of uniform deviation
//   erasing     a rectangle with a random fraction of the area and log-uniform aspect, 10
//               attempts: Zhong and others 2017 (arXiv:1708.04896)
class Augment {
 public:
  // Throws kConfig at the field's line for limits out of range.
  Augment(const LayerSpec& layer, caffe::Phase phase);

  bool active() const { return first_field_ != nullptr; }

  // Throws kData or kConfig for a record that cannot be changed in a window of shape `window`;
  // `record` names it in the message.
  void Check(const DatumView& datum, const ImageShape& window, const std::string& record) const;

  void Apply(const PhiloxKey& key, uint64_t number, const PixelSpan& part) const;

 private:
  void CheckColors() const;
  void CheckErasing() const;
  void CheckAffine() const;
  void CheckAutoAugment() const;
  void CheckBlur() const;
  // Throws kConfig unless `value` is from `least` to `most`.
  void CheckRange(const char* param, const char* field, float value, float least, float most) const;
  void CheckFill(const char* param, std::span<const float> fill) const;
  void CheckFillCount(const char* param, int values, const DatumView& datum,
                      const std::string& record) const;

  void ChangeShape(const PhiloxKey& key, uint64_t number, const PixelSpan& part) const;
  void DrawOperations(const PhiloxKey& key, uint64_t number, const PixelSpan& part) const;
  void ChangeColors(RecordRng* draws, const PixelSpan& part) const;
  void Blur(const PhiloxKey& key, uint64_t number, const PixelSpan& part) const;
  void Erase(RecordRng* draws, const PixelSpan& part) const;

  LayerSpec layer_;
  caffe::TransformationParameter param_;
  bool flips_ = false, warps_ = false, draws_operations_ = false;
  bool colors_ = false, lighting_ = false, blurs_ = false, erases_ = false;
  const char* first_field_ = nullptr;  // the first one that changes images
};

}  // namespace trainer
