#pragma once
// How a run reads its data.

#include <string>

#include "trainer/datasets/local_copy.h"
#include "trainer/storage/cursor.h"

namespace trainer {

// The values of the flags with the same names.
struct InputOptions {
  std::string bad_records = "stop";  // or "skip=N"
  DbLock db_lock = DbLock::kAuto;
  LocalCopyOptions local_copy = {"off", false};  // --local_copy and --keep_local_copy
};

// Sets for the whole process what readers do with records that cannot be decoded. Throws kUsage for
// a value that --bad_records does not have. Call before nets are made.
void ApplyBadRecords(const std::string& bad_records);
}  // namespace trainer
