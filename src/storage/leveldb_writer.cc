#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <memory>
#include <string>
#include <string_view>

#include "leveldb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

class LevelDbWriter final : public DbWriter {
 public:
  explicit LevelDbWriter(const std::string& path) : path_(path) {
    leveldb::Options options;
    options.create_if_missing = true;
    options.error_if_exists = true;
    options.paranoid_checks = true;
    options.write_buffer_size = size_t{64} << 20;
    options.block_size = size_t{64} << 10;  // a scan reads whole blocks
    options.max_open_files = 100;
    leveldb::DB* db = nullptr;
    const leveldb::Status status = leveldb::DB::Open(options, path, &db);
    db_.reset(db);
    Check(status, "cannot make the database");
  }

  void Put(std::string_view key, std::string_view value) override {
    batch_.Put({key.data(), key.size()}, {value.data(), value.size()});
    if (batch_.ApproximateSize() >= kBatchBytes) Write(false);
  }

  void Commit() override {
    Write(true);
    // Moves the records of the log into a table, or each reader would do so. The range contains no
    // key, so no table is rewritten.
    const leveldb::Slice last("\xff");
    db_->CompactRange(&last, &last);
  }

 private:
  static constexpr size_t kBatchBytes = size_t{4} << 20;

  void Write(bool sync) {
    leveldb::WriteOptions options;
    options.sync = sync;
    Check(db_->Write(options, &batch_), "cannot write");
    batch_.Clear();
  }

  void Check(const leveldb::Status& status, const char* what) const {
    if (status.ok()) return;
    throw Error(ErrorCode::kIo, {path_}, Join(what, ": ", EscapeControl(status.ToString())));
  }

  std::string path_;
  std::unique_ptr<leveldb::DB> db_;
  leveldb::WriteBatch batch_;
};

}  // namespace

std::unique_ptr<DbWriter> CreateLevelDb(const std::string& folder) {
  return std::make_unique<LevelDbWriter>(folder);
}

}  // namespace trainer
