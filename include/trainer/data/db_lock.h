#pragma once

namespace trainer {

// Whether LMDBs are opened with their lock (lock.mdb): kAuto tries it first and goes on without one
// where there can be none; kOff never does, so that nothing may write to them meanwhile. One answer
// for the whole process.
enum class DbLock { kAuto, kOff };
void SetDbLock(DbLock lock);

}  // namespace trainer
