#pragma once
// Lists of image files, which ImageData reads and `trainer dataset images` converts.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/random/philox.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/config/layer_spec.h"
#include "trainer/image/image.h"
#include "trainer/storage/file_pack.h"

namespace trainer {

struct ListedImage {
  std::string path;  // as the list has it
  int32_t label = 0;
  int line = 0;       // from 1
  size_t number = 0;  // in its list, from 0
};

// Reads lines "path label", split at the last space, so that paths may contain spaces. Lines may
// end with CR LF, and empty ones are skipped. Throws kNoInput, kNoPermission, kIo; kData with the
// line for a missing path or a label that is not a 32-bit integer; kData for an empty list.
std::vector<ListedImage> ReadImageList(const std::string& path);

// How files are decoded to images of one kind.
struct ImageFileOptions {
  std::string root;  // put before each path, as it is written
  ColorMode colors = ColorMode::kColor;
  int height = 0, width = 0;       // resized to this; 0: not
  const FilePack* pack = nullptr;  // that is read instead of the files, where there is one
  int short_side = 0;  // the shorter side is resized to this, the other in proportion; 0: not

  BitDepth depth = BitDepth::kBytes;  // where images are not resized

  bool Resizes() const { return height > 0 || short_side > 0; }
};

// Reads image_data_param of an ImageData layer. Throws kConfig at the field's line: new_height
// without new_width, short_side with either, a side that is too long.
ImageFileOptions ReadImageFileOptions(const LayerSpec& layer);

// Reads and resizes one file. `raw` gets its bytes; `raw` and `image` are reused. Throws with the
// list's line: the errors of ReadFile and DecodeImage, and kData for a size that resizing would
// bring above kMaxPixels.
void LoadListedImage(const std::string& list, const ListedImage& listed,
                     const ImageFileOptions& reading, std::string* raw, Image* image);

// Reads the part of a file that `choose` asks for: see DecodeRegion. Only for options that do not
// resize.
void LoadListedRegion(const std::string& list, const ListedImage& listed,
                      const ImageFileOptions& reading, const CropChooser& choose, std::string* raw,
                      Image* image, DecodedRegion* held);

}  // namespace trainer
