#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "trainer/data/image_source.h"
#include "trainer/image/jpeg_unit.h"

namespace trainer {

// Pictures of some records that are decoded together, before the records are looked at one by one.
// Used by one thread.
class JpegsAhead {
 public:
  // For records whose pictures give `channels` with these colors.
  JpegsAhead(std::unique_ptr<JpegUnit> unit, Colors colors, int channels)
      : unit_(std::move(unit)), colors_(colors), channels_(channels) {}

  // Decodes those of the first records, one at least, of which `parser` says where their pictures
  // are. Returns how many records that were.
  size_t Decode(std::span<const RawRecord> records, RecordParser* parser);
  // The picture of record i of these; nothing where the unit did not decode it. Valid until the
  // next call.
  std::optional<ImageView> Of(size_t i) const;

 private:
  std::unique_ptr<JpegUnit> unit_;
  Colors colors_;
  int channels_;
  std::vector<JpegTask> tasks_;
};

}  // namespace trainer
