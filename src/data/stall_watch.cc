#include "stall_watch.h"

#include <pthread.h>

#include <optional>

#include "map_mender.h"

namespace trainer {

bool StallWatch::HaveStalled(std::span<std::jthread> threads, std::chrono::milliseconds longest) {
  std::chrono::nanoseconds sum{0};
  for (std::jthread& thread : threads) {
    if (thread.joinable()) sum += CoreTimeOf(thread.native_handle());
  }
  const std::optional<pthread_t> mender = MendingThread();
  if (mender) sum += CoreTimeOf(*mender);
  return clock_.HasStalled(sum, longest);
}

}  // namespace trainer
