#include "trainer/input/bad_records.h"

#include <atomic>

#include "trainer/base/error/error.h"

namespace trainer {
namespace {

std::atomic<int> most_bad_records{-1};

}  // namespace

void SetMaxBadRecords(int most) { most_bad_records = most; }
int MaxBadRecords() { return most_bad_records; }

bool IsOfOneRecord(const Error& error) {
  return error.code() == ErrorCode::kData || error.code() == ErrorCode::kNoInput ||
         error.code() == ErrorCode::kConfig;
}

}  // namespace trainer
