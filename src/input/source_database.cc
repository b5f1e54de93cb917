#include <utility>

#include "balanced_sampler.h"
#include "shuffled_sampler.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/input/image_decoder.h"
#include "trainer/input/record_labels.h"
#include "trainer/input/source.h"
#include "trainer/storage/checksums.h"
#include "trainer/storage/fault_guard.h"
#include "trainer/storage/limited_cursor.h"
#include "trainer/storage/tar_shards.h"

namespace trainer {
namespace {

// Decodes the Datum records of a database, and compares them with their checksums if it has any.
class DatumLoader final : public ImageLoader {
 public:
  // `checksums` may be null.
  DatumLoader(std::string path, ColorMode colors, BitDepth depth, const ChecksumVerifier* checksums)
      : path_(std::move(path)), parser_(colors, depth), checksums_(checksums) {}

  const DatumView& Load(const Record& record, const CropChooser* wanted) override {
    if (checksums_ != nullptr) checksums_->Check(path_, record.index, record.key, record.value);
    return parser_.Parse(path_, record.key, record.value, wanted);
  }

 private:
  const std::string path_;
  DatumParser parser_;
  const ChecksumVerifier* checksums_;
};

// The records in stored order.
class SequentialSampler final : public RecordSampler {
 public:
  // `checksums` may be null. Only with them are ordinals of records searched.
  SequentialSampler(std::unique_ptr<Cursor> cursor,
                    std::unique_ptr<const ChecksumVerifier> checksums)
      : cursor_(std::move(cursor)),
        checksums_(std::move(checksums)),
        checked_records_(CheckedRecords()) {}

  const std::string& path() const override { return cursor_->path(); }

  void Get(Record* record) override {
    if (std::exchange(epoch_ended_, false)) cursor_->CheckUnchanged();
    record->key = cursor_->Key();
    record->value = cursor_->Value();
    record->index = ordinal_;
    if (!stable()) return;
    TouchPages(path(), record->value);
    record->PrefetchValue();
  }
  bool stable() const override { return cursor_->stable(); }

  uint64_t Skip(uint64_t count) override {
    uint64_t epochs = 0;
    skipped_ = true;
    if (checked_records_ > 0) ordinal_ = (ordinal_ + count) % checked_records_;
    for (; count > 0; --count) epochs += cursor_->Next() ? 1 : 0;
    epoch_ended_ |= epochs > 0;
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

  std::string Key() const override { return std::string(cursor_->Key()); }

  void Seek(const Position& position) override {
    if (position.key.empty()) {
      cursor_->SeekFirst();
    } else if (!cursor_->Seek(position.key)) {
      FailSeek(position);
    }
    if (checked_records_ > 0) FindOrdinal(position);
  }

 private:
  // Returns how many records there are, if they have checksums; else 0. A limit leaves some out.
  uint64_t CheckedRecords() const {
    if (checksums_ == nullptr) return 0;
    return cursor_->Count() >= 0 ? static_cast<uint64_t>(cursor_->Count()) : checksums_->records();
  }

  // One search is enough: it finds the ordinal of the run's record 0, and positions count from it.
  void FindOrdinal(const Position& position) {
    const uint64_t passed = position.record % checked_records_;
    if (position.key.empty()) {
      skipped_ = false;
      ordinal_ = 0;
      run_begin_ = (checked_records_ - passed) % checked_records_;
    } else if (skipped_) {
      ordinal_ = (run_begin_ + passed) % checked_records_;
    } else {
      cursor_->SeekFirst();
      for (ordinal_ = 0; cursor_->Key() != position.key; ++ordinal_) cursor_->Next();
      ordinal_ %= checked_records_;
      run_begin_ = (ordinal_ + checked_records_ - passed) % checked_records_;
    }
  }

  std::unique_ptr<Cursor> cursor_;
  std::unique_ptr<const ChecksumVerifier> checksums_;
  const uint64_t checked_records_;
  uint64_t ordinal_ = 0;      // of the current record in the set
  uint64_t run_begin_ = 0;    // the ordinal of the run's record 0
  bool skipped_ = false;      // Skip was called since the run began
  int64_t records_ = -1;      // not known yet
  bool epoch_ended_ = false;  // since the last Get
};

// The records in a BalancedOrder, each found by its key.
class BalancedDatabaseSampler final : public BalancedSampler {
 public:
  // `keys`: of the records, by index. Decoders use `checksums`, which may be null.
  BalancedDatabaseSampler(std::unique_ptr<Cursor> cursor, BalancedOrder order, RecordKeys keys,
                          std::unique_ptr<const ChecksumVerifier> checksums)
      : BalancedSampler(std::move(order), 0, cursor->path()),
        cursor_(std::move(cursor)),
        checksums_(std::move(checksums)),
        keys_(std::move(keys)) {}

  const std::string& path() const override { return cursor_->path(); }
  bool stable() const override { return cursor_->stable(); }

  void Get(Record* record) override {
    if (TakeEpochEnd()) cursor_->CheckUnchanged();
    const uint32_t index = Current();
    if (!cursor_->Seek(keys_[index])) {
      throw Error(ErrorCode::kData, {path()},
                  Join(NameOf(index), " disappeared while the database was read"));
    }
    record->key = cursor_->Key();
    record->value = cursor_->Value();
    record->index = index;
    if (!stable()) return;
    // Random reads of large values are slow page by page.
    constexpr size_t kLarge = size_t{64} << 10;
    if (record->value.size() >= kLarge) cursor_->WillNeed(record->value, record->value.size());
    TouchPages(path(), record->value);
    record->PrefetchValue();
  }

 private:
  std::string NameOf(uint32_t record) const override {
    return Join("record ", QuoteKey(keys_[record]));
  }

  const std::unique_ptr<Cursor> cursor_;
  const std::unique_ptr<const ChecksumVerifier> checksums_;
  const RecordKeys keys_;
};

// Reads the labels and keys of all records and makes the sampler that balances their classes.
std::unique_ptr<RecordSampler> MakeBalancedSampler(
    std::unique_ptr<Cursor> cursor, const PhiloxKey& key,
    std::unique_ptr<const ChecksumVerifier> checksums) {
  RecordKeys keys;
  BalancedOrder order(ReadLabels(*cursor, &keys), key);
  return std::make_unique<BalancedDatabaseSampler>(std::move(cursor), std::move(order),
                                                   std::move(keys), std::move(checksums));
}

// Returns the order of the records that the layer asks for; no value for the stored order. Throws
// kConfig for fields that contradict each other.
std::optional<ShuffleOptions> OrderOf(const LayerSpec& layer, const InputEnv& env) {
  const caffe::DataParameter& param = layer.proto().data_param();
  const bool balanced = param.sampling() == caffe::BALANCED;
  RequireSampling(layer, "data_param", param.sampling(), env.phase);
  if (balanced && param.shuffle_window() > 0) {
    layer.FailIn("data_param", "shuffle_window",
                 "shuffle_window has no effect with sampling: BALANCED, which draws from the whole "
                 "set; remove one of them");
  }
  if (!balanced && !param.shuffle()) return std::nullopt;
  return ShuffleOptions{param.shuffle_window(), env.key, balanced};
}

}  // namespace

RecordSource MakeDatabaseSource(std::unique_ptr<Cursor> cursor, Transform transform,
                                std::unique_ptr<const ChecksumVerifier> checksums,
                                const std::optional<ShuffleOptions>& shuffle) {
  RecordSource source;
  const ColorMode colors = transform.colors();
  source.decoders = std::make_unique<ImageDecoderFactory>(
      std::move(transform), [=, path = cursor->path(), check = checksums.get()](BitDepth depth) {
        return std::make_unique<DatumLoader>(path, colors, depth, check);
      });
  if (shuffle && shuffle->balanced) {
    source.sampler = MakeBalancedSampler(std::move(cursor), shuffle->key, std::move(checksums));
  } else if (shuffle) {
    source.sampler = std::make_unique<ShuffledSampler>(std::move(cursor), shuffle->window,
                                                       shuffle->key, std::move(checksums));
  } else {
    source.sampler = std::make_unique<SequentialSampler>(std::move(cursor), std::move(checksums));
  }
  return source;
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
  const std::optional<ShuffleOptions> shuffle = OrderOf(layer, env);
  Transform transform(layer, env.phase, env.key);
  std::unique_ptr<Cursor> cursor = OpenLayersDatabase(layer);
  std::unique_ptr<const ChecksumVerifier> checksums = OpenVerifier(DatabasePath(layer), *cursor);
  cursor = LimitRecords(std::move(cursor), param.limit());
  return std::make_unique<BatchQueue>(
      MakeDatabaseSource(std::move(cursor), std::move(transform), std::move(checksums), shuffle),
      options);
}

}  // namespace trainer
