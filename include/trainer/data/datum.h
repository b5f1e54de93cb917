#pragma once
// One record of a database: Caffe's Datum message.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/image/image.h"

namespace trainer {

// A decoded record that points into memory of its source: a database, a DatumParser.
struct DatumView {
  int32_t channels = 0, height = 0, width = 0;
  int32_t label = 0;
  bool has_label = false;
  // The numbers (C, H, W) in row-major order: exactly one of the two is filled.
  std::string_view bytes;
  std::span<const float> floats;

  // Of an image that was decoded in part: what `bytes` holds of it, (C, part's height, width). See
  // HeldPart.
  struct Part {
    int32_t top = 0, left = 0, height = 0, width = 0, shrink = 1;
  };
  std::optional<Part> part;
  Part Held() const { return part.value_or(Part{0, 0, height, width, 1}); }

  // "3x256x256"
  std::string ShapeText() const;
};

// Decodes records one after the other; its memory is reused, so that a warm parser of raw numbers
// allocates nothing. One thread at a time.
class DatumParser {
 public:
  // `colors` and `depth`: of encoded images.
  explicit DatumParser(Colors colors = Colors::kAsStored, BitDepth depth = BitDepth::kBytes)
      : colors_(colors), depth_(depth) {}

  // `path` and `key` are only for messages. The view lasts until the next call, and no longer than
  // `value`. An encoded image has the shape that it decodes to, whatever the record says. Throws
  // kData: not a Datum, no numbers, bytes and floats both, a count that is not C*H*W, and an image
  // that DecodeImage refuses.
  // `choose`, where it is not null, says which part of an encoded image is wanted.
  const DatumView& Parse(const std::string& path, std::string_view key, std::string_view value,
                         const ChoosePart* choose = nullptr);

 private:
  bool Decode(std::string_view value);
  DatumView DecodeEncoded(const std::string& path, std::string_view key, const ChoosePart* choose);

  Colors colors_;
  BitDepth depth_;
  DatumView view_;
  bool encoded_ = false;
  std::vector<float> floats_;
  Image image_;
};

// The image as a record without a label.
DatumView ViewOf(const ImageView& image);
DatumView ViewOf(const Image& image);
DatumView ViewOf(const Image& image, const HeldPart& held);

}  // namespace trainer
