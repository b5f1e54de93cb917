#pragma once

#include <string>

#include "trainer/data/image_list.h"
#include "trainer/dataset/images.h"
#include "trainer/image/image.h"

namespace trainer {

// A picture as it goes into a set. Its memory is used again.
struct ConvertedImage {
  size_t index = 0;  // in the order of writing
  StoredRecord record;
  int height = 0, width = 0;
  std::string problem;  // why the file cannot be used; "" where it can

  std::string raw;  // the file
  Image image;
};

// Makes records of files. Any thread.
class ImageConverter {
 public:
  // `where`: the list, or the folder, for messages. The options must outlive it.
  ImageConverter(const ImagesOptions& options, std::string where);

  // Fills all but index and key.
  void Convert(const ListedImage& listed, ConvertedImage* to) const;

 private:
  void Fit(const ListedImage& listed, Image* image) const;
  std::string Encoded(const ListedImage& listed, bool resized, const ConvertedImage& from) const;

  const ImagesOptions& options_;
  std::string where_;
  ImageReading reading_;
};

}  // namespace trainer
