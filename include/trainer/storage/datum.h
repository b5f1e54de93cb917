#pragma once
// One record of a database: Caffe's Datum message.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/image/image.h"

namespace caffe {
class Datum;
}

namespace trainer {

// A decoded record. Its arrays point into a database or a DatumParser.
struct DatumView {
  int32_t channels = 0, height = 0, width = 0;
  int32_t label = 0;
  bool has_label = false;
  // Set instead of `label` if the record has several labels, or one that is not an integer.
  std::span<const float> labels;
  size_t LabelCount() const { return labels.empty() ? 1 : labels.size(); }
  // The values (C, H, W) in row-major order: either `bytes` or `floats` is empty.
  std::string_view bytes;
  std::span<const float> floats;

  // Set if only a part was decoded: `bytes` has the part's height and width. See DecodedRegion.
  struct Part {
    int32_t top = 0, left = 0, height = 0, width = 0, scale_denom = 1;
  };
  std::optional<Part> part;
  Part Held() const { return part.value_or(Part{0, 0, height, width, 1}); }

  // "3x256x256"
  std::string ShapeText() const;
};

// Decodes records one after the other; the memory is reused. Used by one thread at a time.
class DatumParser {
 public:
  // `colors` and `depth` apply to encoded images.
  explicit DatumParser(ColorMode colors = ColorMode::kAsStored, BitDepth depth = BitDepth::kFloats)
      : colors_(colors), depth_(depth) {}

  // `path` and `key` are only for messages. The view is valid until the next call and as long as
  // `value`. An encoded image has the shape that it decodes to, whatever the record says. `choose`,
  // if not null, says which part of an encoded image is needed.
  //
  // Throws kData if `value` is not a Datum, has no values, has both bytes and floats, or has a
  // number of values that is not C*H*W; throws as DecodeImage does.
  const DatumView& Parse(const std::string& path, std::string_view key, std::string_view value,
                         const CropChooser* choose = nullptr);

 private:
  bool Decode(std::string_view value);

  ColorMode colors_;
  BitDepth depth_;
  DatumView view_;
  bool encoded_ = false;
  std::vector<float> floats_, labels_;
  Image image_;
};

// Returns the label of a record; no value if it has none. Skips its values without reading them.
// Throws kData as DatumParser does if `value` is not a Datum.
std::optional<int32_t> ReadDatumLabel(const std::string& path, std::string_view key,
                                      std::string_view value);

// Returns a number as a class label if it is a 32-bit integer.
std::optional<int32_t> IntegerLabel(float number);

// Returns a record of this shape without values or a label.
caffe::Datum EmptyDatum(int channels, int height, int width);
// Copies the label or labels of a record.
void SetLabels(const DatumView& from, caffe::Datum* to);
// Sets numbers as the labels of a record: a single one that is a 32-bit integer as its label.
void SetLabels(std::span<const float> numbers, caffe::Datum* to);

// Returns the image as a record without a label.
DatumView ViewOf(const Image& image);
DatumView ViewOf(const Image& image, const DecodedRegion& held);

}  // namespace trainer
