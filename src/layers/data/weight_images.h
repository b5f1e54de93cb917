#pragma once
// Weights that are the pixels of an image.

#include <span>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// The initial values and the output files of a Parameter whose weights are the pixels of an image
// (1, C, H, W), with 1 channel (grey) or 3 (blue, green, red), minus a mean per channel.
class WeightImage {
 public:
  // Reads parameter_param of `spec`. Throws kConfig at the field's line if mean_value is not given
  // once or once per channel, or if the shape is not an image's; throws the errors of reading and
  // decoding the image.
  explicit WeightImage(const LayerSpec& spec);

  // Returns true if `image` is given. If so, start() holds the initial values, (C, H, W), with the
  // size of parameter_param.shape or, without it, of the image.
  bool has_start() const { return !start_.empty(); }
  const std::vector<float>& start() const { return start_; }
  const Shape& shape() const { return shape_; }

  // Returns true if `picture` is given. If so, FileOf returns the file name for iteration `iter`,
  // without a folder: %d in `picture` becomes the iteration.
  bool is_written() const { return param_.has_picture(); }
  std::string FileOf(int iter) const;
  // Returns a file in `folder` that the picture of some iteration would replace; "" if there is
  // none.
  std::string FindIn(const std::string& folder) const;
  // Writes the weights plus the means as a PNG; values are limited to 0 to 255 and rounded. NaN
  // becomes 0.
  void Write(std::span<const float> weights, const std::string& path) const;

 private:
  // Throws kConfig if the shape is not an image's, or mean_value does not fit its channels.
  void CheckShape(const LayerSpec& spec) const;
  // Reads `image`, resizes it to the given shape, and sets start_. Throws kConfig if `filler` is
  // given, too.
  void ReadInitialImage(const LayerSpec& spec);
  // Returns the mean_value of a channel: 0 if none is given, the only one, or its own.
  float MeanOf(int64_t channel) const;

  caffe::ParameterParameter param_;
  Shape shape_;
  std::vector<float> start_;
};

}  // namespace trainer
