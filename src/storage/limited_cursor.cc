#include "trainer/storage/limited_cursor.h"

#include <optional>
#include <utility>

namespace trainer {
namespace {

// The first records of another cursor, up to the one with the key `last`.
class LimitedCursor final : public Cursor {
 public:
  LimitedCursor(std::unique_ptr<Cursor> all, int64_t records, std::string last, bool sorted)
      : Cursor(all->path()),
        all_(std::move(all)),
        records_(records),
        last_(std::move(last)),
        sorted_(sorted) {
    all_->SeekFirst();
  }

  std::string_view Key() const override { return all_->Key(); }
  std::string_view Value() const override { return all_->Value(); }
  std::optional<int32_t> Label() const override { return all_->Label(); }
  bool stable() const override { return all_->stable(); }

  void SeekFirst() override { all_->SeekFirst(); }
  void SeekLast() override { all_->Seek(last_); }
  bool Next() override {
    if (all_->Key() != last_) return all_->Next();
    all_->SeekFirst();
    return true;
  }
  bool Seek(std::string_view key) override { return IsWithin(key) && all_->Seek(key); }
  bool SeekAtLeast(std::string_view key) override {
    return IsWithin(key) && all_->SeekAtLeast(key);
  }

  void WillNeed(std::string_view value, uint64_t bytes) override { all_->WillNeed(value, bytes); }
  void CheckUnchanged() const override { all_->CheckUnchanged(); }
  int64_t Count() const override { return records_; }
  uint64_t StoredBytes() const override { return all_->StoredBytes(); }

 private:
  // Returns false for the key of a later record, if the keys tell.
  bool IsWithin(std::string_view key) const { return !sorted_ || key <= last_; }

  const std::unique_ptr<Cursor> all_;
  const int64_t records_;
  const std::string last_;
  const bool sorted_;
};

}  // namespace

std::unique_ptr<Cursor> LimitRecords(std::unique_ptr<Cursor> cursor, int64_t records) {
  if (records == 0 || (cursor->Count() >= 0 && cursor->Count() <= records)) return cursor;
  cursor->SeekFirst();
  std::string last(cursor->Key());
  bool sorted = true;
  for (int64_t i = 1; i < records; ++i) {
    if (cursor->Next()) {  // there are fewer
      return cursor;
    }
    const std::string_view key = cursor->Key();
    sorted = sorted && last < key;
    last = key;
  }
  return std::make_unique<LimitedCursor>(std::move(cursor), records, std::move(last), sorted);
}

}  // namespace trainer
