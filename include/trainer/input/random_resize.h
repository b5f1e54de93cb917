#pragma once
// random_resize_param and random_aspect_ratio_param of Intel Caffe, random_resized_crop_param.

#include <string>

#include "trainer/base/random/philox.h"
#include "trainer/config/layer_spec.h"
#include "trainer/storage/datum.h"

namespace trainer {

class RecordRng;

class RandomResize {
 public:
  // Throws kConfig at the field's line: several of the three, no crop, sizes below the crop, an
  // empty range, a mean image (its size is fixed), a word that this build does not support.
  RandomResize(const LayerSpec& layer, caffe::Phase phase);

  bool active() const { return kind_ != Kind::kNone; }

  // Throws kConfig or kData for a record that cannot be resized; `record` names it.
  void Check(const DatumView& datum, const std::string& record) const;

  // The choice for an image of this size: `box` is resized to height x width.
  struct Choice {
    Rect box;
    int height = 0, width = 0;
    Interpolation how = Interpolation::kLinear;
  };
  // Depends on the size, key and number alone. Accepts any size, also sizes that Check refuses.
  Choice Choose(int height, int width, const PhiloxKey& key, uint64_t number) const;

  // Resizes a record that Check accepted and that holds at least the choice's box.
  static void Apply(const DatumView& datum, const Choice& choice, Image* to);

 private:
  enum class Kind { kNone, kSides, kParts, kCrop };

  [[noreturn]] void Refuse(
      const std::string& what) const;  // throws kConfig at the parameter's line
  void CheckSides() const;
  void CheckParts() const;
  void CheckCrop() const;
  void CheckCropSide() const;
  void CheckAreas(float least, float greatest) const;
  void CheckWords(const caffe::ResizeParameter& param) const;
  const char* Param() const;
  int64_t CropSide() const;
  Choice DrawSide(int height, int width, RecordRng* draws) const;
  Choice DrawPart(int height, int width, RecordRng* draws) const;
  Choice DrawCrop(int height, int width, RecordRng* draws) const;

  LayerSpec layer_;
  caffe::TransformationParameter param_;
  Kind kind_ = Kind::kNone;
  int64_t test_side_ = 0;  // kCrop in TEST: length of the shorter side; 0 in TRAIN
};

}  // namespace trainer
