#pragma once

#include <functional>
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

  // Says what is wanted of a record's picture that stays on the device. False: it is not for the
  // unit.
  using ChooseCuts =
      std::function<bool(const RawRecord& record, const PictureForm& form, PictureCuts* cuts)>;

  // Decodes those of the first records, one at least, of which `parser` says where their pictures
  // are, to the host where `choose` is empty. Returns how many records that were.
  size_t Decode(std::span<const RawRecord> records, RecordParser* parser, const ChooseCuts& choose);
  // The picture of record i of these, without pixels where they stay on the device; nothing where
  // the unit did not decode it. Valid until the next call.
  std::optional<ImageView> Of(size_t i) const;

 private:
  std::unique_ptr<JpegUnit> unit_;
  Colors colors_;
  int channels_;
  std::vector<JpegTask> tasks_;
};

}  // namespace trainer
