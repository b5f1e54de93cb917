#include "trainer/base/left_threads.h"

#include <atomic>

namespace trainer {
namespace {

std::atomic<bool> left_behind{false};

}  // namespace

void NoteThreadLeftBehind() { left_behind = true; }
bool HasThreadsLeftBehind() { return left_behind; }

}  // namespace trainer
