#include <lmdb.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lmdb/lmdb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kFirstMapBytes = size_t{1} << 20;
constexpr size_t kPendingBytes = size_t{16} << 20;  // written in one transaction

// Keeps records in memory, so that it can enlarge a full map and repeat the transaction.
class LmdbWriter final : public DbWriter {
 public:
  explicit LmdbWriter(const std::string& path) : path_(path) {
    MDB_env* env = nullptr;
    Check(mdb_env_create(&env), "cannot start LMDB");
    env_.reset(env);
    Check(mdb_env_set_mapsize(env, map_bytes_), "cannot set the map's size");
    // NOSYNC: Commit syncs once, instead of each transaction.
    Check(mdb_env_open(env, path.c_str(), MDB_NOSYNC, 0666), "cannot make the database");
  }

  void Put(std::string_view key, std::string_view value) override {
    if (key.empty() || key.size() > static_cast<size_t>(mdb_env_get_maxkeysize(env_.get()))) {
      throw Error(ErrorCode::kData, {path_},
                  Join("the key ", QuoteKey(key), " has ", key.size(), " bytes; LMDB allows 1 to ",
                       mdb_env_get_maxkeysize(env_.get())));
    }
    pending_.emplace_back(key, value);
    pending_bytes_ += key.size() + value.size();
    if (pending_bytes_ >= kPendingBytes) WritePending();
  }

  void Commit() override {
    WritePending();
    Check(mdb_env_sync(env_.get(), 1), "cannot write");
  }

 private:
  void Check(int rc, const std::string& what) const {
    if (rc == MDB_SUCCESS) return;
    throw Error(ErrorCode::kIo, {path_}, Join(what, ": ", mdb_strerror(rc)));
  }

  void WritePending() {
    if (pending_.empty()) return;
    for (int rc = TryWrite(); rc != MDB_SUCCESS; rc = TryWrite()) {
      if (rc != MDB_MAP_FULL) Check(rc, "cannot write");
      map_bytes_ *= 2;
      Check(mdb_env_set_mapsize(env_.get(), map_bytes_), "cannot enlarge the map");
    }
    pending_.clear();
    pending_bytes_ = 0;
  }

  // All pending records or none.
  int TryWrite() {
    MDB_txn* raw = nullptr;
    if (const int rc = mdb_txn_begin(env_.get(), nullptr, 0, &raw)) return rc;
    LmdbTxn txn(raw);
    MDB_dbi dbi = 0;
    if (const int rc = mdb_dbi_open(raw, nullptr, 0, &dbi)) return rc;
    for (const auto& [key, value] : pending_) {
      MDB_val k{key.size(), const_cast<char*>(key.data())};
      MDB_val v{value.size(), const_cast<char*>(value.data())};
      if (const int rc = mdb_put(raw, dbi, &k, &v, 0)) return rc;
    }
    return mdb_txn_commit(txn.release());
  }

  std::string path_;
  size_t map_bytes_ = kFirstMapBytes;
  LmdbEnv env_;
  std::vector<std::pair<std::string, std::string>> pending_;
  size_t pending_bytes_ = 0;
};

}  // namespace

std::unique_ptr<DbWriter> CreateLmdb(const std::string& folder) {
  return std::make_unique<LmdbWriter>(folder);
}

}  // namespace trainer
