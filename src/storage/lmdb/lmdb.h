#pragma once
// LMDB databases: reading, writing, handles, errors, and checks of the file before LMDB maps it.

#include <lmdb.h>

#include <memory>
#include <string>

#include "trainer/storage/cursor.h"
#include "trainer/storage/database_writer.h"

namespace trainer {

std::unique_ptr<Cursor> OpenLmdb(const std::string& path);
std::unique_ptr<DbWriter> CreateLmdb(const std::string& folder);

struct CloseLmdbEnv {
  void operator()(MDB_env* env) const { mdb_env_close(env); }
};
struct AbortLmdbTxn {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};
using LmdbEnv = std::unique_ptr<MDB_env, CloseLmdbEnv>;
using LmdbTxn = std::unique_ptr<MDB_txn, AbortLmdbTxn>;  // aborts unless it was released

// Throws the error that `rc`, of LMDB or the system, means. `what` says what was tried.
[[noreturn]] void FailLmdb(const std::string& path, const std::string& what, int rc);

// Throws kData unless data.mdb is a file with valid headers. Called before anything is mapped.
void CheckLmdbFile(const std::string& path);

}  // namespace trainer
