#pragma once
// Whether threads that read hang.

#include <chrono>
#include <span>
#include <thread>

#include "trainer/base/stall.h"

namespace trainer {

// For a thread that waits for what others make.
class StallWatch {
 public:
  // To be asked a few times a second while nothing comes. True when none of the threads has run for
  // `longest`, as StallClock says; nor has the one that they wait for where a page is to be mended.
  bool HaveStalled(std::span<std::jthread> threads, std::chrono::milliseconds longest);

 private:
  StallClock clock_;
};

}  // namespace trainer
