#pragma once
// Intel Caffe's random sizes, random_resize_param and random_aspect_ratio_param.

#include <string>

#include "trainer/base/philox.h"
#include "trainer/config/layer_spec.h"
#include "trainer/data/datum.h"

namespace trainer {

class RecordDraws;

class RandomResize {
 public:
  // Throws kConfig at the field's line: both of them, no crop, sizes below the crop, ranges that
  // are none, a mean image (which has one size), words that are not in this build.
  explicit RandomResize(const LayerSpec& layer);

  bool active() const { return sides_ || parts_; }

  // Throws kConfig or kData for a record that cannot be resized; `record` names it.
  void Check(const DatumView& datum, const std::string& record) const;

  // Resizes a record that Check accepted. The choices depend on key and number alone.
  void Apply(const DatumView& datum, const PhiloxKey& key, uint64_t number, Image* to) const;

 private:
  void CheckSides() const;
  void CheckParts() const;
  void CheckWords(const caffe::ResizeParameter& param) const;
  const char* Param() const { return sides_ ? "random_resize_param" : "random_aspect_ratio_param"; }
  int64_t CropSide() const;
  bool TakePart(const ImageView& image, RecordDraws* draws, Image* to) const;

  LayerSpec layer_;
  caffe::TransformationParameter param_;
  bool sides_ = false, parts_ = false;  // which of the two
};

}  // namespace trainer
