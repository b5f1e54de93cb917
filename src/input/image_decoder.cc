#include "trainer/input/image_decoder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "input_clock.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/paced_ops.h"
#include "trainer/base/text/text.h"
#include "trainer/input/bad_records.h"
#include "trainer/storage/cursor.h"

namespace trainer {

class ImageDecoderFactory::ImageDecoder final : public Decoder {
 public:
  explicit ImageDecoder(const ImageDecoderFactory& factory)
      : factory_(factory),
        loader_(factory.make_loader_(factory.depth_)),
        last_stored_(factory.first_stored_) {}

  void Decode(std::span<const Record> records, Batch* batch) override {
    for (const Record& record : records) DecodeOne(record, batch);
  }

  double transform_fraction() const override {
    return measured_ > 0 ? transform_seconds_ / measured_ : 0;
  }

 private:
  static constexpr uint64_t kMeasuredOf = 16;  // one record of so many is measured

  void DecodeOne(const Record& record, Batch* batch) {
    const bool measured = seen_++ % kMeasuredOf == 0;
    const double begin = measured ? InputNow() : 0;
    const CropChooser wanted = [&](int height, int width) {
      return factory_.transform_.CropFor(height, width, record.number);
    };
    const DatumView& datum = loader_->Load(record, &wanted);
    const double loaded = measured ? InputNow() : 0;
    CheckShape(datum, record);
    Write(datum, record, batch);
    if (measured) {
      const double end = InputNow();
      transform_seconds_ += end - loaded;
      measured_ += end - begin;
    }
    if (batch->num_outputs() < 2) return;
    if (!datum.has_label) {
      throw Error(ErrorCode::kData, {factory_.path_},
                  Join("record ", QuoteKey(record.key),
                       " has no label; remove the layer's second top, or label the records"));
    }
    WriteLabels(datum, record, batch);
  }

  void WriteLabels(const DatumView& datum, const Record& record, Batch* batch) const {
    const int classes = factory_.transform_.mix_classes();
    if (datum.LabelCount() != factory_.label_count_ || (classes > 0 && !datum.labels.empty())) {
      FailLabels(datum, record);
    }
    if (classes == 0) {
      float* const to =
          batch->output(1).data() + static_cast<size_t>(record.batch_index) * factory_.label_count_;
      *to = static_cast<float>(datum.label);
      std::ranges::copy(datum.labels, to);
      return;
    }
    if (datum.label < 0 || datum.label >= classes) {
      throw Error(
          ErrorCode::kData, {factory_.path_},
          Join("record ", QuoteKey(record.key), " has label ", datum.label,
               ", but mixup_classes is ", classes, ", so labels must be 0 to ", classes - 1));
    }
    batch->output(1)[static_cast<size_t>(record.batch_index * classes)] =
        static_cast<float>(datum.label);
    batch->numbers()[static_cast<size_t>(record.batch_index)] = record.number;
  }

  [[noreturn]] void FailLabels(const DatumView& datum, const Record& record) const {
    if (factory_.transform_.mix_classes() > 0) {
      throw Error(ErrorCode::kData, {factory_.path_},
                  Join("record ", QuoteKey(record.key), " has ",
                       datum.labels.size() == 1 ? Join("the label ", datum.labels[0])
                                                : Counted(datum.labels.size(), "label"),
                       ", but ", factory_.transform_.mix_field(),
                       " mixes one class per record; remove ", factory_.transform_.mix_field()));
    }
    throw Error(ErrorCode::kData, {factory_.path_},
                Join("record ", QuoteKey(record.key), " has ", Counted(datum.LabelCount(), "label"),
                     ", but record ", QuoteKey(factory_.first_key_), " has ",
                     Counted(factory_.label_count_, "label"),
                     "; all records must have the same number of labels"));
  }

  void Write(const DatumView& datum, const Record& record, Batch* batch) const {
    const int64_t image = record.batch_index * factory_.transform_.crops();
    const int64_t element = image * factory_.image_.Count();
    if (!batch->has_bytes()) {
      factory_.transform_.ToFloats(datum, record.number, batch->output(0).data() + element);
      return;
    }
    if (datum.bytes.empty()) {
      throw Error(ErrorCode::kData, {factory_.path_},
                  Join("record ", QuoteKey(record.key), " has float values, but record ",
                       QuoteKey(factory_.first_key_),
                       " has bytes; on this device all records must have the same type: convert "
                       "the data set"));
    }
    factory_.transform_.CropBytes(datum, record.number, batch->pixels().data() + element,
                                  batch->crop_offsets().data() + image);
  }

  void CheckShape(const DatumView& datum, const Record& record) {
    const ImageShape stored{datum.channels, datum.height, datum.width};
    if (stored == last_stored_) return;
    const ImageShape image = factory_.transform_.OutShape(datum, QuoteKey(record.key));
    if (image != factory_.image_) {
      throw Error(ErrorCode::kData, {factory_.path_},
                  Join("record ", QuoteKey(record.key), " gives a ", image.ToString(),
                       " image, but record ", QuoteKey(factory_.first_key_), " gave ",
                       factory_.image_.ToString(),
                       "; all images of a batch must have the same shape: set crop_size, or resize "
                       "the images"));
    }
    last_stored_ = stored;
  }

  const ImageDecoderFactory& factory_;
  std::unique_ptr<ImageLoader> loader_;
  ImageShape last_stored_;  // of the last record, checked already
  uint64_t seen_ = 0;       // records
  double transform_seconds_ = 0, measured_ = 0;
};

ImageDecoderFactory::ImageDecoderFactory(Transform transform, MakeLoader make_loader)
    : transform_(std::move(transform)),
      make_loader_(std::move(make_loader)),
      depth_(transform_.TakesFloats() ? BitDepth::kFloats : BitDepth::kBytes) {}

void ImageDecoderFactory::Inspect(RecordSampler& sampler) {
  path_ = sampler.path();
  Record record;
  const std::unique_ptr<ImageLoader> loader = make_loader_(depth_);
  std::exception_ptr failure;  // of the first record
  for (int bad = 0;; ++bad) {
    sampler.Get(&record);
    try {
      const std::chrono::nanoseconds begin = ThreadTime();
      const DatumView& first = loader->Load(record, nullptr);
      decode_seconds_ = std::chrono::duration<double>(ThreadTime() - begin).count();
      first_key_ = record.key;
      first_stored_ = {first.channels, first.height, first.width};
      image_ = transform_.OutShape(first, QuoteKey(first_key_));
      label_count_ = first.LabelCount();
      if (!first.bytes.empty()) {
        normalization_ = transform_.normalization();
        depth_ = BitDepth::kBytes;
      }
      if (bad > 0) sampler.Seek(sampler.Start());
      return;
    } catch (const Error& error) {
      if (!failure) failure = std::current_exception();
      if (bad > MaxBadRecords() || !IsOfOneRecord(error)) std::rethrow_exception(failure);
    }
    sampler.Skip(1);
  }
}

std::vector<Shape> ImageDecoderFactory::Shapes(int64_t batch_size, bool labels) const {
  std::vector<Shape> shapes{
      {batch_size * transform_.crops(), image_.channels, image_.height, image_.width}};
  const int classes = transform_.mix_classes();
  const auto count = static_cast<int64_t>(label_count_);
  if (labels && classes > 0) {
    shapes.push_back({batch_size, classes});
  } else if (labels) {
    shapes.push_back(count == 1 ? Shape{batch_size} : Shape{batch_size, count});
  }
  if (classes > 0 && !labels) {
    throw Error(ErrorCode::kConfig, {path_},
                Join(transform_.mix_field(), " needs labels to mix: give the layer a second top"));
  }
  return shapes;
}

std::unique_ptr<Decoder> ImageDecoderFactory::Make() const {
  return std::make_unique<ImageDecoder>(*this);
}

void ImageDecoderFactory::Mix(int64_t batch_size, Batch* batch) const {
  const auto classes = static_cast<size_t>(transform_.mix_classes());
  const auto items = static_cast<size_t>(batch_size);
  const auto pixels = static_cast<size_t>(image_.Count());
  for (size_t at = 0; at < batch->numbers().size(); at += items) {
    const auto numbers = batch->numbers().subspan(at, items);
    const auto labels = batch->output(1).subspan(at * classes, items * classes);
    if (batch->has_bytes()) {
      transform_.MixLabels(image_, numbers, batch->mix_weights().subspan(at, items),
                           batch->cut_boxes().subspan(at, items), labels);
    } else {
      transform_.Mix(image_, numbers, batch->output(0).subspan(at * pixels, items * pixels),
                     labels);
    }
  }
}

}  // namespace trainer
