#pragma once
// The first records of a set.

#include <cstdint>
#include <memory>

#include "trainer/storage/cursor.h"

namespace trainer {

// Returns a cursor over the first `records` records of `cursor`, at the first one; `cursor` itself
// if it has no more, or if `records` is 0. Reads as many keys. Throws as moving the cursor does.
std::unique_ptr<Cursor> LimitRecords(std::unique_ptr<Cursor> cursor, int64_t records);

}  // namespace trainer
