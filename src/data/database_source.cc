#include <glog/logging.h>

#include <utility>

#include "trainer/base/text.h"
#include "trainer/config/named_file.h"
#include "trainer/data/image_source.h"
#include "trainer/data/prefetcher.h"

namespace trainer {
namespace {

class DatumRecordParser final : public RecordParser {
 public:
  DatumRecordParser(const std::string& path, Colors colors) : path_(path), parser_(colors) {}

  const DatumView& Parse(const RawRecord& record) override {
    return parser_.Parse(path_, record.key, record.value);
  }

 private:
  const std::string& path_;
  DatumParser parser_;
};

class DatabaseSource final : public ImageSource {
 public:
  DatabaseSource(std::unique_ptr<Cursor> cursor, Transform transform)
      : ImageSource(std::move(transform)),
        cursor_(std::move(cursor)),
        colors_(this->transform().colors()) {}

  const std::string& path() const override { return cursor_->path(); }

  void Fetch(RawRecord* record) override {
    record->key = cursor_->Key();
    record->value = cursor_->Value();
  }
  bool RecordsStayValid() const override { return cursor_->RecordsStayValid(); }

  uint64_t Advance(uint64_t count) override {
    uint64_t epochs = 0;
    for (; count > 0; --count) epochs += cursor_->Next() ? 1 : 0;
    return epochs;
  }

  void ReadsEvery(uint64_t count) override { cursor_->ReadsEvery(count); }

  std::string Key() const override { return std::string(cursor_->Key()); }

  void Seek(const Position& position) override {
    if (position.key.empty()) {
      cursor_->SeekFirst();
    } else if (!cursor_->Seek(position.key)) {
      FailSeek(position);
    }
  }

 private:
  std::unique_ptr<RecordParser> MakeParser() const override {
    return std::make_unique<DatumRecordParser>(cursor_->path(), colors_);
  }

  std::unique_ptr<Cursor> cursor_;
  Colors colors_;
};

}  // namespace

std::unique_ptr<RecordSource> MakeDatabaseSource(std::unique_ptr<Cursor> cursor,
                                                 Transform transform) {
  return std::make_unique<DatabaseSource>(std::move(cursor), std::move(transform));
}

std::unique_ptr<Cursor> OpenLayersDatabase(const LayerSpec& layer) {
  const caffe::DataParameter& param = layer.proto().data_param();
  return ReadNamedFile(layer, "data_param", "source", param.source(), [&](const std::string& path) {
    return OpenCursor(caffe::DataParameter::DB_Name(param.backend()), path);
  });
}

std::unique_ptr<Prefetcher> MakePrefetcher(const LayerSpec& layer, const ReadingEnv& env) {
  constexpr char kParam[] = "data_param";
  const caffe::DataParameter& param = layer.proto().data_param();
  if (param.source().empty()) layer.FailIn(kParam, "source", "source, the database, is missing");
  const PrefetchOptions options = ReadPrefetchOptions(layer, kParam, param.batch_size(), env);
  LOG_IF(WARNING, param.shuffle())
      << layer.WhereIn(kParam, "shuffle").ToString() << ": layer '" << layer.name()
      << "': shuffle is ignored: records come in the order of their keys";
  Transform transform(layer, env.phase, env.key);
  auto source = MakeDatabaseSource(OpenLayersDatabase(layer), std::move(transform));
  return std::make_unique<Prefetcher>(std::move(source), options);
}

}  // namespace trainer
