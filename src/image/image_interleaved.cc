#include "codecs.h"
#include "trainer/image/image.h"

namespace trainer {

void FromInterleaved(const uint8_t* bytes, int channels, int height, int width, ColorMode colors,
                     Image* image) {
  AllocateImage(channels, height, width, colors, image);
  for (int y = 0; y < height; ++y, bytes += int64_t{width} * channels) {
    StoreRow(bytes, channels, colors, y, image);
  }
}

}  // namespace trainer
