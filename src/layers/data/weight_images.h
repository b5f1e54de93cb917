#pragma once
// Weights that are a picture.

#include <span>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// The start and the files of a Parameter whose weights are the pixels of a picture (1, C, H, W), of
// 1 channel (grey) or 3 (blue, green, red), less a mean per channel.
class WeightImage {
 public:
  // Reads parameter_param of `spec`. Throws kConfig at the field's line: a mean_value that is not
  // one per channel, a shape that is no picture; and what reading and decoding the image throws.
  explicit WeightImage(const LayerSpec& spec);

  // Whether `image` is given; then the start, (C, H, W) of the size that parameter_param.shape or
  // else the picture has.
  bool has_start() const { return !start_.empty(); }
  const std::vector<float>& start() const { return start_; }
  const Shape& shape() const { return shape_; }

  // Whether `picture` is given; then the name of the file for iteration `iter`, without a folder.
  bool is_written() const { return param_.has_picture(); }
  std::string FileOf(int iter) const;
  // A file in `folder` that a picture of some iteration would replace; "" where there is none.
  std::string FindIn(const std::string& folder) const;
  // Writes the weights as a picture, values cut to 0 to 255.
  void Write(std::span<const float> weights, const std::string& path) const;

 private:
  void CheckShape(const LayerSpec& spec) const;
  void ReadStart(const LayerSpec& spec);
  float MeanOf(int64_t channel) const;

  caffe::ParameterParameter param_;
  Shape shape_;
  std::vector<float> start_;
};

}  // namespace trainer
