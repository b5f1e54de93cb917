#pragma once
// Lists of image files, which ImageData reads and `trainer dataset images` converts.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/layer_spec.h"
#include "trainer/image/image.h"
#include "trainer/storage/file_pack.h"

namespace trainer {

struct ListedImage {
  std::string path;  // as written in the list
  int32_t label = 0;
  int line = 0;       // counted from 1
  size_t number = 0;  // index in its list, from 0
};

// Reads lines "path label", split at the last space, so that paths may contain spaces. Lines may
// end with CR LF, and empty ones are skipped. Throws kNoInput, kNoPermission, kIo; kData with the
// line for a missing path or a label that is not a 32-bit integer; kData for an empty list.
std::vector<ListedImage> ReadImageList(const std::string& path);

// Says how files are decoded to images of equal kind.
struct ImageFileOptions {
  std::string root;  // prefixed to each path as it is written
  ColorMode colors = ColorMode::kColor;
  int height = 0, width = 0;       // size after resizing; 0: no resizing
  const FilePack* pack = nullptr;  // read instead of the files, if there is one
  int short_side = 0;  // resizes the shorter side to this, the other in proportion; 0: no

  BitDepth depth = BitDepth::kBytes;  // of images that are not resized

  bool Resizes() const { return height > 0 || short_side > 0; }
};

// Reads image_data_param. Throws kConfig at the field's line for sizes that do not fit together.
ImageFileOptions ReadImageFileOptions(const LayerSpec& layer);

// Reads and resizes one file, or, with options that do not resize, decodes the part that `choose`
// asks for: see DecodeImage. `raw` receives its bytes. Throws, naming the list's line, as ReadFile
// and DecodeImage do, and kData if the resized image would be larger than kMaxPixels.
void LoadListedImage(const std::string& list, const ListedImage& listed,
                     const ImageFileOptions& reading, std::string* raw, Image* image,
                     const CropChooser* choose = nullptr, DecodedRegion* held = nullptr);

}  // namespace trainer
