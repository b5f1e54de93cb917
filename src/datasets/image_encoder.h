#pragma once

#include <string>

#include "trainer/datasets/from_images.h"
#include "trainer/image/image.h"
#include "trainer/input/image_list.h"

namespace trainer {

// A picture as it goes into a set. Its memory is used again.
struct EncodedImage {
  size_t index = 0;  // in the order of writing
  StoredRecord record;
  int height = 0, width = 0;
  std::string problem;  // why the file cannot be used; "" where it can

  std::string raw;  // the file
  Image image;
};

// Makes records of files. Any thread.
class ImageEncoder {
 public:
  // `where`: the list, or the folder, for messages. The options must outlive it.
  ImageEncoder(const ImagesOptions& options, std::string where);

  // Fills all but index and key.
  void Convert(const ListedImage& listed, EncodedImage* to) const;

 private:
  void Fit(const ListedImage& listed, Image* image) const;
  std::string Encoded(const ListedImage& listed, bool resized, const EncodedImage& from) const;

  const ImagesOptions& options_;
  std::string where_;
  ImageFileOptions reading_;
};

}  // namespace trainer
