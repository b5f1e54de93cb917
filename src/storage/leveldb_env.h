#pragma once
// Opens LevelDB databases without changing them.

#include <leveldb/db.h>
#include <leveldb/env.h>

#include <memory>
#include <string>

namespace trainer {

// Destroys the Env where it is compiled: without RTTI, which UndefinedBehaviorSanitizer looks for.
struct DeleteLevelDbEnv {
  void operator()(leveldb::Env* env) const;
};

struct ReadOnlyLevelDb {
  std::unique_ptr<leveldb::Env, DeleteLevelDbEnv> env;
  std::unique_ptr<leveldb::DB> db;  // destroyed before `env`, which it uses
};

// LevelDB has no read-only mode: opening a database locks it, moves the records of its log into a
// table, and may start to rewrite tables. Here these files are written to memory, and tables are
// never rewritten, so that any number of processes may read a database, and it may be in a folder
// without write permission.
//
// Takes a shared lock on the database's LOCK file, unless `locks` is false, the file does not
// exist, or the file system has no locks. LevelDB's writers take an exclusive lock: if a writer has
// the database open, this fails with an I/O error that begins with "lock <file>".
leveldb::Status OpenLevelDbReadOnly(const std::string& path, bool locks, ReadOnlyLevelDb* opened);

}  // namespace trainer
