#pragma once
// How a run reads its data.

#include <string>

#include "trainer/dataset/staging.h"

namespace trainer {

// The values of the flags with the same names.
struct InputOptions {
  std::string bad_records = "stop";            // or "skip=N"
  std::string db_lock = "auto";                // or "off"
  StagingOptions local_copy = {"off", false};  // --stage_data and --stage_keep
};

// Sets for the whole process what readers do with records that cannot be decoded. Throws kUsage for
// a value that --bad_records does not have. Call before nets are made.
void ApplyBadRecords(const std::string& bad_records);
// Sets for the whole process whether an LMDB is locked while it is open. Call before data is
// opened.
void ApplyDbLock(const std::string& db_lock);

}  // namespace trainer
