#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/image/image.h"
#include "trainer/inference/predict/blob_source.h"
#include "trainer/inference/predict/image_paths.h"
#include "trainer/input/mean_image.h"

namespace trainer {

// Says how a pixel p in [0, 255] becomes an input value: (p * raw_scale / 255 - mean) * scale. The
// names and the order are Caffe's. A pixel may be fractional if the image has 16 bits per channel.
struct PreprocessOptions {
  int height = 0, width = 0;  // size before the crop; 0: size of the input
  // If not 0, the shorter side of images is resized to this length and the longer side in
  // proportion, before the crop. If 0, `height` and `width` are used. At most one of the two ways
  // may be set.
  int short_side = 0;
  bool oversample = false;  // ten crops: corners and center, plain and mirrored
  std::string mean_file = "";
  std::vector<float> mean_values = {};  // one value, or one per channel
  float raw_scale = 255, scale = 1;
};

// Reads and preprocesses image files for an input of shape (N, C, H, W). With one channel the
// images become gray; with three their channels are blue, green, red. Not thread-safe.
class ImagePreprocessor {
 public:
  // Prepares the options for `input`. Throws kConfig if the input has another shape. Throws kUsage
  // if images are resized below the input's size or in both ways, if the mean has another number of
  // channels, or if both a mean file and mean values are set. Throws as ReadMeanFile does. A mean
  // file of the resized image's size is subtracted before the crop, as in training. A mean file of
  // the input's size is subtracted after the crop, as in Caffe's Python. With any other size, its
  // channel means are used, as in Caffe's C++ example.
  ImagePreprocessor(const Shape& input, const PreprocessOptions& options);

  // Returns the number of crops per image: 1, or 10 with `oversample`.
  int crops() const { return static_cast<int>(crops_.size()); }

  // Returns the mean (C, H, W) that is subtracted from the first crop, which is the center without
  // `oversample`.
  std::vector<float> MeanOfFirstCrop() const;

  // Appends the crops of the image, (crops(), C, H, W), to `out`. Throws kData, naming the file, if
  // `short_side` would make an image too large, and as ReadFile and DecodeImage do.
  void Read(const std::string& path, std::vector<float>* out);
  // Appends the crops of an image in memory, which must have as many channels as the input.
  void Prepare(const Image& image, std::vector<float>* out);

 private:
  // Holds the position of a crop in the resized image.
  struct Crop {
    int top = 0, left = 0;
    bool mirror = false;
  };

  // Sets the size before the crop and the positions of the crops. Throws kUsage if the size is
  // smaller than the input.
  void SetResizedSize(int height, int width);
  // Appends the crops of decoded_, the image in the file `path`, or "" for an image in memory.
  // Throws as Read does.
  void AppendCrops(const std::string& path, std::vector<float>* out);
  // Sets the resized size for decoded_, the image in the file `path`. Throws kData if it is too
  // large.
  void ResizeShortSide(const std::string& path);
  // Reads the mean file, or expands the mean values to the size of the input. Throws as the
  // constructor does.
  void SetMean(const PreprocessOptions& options);
  // Writes one crop, (C, H, W), with the mean subtracted and scaled.
  void CopyCrop(const Crop& crop, float* out) const;

  int channels_, height_, width_;               // sizes of the input
  int resized_height_ = 0, resized_width_ = 0;  // before the crop
  int short_side_;                              // see PreprocessOptions
  bool oversample_;
  float factor_, scale_;
  std::vector<Crop> crops_;
  std::vector<float> mean_;       // (C, H, W) of the input, or of the resized image
  bool mean_is_resized_ = false;  // whether mean_ has the resized size
  std::string raw_;
  Image decoded_, resized_;
};

// Returns the only input of the net. Throws kConfig if the net does not have exactly one.
InputBlob ImageInput(const Net& net);

// Creates a source that fills ImageInput with images in order. Its Fill throws as
// ImagePreprocessor::Read and ImagePaths do.
std::unique_ptr<BlobSource> MakeImageSource(ImagePaths paths, const PreprocessOptions& options,
                                            const Net& net);

}  // namespace trainer
