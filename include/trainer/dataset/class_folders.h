#pragma once
// A folder of pictures in which each class has a folder.

#include <map>
#include <string>
#include <vector>

#include "trainer/data/image_list.h"

namespace trainer {

struct ClassFolders {
  std::vector<std::string> names;     // of the classes, in byte order: label 0 is the first
  std::vector<ListedImage> images;    // paths from the folder, class by class, in byte order
  std::map<std::string, int> others;  // files that are no images by their names, by ".type"
};

// Finds the files *.jpg, *.jpeg, *.png, *.pgm and *.ppm, in folders below those of the classes too.
// What begins with a dot is passed over. Throws kNoInput: no such folder; kNoPermission, kIo; kData
// for one without folders, without pictures, or with a class without any.
ClassFolders FindClassFolders(const std::string& folder);

// "Passed over 3 other files (.bmp 1, .webp 2); images are ..."; "" where there are none.
std::string OthersText(const ClassFolders& found);

}  // namespace trainer
