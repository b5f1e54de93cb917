#pragma once

#include "trainer/input/counters.h"
#include "trainer/input/position.h"
#include "trainer/layers/layer.h"

namespace trainer {

// How long a data layer made the net wait, the first batch included; 0 for other layers.
inline double SecondsWaitedFor(const Layer& layer) {
  const InputCounters* const waits = layer.Waits();
  return waits == nullptr ? 0 : waits->wait_seconds + waits->first_wait_seconds;
}

// How often a data layer came back to its first record.
inline int64_t EpochOf(const Layer& layer) {
  return static_cast<int64_t>(Position::Decode(layer.SaveState()).epoch);
}

}  // namespace trainer
