#pragma once
// One record of a database: Caffe's Datum message.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// A decoded record that points into the database's memory: valid as long as the record's value.
struct DatumView {
  int32_t channels = 0, height = 0, width = 0;
  int32_t label = 0;
  bool has_label = false;
  // The numbers (C, H, W) in row-major order: exactly one of the two is filled.
  std::string_view bytes;
  std::span<const float> floats;

  // "3x256x256"
  std::string ShapeText() const;
};

// Decodes records one after the other; its memory is reused, so that a warm parser allocates
// nothing. One thread at a time.
class DatumParser {
 public:
  // `path` and `key` are only for messages. The view lasts until the next call. Throws
  //   kData         not a Datum, no numbers, bytes and floats both, or a count that is not C*H*W
  //   kUnavailable  an encoded image: only raw numbers are read
  const DatumView& Parse(const std::string& path, std::string_view key, std::string_view value);

 private:
  bool Decode(std::string_view value);

  DatumView view_;
  bool encoded_ = false;
  std::vector<float> floats_;
};

}  // namespace trainer
