#include <glog/logging.h>

#include <charconv>
#include <utility>

#include "record_checks.h"
#include "shuffled_reader.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/input/batch_queue.h"
#include "trainer/input/image_source.h"
#include "trainer/input/source.h"
#include "trainer/storage/tar_shards.h"
#include "trainer/storage/touch_pages.h"

namespace trainer {
namespace {

class DatumRecordParser final : public RecordParser {
 public:
  // `checks` may be null.
  DatumRecordParser(const std::string& path, ColorMode colors, BitDepth depth,
                    const ChecksumVerifier* checks)
      : path_(path), parser_(colors, depth), checks_(checks) {}

  const DatumView& Parse(const Record& record) override {
    if (checks_ != nullptr) checks_->Check(path_, record);
    return parser_.Parse(path_, record.key, record.value);
  }
  const DatumView& ParsePart(const Record& record, const CropChooser& choose) override {
    if (checks_ != nullptr) checks_->Check(path_, record);
    return parser_.Parse(path_, record.key, record.value, &choose);
  }

 private:
  const std::string& path_;
  DatumParser parser_;
  const ChecksumVerifier* checks_;
};

class DatabaseSource final : public ImageSource {
 public:
  DatabaseSource(std::unique_ptr<Cursor> cursor, Transform transform,
                 std::unique_ptr<ChecksumVerifier> checks)
      : ImageSource(std::move(transform)),
        cursor_(std::move(cursor)),
        colors_(this->transform().colors()),
        checks_(std::move(checks)),
        number_(checks_ == nullptr ? 0 : checks_->records()) {}

  const std::string& path() const override { return cursor_->path(); }

  void Fetch(Record* record) override {
    if (std::exchange(ended_, false)) cursor_->CheckUnchanged();
    record->key = cursor_->Key();
    record->value = cursor_->Value();
    record->index = number_.now();
    if (!stable()) return;
    TouchPages(path(), record->value);
    PrefetchLines(record->value);
  }
  bool stable() const override { return cursor_->stable(); }

  uint64_t Advance(uint64_t count) override {
    uint64_t epochs = 0;
    number_.Advance(count);
    for (; count > 0; --count) epochs += cursor_->Next() ? 1 : 0;
    ended_ |= epochs > 0;
    return epochs;
  }

  // Only LevelDB does not know the number of its records.
  int64_t CountRecords(bool reads_keys) override {
    if (records_ < 0) records_ = cursor_->Count();
    if (records_ >= 0 || !reads_keys) return records_;
    const std::string here = Key();
    cursor_->SeekFirst();
    records_ = 1;
    while (!cursor_->Next()) ++records_;
    cursor_->Seek(here);
    return records_;
  }

  void SetStride(uint64_t count) override { cursor_->SetStride(count); }

  std::string Key() const override { return std::string(cursor_->Key()); }

  void Seek(const Position& position) override {
    if (position.key.empty()) {
      cursor_->SeekFirst();
    } else if (!cursor_->Seek(position.key)) {
      FailSeek(position);
    }
    number_.Seek(position, cursor_.get());
  }

 private:
  std::unique_ptr<RecordParser> MakeParser() const override {
    return std::make_unique<DatumRecordParser>(cursor_->path(), colors_, depth(), checks_.get());
  }

  std::unique_ptr<Cursor> cursor_;
  ColorMode colors_;
  std::unique_ptr<ChecksumVerifier> checks_;
  StoredNumber number_;
  int64_t records_ = -1;  // not known yet
  bool ended_ = false;    // an epoch, after which nothing was fetched
};

// Takes "<word> <number> " off the front.
bool TakeField(std::string_view& text, std::string_view word, uint64_t* number) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  return true;
}

// The same records in another order each epoch.
class ShuffledSource final : public ImageSource {
 public:
  ShuffledSource(std::unique_ptr<Cursor> cursor, uint64_t window, const PhiloxKey& key,
                 Transform transform, std::unique_ptr<ChecksumVerifier> checks)
      : ImageSource(std::move(transform)),
        reader_(std::move(cursor), window, key),
        colors_(this->transform().colors()),
        checks_(std::move(checks)) {}

  const std::string& path() const override { return reader_.path(); }
  const ShuffleLayout& layout() const { return reader_.layout(); }

  void Fetch(Record* record) override {
    if (std::exchange(ended_, false)) reader_.CheckUnchanged();
    const ShuffledReader::Record at = reader_.Get(epoch_, place_);
    record->key = at.key;
    record->value = at.value;
    record->index = at.number;
    if (stable()) PrefetchLines(record->value);
  }
  bool stable() const override { return reader_.stable(); }

  uint64_t Advance(uint64_t count) override {
    place_ += count;
    const uint64_t ended = place_ / layout().records;
    place_ %= layout().records;
    epoch_ += ended;
    ended_ |= ended > 0;
    return ended;
  }
  int64_t CountRecords(bool) override { return static_cast<int64_t>(layout().records); }
  void SetStride(uint64_t count) override { reader_.SetStride(count); }

  // The order of the epoch is made again of these numbers and the seed.
  std::string Key() const override {
    return Join("shuffled ", epoch_, " place ", place_, " of ", layout().records, " extent ",
                layout().extent, " window ", layout().window);
  }

  std::string Name() const override {
    return Join("record ", QuoteKey(reader_.Get(epoch_, place_).key), " of ", path());
  }

  void Seek(const Position& position) override {
    if (position.key.empty()) {
      epoch_ = place_ = 0;
      return;
    }
    std::string_view rest = position.key;
    uint64_t epoch = 0, place = 0;
    ShuffleLayout was;
    if (!TakeField(rest, "shuffled ", &epoch) || !TakeField(rest, " place ", &place) ||
        !TakeField(rest, " of ", &was.records) || !TakeField(rest, " extent ", &was.extent) ||
        !TakeField(rest, " window ", &was.window) || !rest.empty() || place >= was.records ||
        was.extent < 1 || was.window < 1) {
      throw Error(ErrorCode::kBadSnapshot, {path()},
                  Join("the snapshot stopped at ", QuoteKey(position.key),
                       ", which is not a position in a shuffled epoch; set data_param.shuffle as "
                       "in the run of the snapshot, or start from the weights with --weights"));
    }
    if (was.records != layout().records) {
      throw Error(ErrorCode::kBadSnapshot, {path()},
                  Join("the database has ", layout().records, " records now, but had ", was.records,
                       " when the snapshot was made; use the database of that run"));
    }
    reader_.SetLayout(was);
    epoch_ = epoch;
    place_ = place;
  }

 private:
  std::unique_ptr<RecordParser> MakeParser() const override {
    return std::make_unique<DatumRecordParser>(reader_.path(), colors_, depth(), checks_.get());
  }

  mutable ShuffledReader reader_;  // what it has read changes no record that it gives
  ColorMode colors_;
  std::unique_ptr<ChecksumVerifier> checks_;
  uint64_t epoch_ = 0, place_ = 0;
  bool ended_ = false;  // an epoch, after which nothing was fetched
};

}  // namespace

std::unique_ptr<RecordSource> MakeDatabaseSource(std::unique_ptr<Cursor> cursor,
                                                 Transform transform) {
  return std::make_unique<DatabaseSource>(std::move(cursor), std::move(transform), nullptr);
}

std::unique_ptr<RecordSource> MakeShuffledSource(std::unique_ptr<Cursor> cursor, uint64_t window,
                                                 const PhiloxKey& key, Transform transform) {
  return std::make_unique<ShuffledSource>(std::move(cursor), window, key, std::move(transform),
                                          nullptr);
}

std::unique_ptr<Cursor> OpenLayersDatabase(const LayerSpec& layer) {
  const caffe::DataParameter& param = layer.proto().data_param();
  const auto open = [&](const std::string& path) {
    return OpenCursor(caffe::DataParameter::DB_Name(param.backend()), path);
  };
  const std::string path = DatabasePath(layer);
  if (!IsShardPattern(path)) return ReadNamedFile(layer, "data_param", "source", path, open);
  try {
    return open(path);
  } catch (const Error& error) {
    ThrowAtField(layer, "data_param", "source", error);
  }
}

std::string DatabasePath(const LayerSpec& layer) {
  const caffe::DataParameter& param = layer.proto().data_param();
  const std::string& source = param.source();
  if (param.backend() != caffe::DataParameter::TAR || !IsShardPattern(source)) {
    return ResolvePath(source, layer.Where().file);
  }
  const auto is_there = [](const std::string& pattern) {
    try {
      return Exists(ExpandShards(pattern).front());
    } catch (const Error&) {  // the pattern itself is for the reader to refuse
      return false;
    }
  };
  const std::string beside = JoinPath(FolderOf(layer.Where().file), source);
  return !is_there(source) && is_there(beside) ? beside : source;
}

std::unique_ptr<BatchQueue> OpenDatabase(const LayerSpec& layer, const InputEnv& env) {
  constexpr char kParam[] = "data_param";
  const caffe::DataParameter& param = layer.proto().data_param();
  if (param.source().empty())
    layer.FailIn(kParam, "source", "source is missing; give the path of the database");
  const BatchQueueOptions options = QueueOptionsOf(layer, kParam, param.batch_size(), env);
  Transform transform(layer, env.phase, env.key);
  std::unique_ptr<Cursor> cursor = OpenLayersDatabase(layer);
  std::unique_ptr<ChecksumVerifier> checks = OpenVerifier(DatabasePath(layer), *cursor);
  if (!param.shuffle()) {
    return std::make_unique<BatchQueue>(
        std::make_unique<DatabaseSource>(std::move(cursor), std::move(transform),
                                         std::move(checks)),
        options);
  }
  auto source = std::make_unique<ShuffledSource>(std::move(cursor), param.shuffle_window(), env.key,
                                                 std::move(transform), std::move(checks));
  const ShuffleLayout& layout = source->layout();
  LOG(INFO) << "Shuffling data: " << layout.records << " records, " << layout.window
            << " at a time, read in runs of " << layout.extent;
  return std::make_unique<BatchQueue>(std::move(source), options);
}

}  // namespace trainer
