#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/random/philox.h"
#include "trainer/config/layer_spec.h"
#include "trainer/input/augment.h"
#include "trainer/input/batch.h"
#include "trainer/input/mean_image.h"
#include "trainer/input/random_resize.h"
#include "trainer/input/window_list.h"
#include "trainer/storage/datum.h"

namespace trainer {

template <class T>
struct PixelCopy;

// Computes y = (x - mean) * scale for a window of the record, which may be mirrored: Caffe's rules.
//   mean_file   one mean per element of the whole record, cut out with the window; or
//   mean_value  one for all channels or one per channel
//   crop_size   TRAIN: a window at a random position; TEST: the middle one, rounded up and left;
//               crop_h and crop_w (NVIDIA Caffe) instead of it give a window that is not square
//   random_resize_param, random_aspect_ratio_param (Intel Caffe), random_resized_crop_param: the
//               record is resized before that, in TEST nets too
//   mirror      flips left and right with probability 1/2, in TEST nets too
//   test_crops  TEST: 5 gives the four corners and the middle one, in reading order; 10 adds their
//               mirror images; `mirror` is then ignored
//   vflip, random_affine_param, auto_augment, color_jitter_param, lighting, gaussian_blur_param,
//   random_erasing_param: see Augment
//   mixup, cutmix: see DrawMixes
// With `augment: false` in data_param nothing is random: TRAIN is as TEST, and nothing is mirrored.
// random_seed, if set, replaces the key's seed. Random choices depend only on the key and the
// record's number, so a resume needs no saved state. The layer's net file must outlive it. Const
// members may be called from any thread.
class Transform {
 public:
  // Reads the mean file (path: as written, else relative to the layer's file). Throws kConfig at
  // the field's line if mean_file and mean_value, or force_color and force_gray, are both set, for
  // NVIDIA Caffe's random resizing, and as RandomResize does; kNoInput, kData for the mean file.
  Transform(const LayerSpec& layer, caffe::Phase phase, const PhiloxKey& key);

  // The colors to which force_color and force_gray convert encoded records.
  ColorMode colors() const;

  // Whether records of floats are accepted: true unless a transform changes bytes.
  bool TakesFloats() const { return !augment_.active(); }

  // Returns the shape of this record's image. `record` names it in messages. Throws kConfig at the
  // field's line if the record is smaller than crop_size, the mean file has another shape, or the
  // number of mean values is wrong; throws as RandomResize::Check.
  ImageShape OutShape(const DatumView& datum, const std::string& record) const;

  // The part of an encoded record that ToFloats and CropBytes need. Accepts any size.
  CropRequest CropFor(int height, int width, uint64_t number) const;

  // Number of images per record.
  int crops() const { return crops_; }

  // Writes (H, W, C) floats, crop after crop. `number` counts records since training began.
  // OutShape must have accepted a datum of this shape.
  void ToFloats(const DatumView& datum, uint64_t number, float* out) const;

  // Does the work of ToFloats in two steps, so that a device may do the second: CropBytes copies
  // the window of a record of bytes and writes its offsets, one for each crop; applying
  // normalization() then gives the values of ToFloats, bit for bit.
  void CropBytes(const DatumView& datum, uint64_t number, uint8_t* out, CropOffset* offsets) const;
  Normalization normalization() const;

  // The number of classes for mixup and CutMix, or 0 if images are not mixed.
  int mix_classes() const { return mixes_ ? static_cast<int>(param_.mixup_classes()) : 0; }
  // The field that mixes images, for messages.
  const char* mix_field() const { return param_.mixup() > 0 ? "mixup" : "cutmix"; }
  // Mixes the images, of this shape, and labels of a complete batch, by the numbers of its records.
  void Mix(const ImageShape& image, std::span<const uint64_t> numbers, std::span<float> images,
           std::span<float> labels) const;
  // Mixes the labels only, and writes the weights and boxes by which a device mixes the images.
  void MixLabels(const ImageShape& image, std::span<const uint64_t> numbers,
                 std::span<float> mix_weights, std::span<CutBox> cut_boxes,
                 std::span<float> labels) const;

 private:
  void CheckSupported() const;
  void CheckMixing() const;
  // A window of the record, at a random place if the transform draws one.
  struct Crop {
    ImageShape shape;
    int64_t top = 0, left = 0;
    bool mirror = false;
  };
  Crop DrawCrop(const ImageShape& in, uint64_t number, int crop) const;
  DatumView Resized(const DatumView& datum, uint64_t number, Image* to) const;
  void Augmented(const DatumView& datum, const Crop& window, uint64_t number, Image* changed,
                 DatumView* from) const;
  ImageShape Window(const ImageShape& in) const;
  template <class T>
  static PixelCopy<T> CopyOf(const T* in, const DatumView& datum, const Crop& window);
  template <class T>
  void Convert(const T* in, const DatumView& datum, const Crop& window, float* out) const;

  LayerSpec layer_;
  caffe::TransformationParameter param_;
  RandomResize resize_;
  Augment augment_;
  // data_param.augment. If false, nothing is random: every record gets the crop and size drawn for
  // record 0.
  bool draws_;
  bool random_crop_, mixes_;
  int crops_ = 1;
  PhiloxKey key_;
  MeanImage mean_;
  std::vector<float> mean_values_;  // none, one or C
};

}  // namespace trainer
