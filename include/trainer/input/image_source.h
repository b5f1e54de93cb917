#pragma once
// Sources of images: what is common to a database, a list of files, a list of windows.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/input/record_source.h"
#include "trainer/input/transform.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/datum.h"

namespace trainer {

// Decodes the records of a source of images one after the other. Used by one thread; the parsers of
// one source run at the same time.
class RecordParser {
 public:
  virtual ~RecordParser() = default;
  // The image and its label; valid until the next call, and no longer than the record.
  virtual const DatumView& Parse(const Record& record) = 0;
  // The same, of which only the part is needed that `choose` says.
  virtual const DatumView& ParsePart(const Record& record, const CropChooser& choose) {
    static_cast<void>(choose);
    return Parse(record);
  }
};

// Output 0: the images as `transform` makes them (N, C, H, W), of several crops those of a record
// behind each other; output 1: the labels (N), of mixed images shares of the classes (N, classes).
// Errors of the decoders: kData also for another shape than the first record's, for no label, and
// in batches of bytes for a record that holds floats.
class ImageSource : public RecordSource {
 public:
  std::vector<Shape> Shapes(int64_t batch_size, bool labels) final;
  const Normalization* normalization() const final { return numbers_ ? &*numbers_ : nullptr; }
  std::unique_ptr<Decoder> MakeDecoder() const final;
  double DecodeSeconds() const final { return decode_seconds_; }
  bool Completes() const final { return transform_.mix_classes() > 0; }
  void Complete(Batch* batch) const final;

 protected:
  explicit ImageSource(Transform transform)
      : transform_(std::move(transform)),
        depth_(transform_.TakesFloats() ? BitDepth::kFloats : BitDepth::kBytes) {}
  const Transform& transform() const { return transform_; }
  // Of the parsers. Where the first record has bytes, all have.
  BitDepth depth() const { return depth_; }
  virtual std::unique_ptr<RecordParser> MakeParser() const = 0;

 private:
  class ImageDecoder;
  void LookAtFirst();

  Transform transform_;
  BitDepth depth_;
  std::string first_key_;                 // of the record that gave the shapes:
  ImageShape first_stored_, image_;       // its own and that of its transformed image
  std::optional<Normalization> numbers_;  // where it held bytes
  double decode_seconds_ = 0;             // of that record
  int64_t part_items_ = 0;                // of the batch of one part
};

}  // namespace trainer
