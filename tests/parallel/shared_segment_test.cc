// Shared memory of ranks, and its refusal if there is none left.

#include "node/shared_segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "support/in_child.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Returns 0 if making `bytes` of it is refused with kResource and a message that ends with
// `advice`.
int RefusesToMake(size_t bytes, const std::string& advice) {
  try {
    const SharedSegment memory(bytes);
    std::fprintf(stderr, "%zu bytes were made\n", bytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kResource && std::string(error.what()).ends_with(advice))
      return 0;
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

TEST(SharedMemoryTest, OverTheLimitOfAFilesSizeIsRefusedWithWhatToTry) {
  const int status = InChildWithSizeLimit(
      4096, [] { return RefusesToMake(kMiB, "raise the limit (ulimit -f unlimited)"); });
  EXPECT_EQ(status, 0);
}

TEST(SharedMemoryTest, IsZeroAtFirst) {
  const SharedSegment memory(3 * kMiB + 5);
  for (size_t i = 0; i < memory.bytes(); ++i) ASSERT_EQ(memory.data()[i], 0) << i;
}

}  // namespace
}  // namespace trainer
