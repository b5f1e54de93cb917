#pragma once
// Decoders for images, shared by databases, image lists, window lists and images in memory.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/input/decoder.h"
#include "trainer/input/transform.h"
#include "trainer/storage/datum.h"

namespace trainer {

// Loads one record after the other as an image with its label. Each worker has its own.
class ImageLoader {
 public:
  virtual ~ImageLoader() = default;
  // The view is valid until the next call, and no longer than the record. `wanted`, if not null,
  // says which part of the image is needed; the loader may load more.
  virtual const DatumView& Load(const Record& record, const CropChooser* wanted) = 0;
};

// Output 0 is the transformed images (N, C, H, W); the crops of a record follow each other. Output
// 1 is the labels: (N), (N, K) if records have K labels, or (N, classes) with mixup or CutMix.
// Decoders throw kData for another shape or number of labels than the first one's, a missing label,
// and floats in a batch of bytes.
class ImageDecoderFactory final : public DecoderFactory {
 public:
  // Makes a loader, which decodes to `depth`.
  using MakeLoader = std::function<std::unique_ptr<ImageLoader>(BitDepth depth)>;

  ImageDecoderFactory(Transform transform, MakeLoader make_loader);

  // Takes the shape and type of all records from the first (good) one.
  void Inspect(RecordSampler& sampler) override;
  std::vector<Shape> Shapes(int64_t batch_size, bool labels) const override;
  const Normalization* normalization() const override {
    return normalization_ ? &*normalization_ : nullptr;
  }
  std::unique_ptr<Decoder> Make() const override;
  double decode_seconds() const override { return decode_seconds_; }
  bool mixes() const override { return transform_.mix_classes() > 0; }
  void Mix(int64_t batch_size, Batch* batch) const override;

 private:
  class ImageDecoder;

  Transform transform_;
  MakeLoader make_loader_;
  BitDepth depth_;  // of the loaders; if the first record has bytes, all must have
  std::string path_;
  // Of the first record: key, stored shape, transformed shape, normalization, time of decoding.
  std::string first_key_;
  ImageShape first_stored_, image_;
  size_t label_count_ = 1;  // labels per record
  std::optional<Normalization> normalization_;
  double decode_seconds_ = 0;
};

}  // namespace trainer
