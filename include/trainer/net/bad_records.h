#pragma once

#include <functional>
#include <span>

#include "trainer/net/net.h"

namespace trainer {

// After passes of a net: adds up over all replicas, by `sum` (empty: this one is alone), the bad
// records that its data layers skipped, and tells them. All replicas call it alike. Throws kData
// where there are more than are to be skipped; does nothing where bad records end a run.
void CountBadRecords(const Net& net, const std::function<void(std::span<float>)>& sum);

}  // namespace trainer
