// Decodes a picture in all three ways, resizes it as ImageData does, and decodes a part.

#include "fuzz/fuzz_target.h"
#include "trainer/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using trainer::ColorMode;
  for (const ColorMode colors : {ColorMode::kAsStored, ColorMode::kColor, ColorMode::kGray}) {
    trainer::ExpectRefusalOrSuccess([&] {
      static trainer::Image image, small;
      const std::string_view bytes(reinterpret_cast<const char*>(data), size);
      trainer::DecodeImage(bytes, colors, {"db"}, "record 'key'", &image);
      trainer::ResizeImage(image, {0, 0, image.width, image.height}, 3, 5, &small);
    });
    trainer::ExpectRefusalOrSuccess([&] {
      static trainer::Image part;
      trainer::DecodedRegion held;
      const trainer::CropChooser middle = [](int height, int width) {
        return trainer::CropRequest{
            {width / 3, height / 3, (width + 2) / 3, (height + 2) / 3}, 3, 5};
      };
      const std::string_view bytes(reinterpret_cast<const char*>(data), size);
      trainer::DecodeImage(bytes, colors, {"db"}, "record 'key'", &part, trainer::BitDepth::kBytes,
                           &middle, &held);
    });
  }
  return 0;
}
