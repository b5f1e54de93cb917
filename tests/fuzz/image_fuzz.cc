// A picture, decoded in each of the three ways and resized as ImageData does.

#include "fuzz/fuzz_target.h"
#include "trainer/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using trainer::Colors;
  for (const Colors colors : {Colors::kAsStored, Colors::kColor, Colors::kGray}) {
    trainer::ExpectRefusalOrSuccess([&] {
      static trainer::Image image, small;
      const std::string_view bytes(reinterpret_cast<const char*>(data), size);
      trainer::DecodeImage(bytes, colors, {"db"}, "record 'key'", &image);
      trainer::ResizeImage(image, {0, 0, image.width, image.height}, 3, 5, &small);
    });
  }
  return 0;
}
