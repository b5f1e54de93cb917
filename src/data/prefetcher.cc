#include "trainer/data/prefetcher.h"

#include <glog/logging.h>

#include <charconv>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/text.h"
#include "trainer/config/named_file.h"

namespace trainer {
namespace {

// Reads "<number> " and moves `text` behind it.
bool TakeNumber(std::string_view& text, uint64_t* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  if (error != std::errc() || stop == end || *stop != ' ') return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()) + 1);
  return true;
}

}  // namespace

std::string Position::Encode() const { return Join("1 ", record, " ", epoch, " ", key); }

Position Position::Decode(const std::string& text) {
  Position position;
  uint64_t version = 0;
  std::string_view rest = text;
  if (!TakeNumber(rest, &version) || version != 1 || !TakeNumber(rest, &position.record) ||
      !TakeNumber(rest, &position.epoch)) {
    throw Error(ErrorCode::kBadSnapshot, Join("the position in the data set, ", QuoteKey(text),
                                              ", is not one of this "
                                              "program's"));
  }
  position.key = rest;
  return position;
}

Prefetcher::Prefetcher(const PrefetchOptions& options, const Transform& transform)
    : Prefetcher(MakeDatabaseSource(OpenCursor(options.backend, options.path), transform.colors()),
                 options, transform) {}

Prefetcher::Prefetcher(std::unique_ptr<RecordSource> source, PrefetchOptions options,
                       Transform transform)
    : options_(std::move(options)),
      transform_(std::move(transform)),
      source_(std::move(source)),
      ahead_(
          options_.depth, [this] { return MakeBatch(); }, [this](Batch& batch) { Fill(batch); }) {
  const DatumView& first = source_->Read();
  shape_key_ = source_->Key();
  image_ = transform_.OutShape(first, QuoteKey(shape_key_));
  last_in_ = {first.channels, first.height, first.width};
}

Prefetcher::~Prefetcher() = default;

Shape Prefetcher::shape() const {
  return {options_.batch_size, image_.channels, image_.height, image_.width};
}

void Prefetcher::Restore(const Position& position) {
  if (ahead_.started()) throw Error(ErrorCode::kInternal, "a running data source cannot be moved");
  if (position.key.empty()) {
    source_->SeekFirst();
  } else if (!source_->Seek(position.key)) {
    throw Error(ErrorCode::kBadSnapshot, {source_->path()},
                Join("the snapshot stopped before record ", QuoteKey(position.key),
                     ", which this data set does not have; use the one it was made with"));
  }
  at_ = position;
  position_ = position;
}

const Batch& Prefetcher::Next() {
  before_ = position_;
  const Batch& batch = ahead_.Next();
  position_ = batch.next;
  return batch;
}

std::string Prefetcher::NameOfItem(int64_t item) try {
  ahead_.Stop();
  at_ = before_;
  if (at_.key.empty()) {
    source_->SeekFirst();
  } else if (!source_->Seek(at_.key)) {
    return "";
  }
  for (SkipOthers(); item > 0; --item) {
    Advance();
    SkipOthers();
  }
  return Join("record ", QuoteKey(source_->Key()), " of ", source_->path());
} catch (const Error&) {  // what is told is another error than this
  return "";
}

Batch Prefetcher::MakeBatch() const {
  Batch batch;
  batch.data.resize(static_cast<size_t>(options_.batch_size * image_.Count()));
  if (options_.labels) batch.labels.resize(static_cast<size_t>(options_.batch_size));
  return batch;
}

void Prefetcher::Fill(Batch& batch) {
  for (int64_t i = 0; i < options_.batch_size; ++i) {
    SkipOthers();
    AddRecord(batch, i);
    Advance();
  }
  at_.key = source_->Key();
  batch.next = at_;
}

void Prefetcher::SkipOthers() {
  const auto count = static_cast<uint64_t>(options_.replica.count);
  const auto rank = static_cast<uint64_t>(options_.replica.rank);
  while (at_.record % count != rank) Advance();
}

void Prefetcher::Advance() {
  ++at_.record;
  if (!source_->Next()) return;
  ++at_.epoch;
  LOG(INFO) << "Restarting data prefetching from start.";
}

void Prefetcher::AddRecord(Batch& batch, int64_t index) {
  const DatumView& datum = source_->Read();
  CheckShape(datum);
  transform_.Apply(datum, at_.record, batch.data.data() + index * image_.Count());
  if (!options_.labels) return;
  if (!datum.has_label) {
    throw Error(ErrorCode::kData, {source_->path()},
                Join("record ", QuoteKey(source_->Key()),
                     " has no label; remove the layer's second top, or label the records"));
  }
  batch.labels[static_cast<size_t>(index)] = static_cast<float>(datum.label);
}

void Prefetcher::CheckShape(const DatumView& datum) {
  const ImageShape in{datum.channels, datum.height, datum.width};
  if (in == last_in_) return;
  const ImageShape out = transform_.OutShape(datum, QuoteKey(source_->Key()));
  if (out != image_) {
    throw Error(ErrorCode::kData, {source_->path()},
                Join("record ", QuoteKey(source_->Key()), " gives a ", out.ToString(),
                     " image, but record ", QuoteKey(shape_key_), " gave ", image_.ToString(),
                     "; one batch holds one shape: set crop_size, or resize the images"));
  }
  last_in_ = in;
}

PrefetchOptions ReadPrefetchOptions(const LayerSpec& layer, std::string_view param,
                                    uint32_t batch_size, caffe::Phase phase,
                                    const Replica& replica) {
  constexpr uint32_t kMaxDepth = 1024, kMaxBatch = 1u << 24;
  const uint32_t depth = layer.proto().data_param().prefetch();
  if (batch_size < 1 || batch_size > kMaxBatch) {
    layer.FailIn(param, "batch_size",
                 Join("batch_size is ", batch_size, "; it must be 1 to ", kMaxBatch));
  }
  if (depth < 1 || depth > kMaxDepth) {
    layer.FailIn("data_param", "prefetch",
                 Join("prefetch is ", depth, "; it must be 1 to ", kMaxDepth));
  }
  PrefetchOptions options;
  options.batch_size = batch_size;
  options.depth = depth;
  options.labels = layer.proto().top_size() > 1;
  if (phase == caffe::TRAIN) options.replica = replica;
  return options;
}

std::unique_ptr<Cursor> OpenLayersDatabase(const LayerSpec& layer) {
  const caffe::DataParameter& param = layer.proto().data_param();
  return ReadNamedFile(layer, "data_param", "source", param.source(), [&](const std::string& path) {
    return OpenCursor(caffe::DataParameter::DB_Name(param.backend()), path);
  });
}

std::unique_ptr<Prefetcher> MakePrefetcher(const LayerSpec& layer, caffe::Phase phase,
                                           const PhiloxKey& key, const Replica& replica) {
  constexpr char kParam[] = "data_param";
  const caffe::DataParameter& param = layer.proto().data_param();
  if (param.source().empty()) layer.FailIn(kParam, "source", "source, the database, is missing");
  PrefetchOptions options = ReadPrefetchOptions(layer, kParam, param.batch_size(), phase, replica);
  LOG_IF(WARNING, param.shuffle())
      << layer.WhereIn(kParam, "shuffle").ToString() << ": layer '" << layer.name()
      << "': shuffle is ignored: records come in the order of their keys";
  Transform transform(layer, phase, key);
  auto source = MakeDatabaseSource(OpenLayersDatabase(layer), transform.colors());
  return std::make_unique<Prefetcher>(std::move(source), std::move(options), std::move(transform));
}

}  // namespace trainer
