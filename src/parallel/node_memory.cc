#include "node_memory.h"

#include <chrono>
#include <thread>
#include <utility>

#include "trainer/base/process_life.h"
#include "trainer/parallel/failure.h"

namespace trainer {

std::byte* NodeMemory::Allocate(size_t bytes) {
  RankSlot& first = block_.slot(0);
  SharedMemory own;
  if (local_ == 0) {
    own = SharedMemory(bytes);
    first.memory_fd = own.fd();
  }
  meet_();
  if (local_ != 0) own = SharedMemory(first.process.load(), first.memory_fd.load(), bytes);
  meet_();
  own.CloseDescriptor();
  blocks_.push_back(std::move(own));
  return reinterpret_cast<std::byte*>(blocks_.back().data());
}

// Rank 0 tests and saves: without it nothing would be left of the run.
void NodeMemory::GoApart() {
  meet_();
  apart_ = true;
  if (local_ != 0) block_.slot(local_).apart = 1;
}

bool NodeMemory::HasEnded(int rank) {
  return block_.slot(rank).state != RankState::kFinished &&
         ProcessHasEnded(block_.slot(rank).process.load());
}

void NodeMemory::ThrowIfFailed() {
  if (block_.failure().code != 0) throw EndedByPeer(block_.failure().code);
}

void NodeMemory::AwaitOthers() {
  for (int rank = 0; rank < block_.locals(); ++rank) {
    while (block_.slot(rank).state != RankState::kFinished && !HasEnded(rank)) {
      ThrowIfFailed();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

}  // namespace trainer
