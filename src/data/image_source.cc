#include "trainer/data/image_source.h"

#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer {

class ImageSource::ImageDecoder final : public Decoder {
 public:
  explicit ImageDecoder(const ImageSource& source)
      : source_(source), parser_(source.MakeParser()), last_stored_(source.first_stored_) {}

  void Decode(std::span<const RawRecord> records, Batch* batch) override {
    for (const RawRecord& record : records) DecodeOne(record, batch);
  }

 private:
  void DecodeOne(const RawRecord& record, Batch* batch) {
    const DatumView& datum = parser_->Parse(record);
    CheckShape(datum, record);
    Write(datum, record, batch);
    if (batch->num_outputs() < 2) return;
    if (!datum.has_label) {
      throw Error(ErrorCode::kData, {source_.path()},
                  Join("record ", QuoteKey(record.key),
                       " has no label; remove the layer's second top, or label the records"));
    }
    batch->output(1)[static_cast<size_t>(record.slot)] = static_cast<float>(datum.label);
  }

  void Write(const DatumView& datum, const RawRecord& record, Batch* batch) const {
    const int64_t at = record.slot * source_.image_.Count();
    if (!batch->holds_bytes()) {
      source_.transform_.Apply(datum, record.number, batch->output(0).data() + at);
      return;
    }
    if (datum.bytes.empty()) {
      throw Error(ErrorCode::kData, {source_.path()},
                  Join("record ", QuoteKey(record.key), " holds floats and record ",
                       QuoteKey(source_.first_key_),
                       " bytes; this device takes one kind: store all records alike"));
    }
    batch->windows()[static_cast<size_t>(record.slot)] =
        source_.transform_.Cut(datum, record.number, batch->pixels().data() + at);
  }

  void CheckShape(const DatumView& datum, const RawRecord& record) {
    const ImageShape stored{datum.channels, datum.height, datum.width};
    if (stored == last_stored_) return;
    const ImageShape image = source_.transform_.OutShape(datum, QuoteKey(record.key));
    if (image != source_.image_) {
      throw Error(ErrorCode::kData, {source_.path()},
                  Join("record ", QuoteKey(record.key), " gives a ", image.ToString(),
                       " image, but record ", QuoteKey(source_.first_key_), " gave ",
                       source_.image_.ToString(),
                       "; one batch holds one shape: set crop_size, or resize the images"));
    }
    last_stored_ = stored;
  }

  const ImageSource& source_;
  std::unique_ptr<RecordParser> parser_;
  ImageShape last_stored_;  // of the last record, checked already
};

std::vector<Shape> ImageSource::Shapes(int64_t batch_size, bool labels) {
  RawRecord record;
  Fetch(&record);
  const std::unique_ptr<RecordParser> parser = MakeParser();
  const DatumView& first = parser->Parse(record);
  first_key_ = record.key;
  first_stored_ = {first.channels, first.height, first.width};
  image_ = transform_.OutShape(first, QuoteKey(first_key_));
  if (!first.bytes.empty()) numbers_ = transform_.Numbers();
  std::vector<Shape> shapes{{batch_size, image_.channels, image_.height, image_.width}};
  if (labels) shapes.push_back({batch_size});
  return shapes;
}

std::unique_ptr<Decoder> ImageSource::MakeDecoder() const {
  return std::make_unique<ImageDecoder>(*this);
}

}  // namespace trainer
