#include "trainer/data/record_source.h"

#include <utility>

namespace trainer {
namespace {

class DatabaseSource final : public RecordSource {
 public:
  DatabaseSource(std::unique_ptr<Cursor> cursor, Colors colors)
      : cursor_(std::move(cursor)), parser_(colors) {}

  const std::string& path() const override { return cursor_->path(); }
  std::string Key() const override { return std::string(cursor_->Key()); }
  const DatumView& Read() override {
    return parser_.Parse(cursor_->path(), cursor_->Key(), cursor_->Value());
  }
  void SeekFirst() override { cursor_->SeekFirst(); }
  bool Next() override { return cursor_->Next(); }
  bool Seek(std::string_view key) override { return cursor_->Seek(key); }

 private:
  std::unique_ptr<Cursor> cursor_;
  DatumParser parser_;
};

}  // namespace

std::unique_ptr<RecordSource> MakeDatabaseSource(std::unique_ptr<Cursor> cursor, Colors colors) {
  return std::make_unique<DatabaseSource>(std::move(cursor), colors);
}

}  // namespace trainer
