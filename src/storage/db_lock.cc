#include "trainer/storage/db_lock.h"

#include <atomic>

namespace trainer {
namespace {

std::atomic<DbLock> db_lock{DbLock::kAuto};

}  // namespace

void SetDbLock(DbLock lock) { db_lock = lock; }

DbLock GetDbLock() { return db_lock; }

}  // namespace trainer
