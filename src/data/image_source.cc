#include "trainer/data/image_source.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "jpegs_ahead.h"
#include "stage_clock.h"
#include "trainer/base/error.h"
#include "trainer/base/paced_ops.h"
#include "trainer/base/text.h"
#include "trainer/data/bad_records.h"

namespace trainer {

class ImageSource::ImageDecoder final : public Decoder {
 public:
  explicit ImageDecoder(const ImageSource& source)
      : source_(source), parser_(source.MakeParser()), last_stored_(source.first_stored_) {}

  void Decode(std::span<const RawRecord> records, Batch* batch) override {
    if (source_.jpegs_ != nullptr) return DecodeTogether(records, batch);
    for (const RawRecord& record : records) DecodeOne(record, std::nullopt, batch);
  }

  double AugmentShare() const override { return measured_ > 0 ? augment_seconds_ / measured_ : 0; }

 private:
  static constexpr uint64_t kOfSo = 16;  // one record of so many is measured

  void DecodeTogether(std::span<const RawRecord> records, Batch* batch) {
    if (ahead_ == nullptr) {
      ahead_ =
          std::make_unique<JpegsAhead>(source_.jpegs_->MakeJpegUnit(), source_.transform_.colors(),
                                       static_cast<int>(source_.first_stored_.channels));
    }
    JpegsAhead::ChooseCuts choose;
    if (batch->has_device_pixels()) {
      choose = [this, batch](const RawRecord& record, const PictureForm& form, PictureCuts* cuts) {
        return ChooseCuts(record, form, batch, cuts);
      };
    }
    while (!records.empty()) {
      const double begin = StageNow();
      const size_t count = ahead_->Decode(records, parser_.get(), choose);
      measured_ += (StageNow() - begin) / static_cast<double>(kOfSo);
      for (size_t i = 0; i < count; ++i) DecodeOne(records[i], ahead_->Of(i), batch);
      records = records.subspan(count);
    }
  }

  // Of a picture that the device is to cut into the record's place. What is wrong with the size of
  // another is said where the host decodes it.
  bool ChooseCuts(const RawRecord& record, const PictureForm& form, Batch* batch,
                  PictureCuts* cuts) const {
    const ImageShape in{form.channels, form.height, form.width};
    if (in != last_stored_ && !FitsBatch(in)) return false;
    const Place place = PlaceOf(record);
    cuts->windows = batch->windows().subspan(place.image, place.images);
    cuts->height = static_cast<int>(source_.image_.height);
    cuts->width = static_cast<int>(source_.image_.width);
    cuts->to = batch->device_pixels() + place.element;
    source_.transform_.ChooseWindows(in, record.number, &batch->windows()[place.image]);
    return true;
  }

  bool FitsBatch(const ImageShape& stored) const {
    DatumView datum;
    datum.channels = static_cast<int32_t>(stored.channels);
    datum.height = static_cast<int32_t>(stored.height);
    datum.width = static_cast<int32_t>(stored.width);
    try {
      return source_.transform_.OutShape(datum, "") == source_.image_;
    } catch (const Error&) {
      return false;
    }
  }

  // Where the images of a record are in its batch.
  struct Place {
    size_t image, images, element;
  };
  Place PlaceOf(const RawRecord& record) const {
    const int64_t crops = source_.transform_.crops(), image = record.slot * crops;
    return {static_cast<size_t>(image), static_cast<size_t>(crops),
            static_cast<size_t>(image * source_.image_.Count())};
  }

  void DecodeOne(const RawRecord& record, const std::optional<ImageView>& decoded, Batch* batch) {
    const bool measured = seen_++ % kOfSo == 0;
    const double begin = measured ? StageNow() : 0;
    const ChoosePart choose = [&](int height, int width) {
      return source_.transform_.Need(height, width, record.number);
    };
    const DatumView& datum =
        decoded ? parser_->ParseDecoded(record, *decoded) : parser_->ParsePart(record, choose);
    const double parsed = measured ? StageNow() : 0;
    CheckShape(datum, record);
    const bool on_device = decoded && decoded->pixels == nullptr;
    if (batch->has_device_pixels()) {
      const Place place = PlaceOf(record);
      std::ranges::fill(batch->on_device().subspan(place.image, place.images), on_device ? 1 : 0);
    }
    if (!on_device) Write(datum, record, batch);
    if (measured) {
      const double end = StageNow();
      augment_seconds_ += end - parsed;
      measured_ += end - begin;
    }
    if (batch->num_outputs() < 2) return;
    if (!datum.has_label) {
      throw Error(ErrorCode::kData, {source_.path()},
                  Join("record ", QuoteKey(record.key),
                       " has no label; remove the layer's second top, or label the records"));
    }
    const int classes = source_.transform_.mix_classes();
    if (classes == 0) {
      batch->output(1)[static_cast<size_t>(record.slot)] = static_cast<float>(datum.label);
      return;
    }
    if (datum.label < 0 || datum.label >= classes) {
      throw Error(ErrorCode::kData, {source_.path()},
                  Join("record ", QuoteKey(record.key), " has label ", datum.label,
                       ", and mixup_classes is ", classes, ": labels are 0 to ", classes - 1));
    }
    batch->output(1)[static_cast<size_t>(record.slot * classes)] = static_cast<float>(datum.label);
    batch->numbers()[static_cast<size_t>(record.slot)] = record.number;
  }

  void Write(const DatumView& datum, const RawRecord& record, Batch* batch) const {
    const Place place = PlaceOf(record);
    if (!batch->holds_bytes()) {
      source_.transform_.Apply(datum, record.number, batch->output(0).data() + place.element);
      return;
    }
    if (datum.bytes.empty()) {
      throw Error(ErrorCode::kData, {source_.path()},
                  Join("record ", QuoteKey(record.key), " holds floats and record ",
                       QuoteKey(source_.first_key_),
                       " bytes; this device takes one kind: store all records alike"));
    }
    source_.transform_.Cut(datum, record.number, batch->pixels().data() + place.element,
                           batch->windows().data() + place.image);
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
  std::unique_ptr<JpegsAhead> ahead_;
  ImageShape last_stored_;  // of the last record, checked already
  uint64_t seen_ = 0;       // records
  double augment_seconds_ = 0, measured_ = 0;
};

std::vector<Shape> ImageSource::Shapes(int64_t batch_size, bool labels) {
  LookAtFirst();
  std::vector<Shape> shapes{
      {batch_size * transform_.crops(), image_.channels, image_.height, image_.width}};
  const int classes = transform_.mix_classes();
  if (labels) shapes.push_back(classes > 0 ? Shape{batch_size, classes} : Shape{batch_size});
  if (classes > 0 && !labels) {
    throw Error(ErrorCode::kConfig, {path()},
                "mixup needs labels to mix: give the layer a second top");
  }
  part_items_ = batch_size;
  return shapes;
}

// The first record says what all are like; where bad ones are skipped, the first good one.
void ImageSource::LookAtFirst() {
  RawRecord record;
  const std::unique_ptr<RecordParser> parser = MakeParser();
  std::exception_ptr failure;  // of the first record
  for (int bad = 0;; ++bad) {
    Fetch(&record);
    try {
      const std::chrono::nanoseconds begin = ThreadTime();
      const DatumView& first = parser->Parse(record);
      decode_seconds_ = std::chrono::duration<double>(ThreadTime() - begin).count();
      first_key_ = record.key;
      first_stored_ = {first.channels, first.height, first.width};
      image_ = transform_.OutShape(first, QuoteKey(first_key_));
      if (!first.bytes.empty()) numbers_ = transform_.Numbers();
      first_encoded_ = !parser->Encoded(record).empty();  // after the last look at `first`
      if (bad > 0) Seek(First());
      return;
    } catch (const Error& error) {
      if (!failure) failure = std::current_exception();
      if (bad > MostBadRecords() || !IsOfOneRecord(error)) std::rethrow_exception(failure);
    }
    Advance(1);
  }
}

bool ImageSource::UseJpegUnits(const DecodesJpegs& device, std::string* why_not) {
  if (!first_encoded_) {
    *why_not = ReadsPictureFiles() ? "each picture is in a file of its own; a database holds many"
                                   : "its records hold pixels, not encoded pictures";
    return false;
  }
  if (transform_.resizes()) {
    *why_not = "of pictures that are resized at random the processor decodes only what they need";
    return false;
  }
  jpegs_ = &device;
  return true;
}

// The batches of several parts follow each other, and each is mixed by itself.
void ImageSource::Complete(Batch* batch) const {
  const auto classes = static_cast<size_t>(transform_.mix_classes());
  if (classes == 0) return;
  const auto items = static_cast<size_t>(part_items_);
  const auto pixels = static_cast<size_t>(image_.Count());
  for (size_t at = 0; at < batch->numbers().size(); at += items) {
    const auto numbers = batch->numbers().subspan(at, items);
    const auto labels = batch->output(1).subspan(at * classes, items * classes);
    if (batch->holds_bytes()) {
      transform_.MixLabels(numbers, batch->shares().subspan(at, items), labels);
    } else {
      transform_.Mix(numbers, batch->output(0).subspan(at * pixels, items * pixels), labels);
    }
  }
}

std::unique_ptr<Decoder> ImageSource::MakeDecoder() const {
  return std::make_unique<ImageDecoder>(*this);
}

}  // namespace trainer
