#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/datasets/convert.h"
#include "trainer/storage/record_writer.h"

namespace trainer {

// How an image is resized to height x width.
enum class ImageFit {
  kExact,  // stretched
  kShort,  // in proportion, until both sides are at least that long
  kPad,    // in proportion, until both sides are at most that long; the rest is black
};

struct ImagesOptions {
  std::string root;  // put before each path of the list, with a '/'; or a folder for each class
  std::string list;  // "": the pictures are in folders of root, one for each class
  WriteOptions output;
  bool gray = false;          // 1 channel instead of 3
  int height = 0, width = 0;  // of all pictures; 0: each keeps its own
  ImageFit fit = ImageFit::kExact;
  bool shuffle = false;     // the order in which they are written
  uint64_t seed = 1;        // of that order, and of the choice for validation
  bool check_size = false;  // refuse pictures of different sizes
  bool encoded = false;     // keep the files' bytes, or JPEG or PNG where they had to be changed
  std::string encode_type;  // "jpg" or "png" for all; implies encoded
  int quality = 95;         // of a JPEG that is made, 1 to 100
  int threads = 1;
  SplitSize validation;         // of each label that part goes into another set,
  std::string validation_path;  // this one; "": named by ValidationPath
  std::string labels;  // of folders: the file of class names; "": labels.txt beside the set
  std::string mean;    // the mean of the (training) pictures goes here; "": nowhere
};

struct ImagesResult {
  int64_t records = 0, validation_records = 0;
  int64_t skipped = 0;  // files that could not be read; each is logged
  struct Class {
    std::string name;  // of its folder; "" in a list
    int32_t label = 0;
    int64_t records = 0, validation_records = 0;
  };
  std::vector<Class> classes;   // by label
  std::string validation_path;  // "" without validation
  std::string labels;           // the file that names the classes; "" for a list
};

// Writes the images of a list or of folders, with keys "%08d_<path>"; the number is the image's
// index in the order of writing. The result does not depend on the number of threads. Errors: as
// ReadImageList, FindClassFolders and OpenRecordWriter throw; kData if no image could be read, or
// check_size finds another size; kCannotCreate for a file of labels that names other classes.
ImagesResult WriteImages(const ImagesOptions& options);

// Returns "val_lmdb" for "train_lmdb", "set_val.tar" for "set.tar".
std::string ValidationPath(const std::string& path);

}  // namespace trainer
