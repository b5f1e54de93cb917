#include "trainer/net/output_counts.h"

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

void RequireEqualCounts(size_t before, size_t now) {
  if (before == now) return;
  throw Error(ErrorCode::kConfig,
              Join("the outputs of the net have ", now, " values in this batch, but had ", before,
                   " in the batch before, so they cannot be averaged: connect each output that a "
                   "Filter layer resizes to a Silence layer"));
}

}  // namespace trainer
