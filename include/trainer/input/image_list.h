#pragma once
// Lists of image files, which ImageData reads and `trainer dataset images` converts.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"
#include "trainer/image/image.h"
#include "trainer/storage/file_pack.h"

namespace trainer {

struct ListedImage {
  std::string path;   // as written in the list, or relative to the folder
  int32_t label = 0;  // 0 if ImageList::labels holds the labels
  int line = 0;       // counted from 1; 0 in a folder
  size_t number = 0;  // index in its list, from 0
};

struct ImageList {
  std::string path;  // of the list, or of the folder
  std::vector<ListedImage> images;
  int label_count = 1;  // labels per image
  // `label_count` numbers for each image, in order. Empty if each image has one integer, which
  // ListedImage::label holds.
  std::vector<float> labels;
  std::vector<std::string> classes;  // of a folder: names of its subfolders, by label

  // Returns the labels of an image; empty if it has one integer.
  std::span<const float> LabelsOf(const ListedImage& image) const;
};

// Reads lines "path label ...": the path ends before the numbers at the end of the line, so paths
// may contain spaces. Lines may end with CR LF, and empty ones are skipped. Throws kNoInput,
// kNoPermission, kIo; kData with the line for a missing path, no label, a label that is neither a
// 32-bit integer nor a finite number, and another number of labels than in the first line; kData
// for an empty list.
ImageList ReadImageList(const std::string& path);

// Reads a list, or finds the images of a folder that has a subfolder for each class. Throws as
// ReadImageList and FindClassFolders, which accepts empty classes here.
ImageList ReadImages(const std::string& path);

// Returns the prefix of the paths of an ImageData layer's images: `folder`/ if `path`, its source,
// is a folder, else root_folder.
std::string RootOfImages(const std::string& path, const std::string& root_folder);

// Says how files are decoded to images of equal kind.
struct ImageFileOptions {
  std::string root;  // prefixed to each path as it is written
  ColorMode colors = ColorMode::kColor;
  int height = 0, width = 0;       // size after resizing; 0: no resizing
  const FilePack* pack = nullptr;  // read instead of the files, if there is one
  int short_side = 0;  // resizes the shorter side to this, the other in proportion; 0: no

  BitDepth depth = BitDepth::kFloats;

  bool Resizes() const { return height > 0 || short_side > 0; }
};

// Reads image_data_param; `path` is its source as it is opened. Throws kConfig at the field's line
// for sizes that do not fit together, and for root_folder with a folder as source.
ImageFileOptions ReadImageFileOptions(const LayerSpec& layer, const std::string& path);

// Reads and resizes one file, or, with options that do not resize, decodes the part that `choose`
// asks for: see DecodeImage. `raw` receives its bytes. Throws, naming the list's line, as ReadFile
// and DecodeImage do, and kData if the resized image would be larger than kMaxPixels.
void LoadListedImage(const std::string& list, const ListedImage& listed,
                     const ImageFileOptions& reading, std::string* raw, Image* image,
                     const CropChooser* choose = nullptr, DecodedRegion* held = nullptr);

}  // namespace trainer
