#pragma once

namespace trainer {

// Whether LMDBs are opened with their lock (lock.mdb). kAuto tries it first and goes on without a
// lock where there can be none. kOff never locks, so nothing may write to the databases meanwhile.
enum class DbLock { kAuto, kOff };

// One setting for the whole process; kAuto at the start.
void SetDbLock(DbLock lock);
DbLock GetDbLock();

}  // namespace trainer
