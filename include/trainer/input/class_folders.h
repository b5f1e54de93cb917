#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/input/image_list.h"

namespace trainer {

// The name of the file with the class names of a data set, in the folder of the set: a line per
// class, class 0 first.
inline constexpr char kLabelsName[] = "labels.txt";

struct ClassFolders {
  std::vector<std::string> names;     // class names in byte order; the index is the label
  std::vector<ListedImage> images;    // paths relative to the folder, by class, in byte order
  std::map<std::string, int> others;  // number of other files by ".type"
};

// Whether a class without images is accepted. Then the folder of a test set can keep the numbers of
// the classes although it lacks images of one of them.
enum class EmptyClasses { kRefuse, kAccept };

// Returns the names of the subfolders in byte order, without those that begin with a dot: the class
// names. Throws as FindClassFolders.
std::vector<std::string> FindClassNames(const std::string& folder);

// Finds the files *.jpg, *.jpeg, *.png, *.tif, *.tiff, *.pgm and *.ppm, also in subfolders of the
// classes. Skips names that begin with a dot. Throws kNoInput: the folder does not exist;
// kNoPermission, kIo; kData for a folder without subfolders, without images, or with a class
// without any.
ClassFolders FindClassFolders(const std::string& folder,
                              EmptyClasses empty = EmptyClasses::kRefuse);

// "Passed over 3 other files (.bmp 1, .webp 2); images are ..."; "" if there are none.
std::string OthersText(const ClassFolders& found);

}  // namespace trainer
