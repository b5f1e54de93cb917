#pragma once

namespace trainer {

// Whether databases are opened with their lock (lock.mdb of an LMDB, LOCK of a LevelDB). kAuto
// tries it first, and opens the database without a lock where there can be none. kOff never locks,
// so no program may write to the database meanwhile.
enum class DbLock { kAuto, kOff };

// One setting for the whole process; kAuto at the start.
void SetDbLock(DbLock lock);
DbLock GetDbLock();

}  // namespace trainer
