#include "live_view_drawing.h"

namespace trainer {

void LiveView::Drawing::Begin(int iter) {
  SetIter(iter);
  const std::lock_guard<std::mutex> lock(mutex_);
  begin_ = Clock::now();
  begun_ = true;
}

double LiveView::Drawing::Seconds() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void LiveView::Drawing::Finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  finished_ = true;
}

std::string LiveView::Drawing::Line(int columns) {
  LiveState state;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (finished_) return "";
    state = state_;
    if (begun_) state.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  state.iter = iter_.load(std::memory_order_relaxed);
  return LiveLine(state, columns);
}

}  // namespace trainer
