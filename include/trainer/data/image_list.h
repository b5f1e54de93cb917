#pragma once
// Image files named in a list: what ImageData reads and `trainer dataset images` converts.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/random/philox.h"
#include "trainer/base/ranks/rank.h"
#include "trainer/config/layer_spec.h"
#include "trainer/data/file_pack.h"
#include "trainer/data/prefetcher.h"
#include "trainer/image/image.h"

namespace trainer {

struct ListedImage {
  std::string path;  // as the list has it
  int32_t label = 0;
  int line = 0;       // from 1
  size_t number = 0;  // in its list, from 0
};

// Reads lines "path label", split at the last space, so that paths may hold blanks; lines may end
// as Windows ends them, and empty ones are skipped. Throws kNoInput, kNoPermission, kIo; kData with
// the line for a missing path or a label that is no whole number of 32 bits; kData without lines.
std::vector<ListedImage> ReadImageList(const std::string& path);

// How the files become pictures of one kind.
struct ImageReading {
  std::string root;  // put before each path, as it is written
  Colors colors = Colors::kColor;
  int height = 0, width = 0;       // resized to this; 0: not
  const FilePack* pack = nullptr;  // that is read instead of the files, where there is one
  int short_side = 0;  // the shorter side is resized to this, the other in proportion; 0: not

  BitDepth depth = BitDepth::kBytes;  // where images are not resized

  bool Resizes() const { return height > 0 || short_side > 0; }
};

// What an ImageData layer's image_data_param asks for. Throws kConfig at the field's line:
// new_height without new_width, short_side with either, a side that is too long.
ImageReading ReadImageReading(const LayerSpec& layer);

// Reads and resizes one file; `raw` gets its bytes and is reused, as `image` is. Throws with the
// list's line: the errors of ReadFile and DecodeImage, and kData for a size that resizing would
// bring above kMaxPixels.
void ReadListedImage(const std::string& list, const ListedImage& listed,
                     const ImageReading& reading, std::string* raw, Image* image);

// As much of a file as `choose` asks for: see DecodePart. For a reading that does not resize.
void ReadListedPart(const std::string& list, const ListedImage& listed, const ImageReading& reading,
                    const ChoosePart& choose, std::string* raw, Image* image, HeldPart* held);

// The source that an ImageData layer's image_data_param and transform_param ask for. An order is
// drawn for each epoch from the key and the epoch's number. Throws as ReadPrefetchOptions and
// ReadImageList and ReadImageReading do, and kConfig at the field's line: no source, rand_skip
// above the number of images.
std::unique_ptr<Prefetcher> MakeImagePrefetcher(const LayerSpec& layer, const ReadingEnv& env);

}  // namespace trainer
