#pragma once
// What transform_param asks for, applied to one record.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/random/philox.h"
#include "trainer/config/layer_spec.h"
#include "trainer/data/augment.h"
#include "trainer/data/batch.h"
#include "trainer/data/datum.h"
#include "trainer/data/random_resize.h"

namespace trainer {

template <class T>
struct PixelJob;

// The shape of one transformed image.
struct ImageShape {
  int64_t channels = 0, height = 0, width = 0;
  int64_t Count() const { return channels * height * width; }
  bool operator==(const ImageShape&) const = default;
  std::string ToString() const;  // "3x227x227"
};

// y = (x - mean) * scale, of a window of the record and maybe mirrored: Caffe's rules.
//   mean_file   one mean per element of the whole record, cut out with the window; or
//   mean_value  one for all channels or one per channel
//   crop_size   TRAIN: a window at a random position; TEST: the middle one, rounded up and left;
//               crop_h and crop_w (NVIDIA Caffe) instead of it give a window that is not square
//   random_resize_param, random_aspect_ratio_param (Intel Caffe), random_resized_crop_param: the
//               record gets another size before that, in TEST nets too
//   mirror      flips left and right with probability 1/2, in TEST nets too
//   test_crops  TEST: 5 gives the four corners and the middle one, in reading order, 10 these
//               mirrored, too; `mirror` then does not count
//   color_jitter_param, lighting, random_erasing_param: see Augment
// random_seed, where given, takes the place of the key's seed.
// Random choices depend on the key and the record's number only: nothing to save for a resume.
// The layer's net file must outlive it. Const members may be called from any thread.
class Transform {
 public:
  // Reads the mean file (path: as written, else relative to the layer's file). Throws kConfig at
  // the field's line: mean_file and mean_value both, force_color and force_gray both, NVIDIA
  // Caffe's random resizing, what RandomResize refuses; kNoInput, kData for the mean file.
  Transform(const LayerSpec& layer, caffe::Phase phase, const PhiloxKey& key);

  // What force_color and force_gray make of encoded records.
  Colors colors() const;
  // Whether records may hold floats: nothing resizes or changes them as images of bytes.
  bool TakesFloats() const { return !resize_.active() && !augment_.active(); }

  // The shape of this record's image. `record` names it in messages. Throws kConfig at the field's
  // line: smaller than crop_size, a mean file of another shape, a wrong number of mean values; as
  // RandomResize::Check.
  ImageShape OutShape(const DatumView& datum, const std::string& record) const;

  // Which part of an encoded record of this size Apply and Cut need. Without an opinion on sizes
  // that OutShape refuses.
  PartNeed Need(int height, int width, uint64_t number) const;

  // How many images are made of a record.
  int crops() const { return crops_; }

  // Writes (H, W, C) floats, of each crop behind the other. `number` counts records since training
  // began. OutShape must have accepted a datum of this shape.
  void Apply(const DatumView& datum, uint64_t number, float* out) const;

  // In two parts, of which the second may be done elsewhere: the same window of a record of bytes,
  // as it is, and what makes of it the numbers that Apply would write, bit for bit.
  // `windows`: one for each crop.
  void Cut(const DatumView& datum, uint64_t number, uint8_t* out, PixelWindow* windows) const;
  PixelNumbers Numbers() const;

  // mixup: the number of classes of the labels, or 0 where images are not mixed.
  int mix_classes() const { return mixes_ ? static_cast<int>(param_.mixup_classes()) : 0; }
  // Mixes the images and labels of a batch that is complete, by the numbers of its records.
  void Mix(std::span<const uint64_t> numbers, std::span<float> images,
           std::span<float> labels) const;
  // The same of images that are mixed elsewhere, out of bytes: gives the shares that they keep.
  void MixLabels(std::span<const uint64_t> numbers, std::span<float> shares,
                 std::span<float> labels) const;

 private:
  void CheckSupported() const;
  // A window of the record, drawn where it is random.
  struct Choice {
    ImageShape shape;
    int64_t top = 0, left = 0;
    bool mirror = false;
  };
  Choice Choose(const ImageShape& in, uint64_t number, int crop) const;
  DatumView Resized(const DatumView& datum, uint64_t number, Image* to) const;
  void Augmented(const DatumView& datum, const Choice& choice, uint64_t number, Image* changed,
                 DatumView* from) const;
  ImageShape Window(const ImageShape& in) const;
  template <class T>
  static PixelJob<T> JobOf(const T* in, const DatumView& datum, const Choice& choice);
  template <class T>
  void Convert(const T* in, const DatumView& datum, const Choice& choice, float* out) const;

  LayerSpec layer_;
  caffe::TransformationParameter param_;
  RandomResize resize_;
  Augment augment_;
  bool random_crop_, mixes_;
  int crops_ = 1;
  PhiloxKey key_;
  std::string mean_path_;
  ImageShape mean_shape_;
  std::vector<float> mean_image_;   // (C, H, W); empty without a file
  std::vector<float> mean_values_;  // none, one or C
};

}  // namespace trainer
