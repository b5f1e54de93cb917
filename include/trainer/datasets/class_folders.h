#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/input/image_list.h"

namespace trainer {

struct ClassFolders {
  std::vector<std::string> names;     // class names in byte order; the index is the label
  std::vector<ListedImage> images;    // paths relative to the folder, by class, in byte order
  std::map<std::string, int> others;  // number of other files by ".type"
};

// Finds the files *.jpg, *.jpeg, *.png, *.pgm and *.ppm, also in subfolders of the classes. Skips
// names that begin with a dot. Throws kNoInput: the folder does not exist; kNoPermission, kIo;
// kData for a folder without subfolders, without images, or with a class without any.
ClassFolders FindClassFolders(const std::string& folder);

// "Passed over 3 other files (.bmp 1, .webp 2); images are ..."; "" if there are none.
std::string OthersText(const ClassFolders& found);

}  // namespace trainer
