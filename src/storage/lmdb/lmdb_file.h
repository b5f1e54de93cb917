#pragma once
// LMDB's handles, its errors, and checks of its file before LMDB maps it.

#include <lmdb.h>

#include <memory>
#include <string>

namespace trainer {

struct CloseLmdbEnv {
  void operator()(MDB_env* env) const { mdb_env_close(env); }
};
struct AbortLmdbTxn {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};
using LmdbEnv = std::unique_ptr<MDB_env, CloseLmdbEnv>;
using LmdbTxn = std::unique_ptr<MDB_txn, AbortLmdbTxn>;  // aborts unless it was released

// Throws the error that `rc`, a code of LMDB or the system, means for the database `path`. `what`
// says what was tried.
[[noreturn]] void FailLmdb(const std::string& path, const std::string& what, int rc);

// Throws kData unless data.mdb is a regular file that is not empty and has valid headers. Called
// before anything is mapped.
void CheckLmdbFile(const std::string& path);

}  // namespace trainer
