#pragma once
// Picture files as a net takes them.

#include <memory>
#include <string>
#include <vector>

#include "trainer/data/mean_file.h"
#include "trainer/image/image.h"
#include "trainer/inference/net_inputs.h"

namespace trainer {

// How a pixel p of 0 to 255 becomes a number: (p * raw_scale / 255 - mean) * scale, in Caffe's
// names and order.
struct PictureOptions {
  int height = 0, width = 0;  // pictures are resized to this, then cut; 0: to what the net takes
  bool oversample = false;    // ten parts of each: corners and middle, and these mirrored
  std::string mean_file;
  std::vector<float> mean_values;  // one, or one per channel
  float raw_scale = 255, scale = 1;
};

// Reads pictures for an input (N, C, H, W): of 1 channel they become grey, of 3 blue, green and
// red. One thread.
class PictureReader {
 public:
  // Throws kConfig for another shape; kUsage for a size below the input's, for a mean that has
  // another number of channels, for mean file and mean values both; as ReadMeanFile. A mean file
  // of the resized picture's size is taken off the picture, as in training; one of the input's size
  // off each part, as Caffe's Python does; of any other size the means of its channels count, as in
  // Caffe's C++ example.
  PictureReader(const Shape& input, const PictureOptions& options);

  // How many items of the batch a picture takes: 1, or 10.
  int parts() const { return static_cast<int>(places_.size()); }

  // Appends the picture's parts (parts(), C, H, W) to `out`. Throws as ReadFile and DecodeImage,
  // naming the file.
  void Read(const std::string& path, std::vector<float>* out);

 private:
  struct Place {
    int top = 0, left = 0;
    bool mirror = false;
  };

  void ChoosePlaces(bool oversample);
  void SetMean(const PictureOptions& options);
  void Cut(const Place& place, float* out) const;

  int channels_, height_, width_;   // of the input
  int whole_height_, whole_width_;  // of the resized picture
  float factor_, scale_;
  std::vector<Place> places_;
  std::vector<float> mean_;  // (C, H, W) of a part, or of the resized picture:
  bool mean_is_whole_ = false;
  std::string raw_;
  Image decoded_, resized_;
};

// The input that takes pictures: the net's only one. Throws kConfig when there is none or another.
InputBlob PictureInput(const Net& net);

// Fills that input with pictures, one after the other. Throws for a picture as PictureReader does.
std::unique_ptr<InputSource> MakePictureSource(std::vector<std::string> paths,
                                               const PictureOptions& options, const Net& net);

}  // namespace trainer
