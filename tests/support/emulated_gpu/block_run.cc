#include "support/emulated_gpu/block_run.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "support/emulated_gpu/state.h"
#include "trainer/base/text/text.h"

namespace emulated_gpu {
namespace {

using trainer::Join;

std::string Text(dim3 at) { return Join("(", at.x, ", ", at.y, ", ", at.z, ")"); }
std::string Text(Site site) { return Join(site.file, ":", site.line); }

}  // namespace

void BlockRun::Start(const Kernel& kernel) {
  kernel_ = &kernel;
  sync_problem_ = false;
  // A fibre may keep the address of another host thread's thread_local variable in a register.
  if (std::exchange(host_thread_, std::this_thread::get_id()) != std::this_thread::get_id()) {
    for (auto& fiber : fibers_) fiber->Restart();
  }
  const dim3 size = kernel.threads;
  count_ = size_t{size.x} * size.y * size.z;
  threads_.resize(count_);
  order_.resize(count_);
  for (size_t t = 0; t < count_; ++t) {
    threads_[t].at =
        dim3(static_cast<unsigned>(t % size.x), static_cast<unsigned>(t / size.x % size.y),
             static_cast<unsigned>(t / size.x / size.y));
    order_[t] = t;
  }
  for (size_t t = count_; t > 1; --t) std::swap(order_[t - 1], order_[TheRandom().Below(t)]);
  at.block_size = size;
  at.grid_size = kernel.blocks;
}

bool BlockRun::Run(dim3 block) {
  at.block = block_ = block;
  for (Thread& thread : threads_) thread.state = State::kNew;
  std::rotate(order_.begin(), order_.begin() + static_cast<int64_t>(TheRandom().Below(count_)),
              order_.end());
  next_ = done_ = at_barrier_ = 0;
  ready_.clear();
  while (done_ < count_) {
    if (next_ < count_ && (ready_.empty() || TheRandom().Below(4) != 0)) {
      RunNewThreads();
    } else if (!ready_.empty()) {
      ResumeOne();
    } else if (!ReleaseWarps() && !ReleaseBarrier()) {
      AddProblem(Join("block ", Text(block_), " waits for ever: ", DescribeWaiting()));
      for (auto& fiber : fibers_) fiber->Restart();
      idle_.clear();
      for (auto& fiber : fibers_) idle_.push_back(fiber.get());
      return false;
    }
  }
  return true;
}

// A fibre runs one thread after the other until one waits, so that most kernels need one fibre and
// one switch per block.
void BlockRun::Body(void* self) {
  BlockRun& run = *static_cast<BlockRun*>(self);
  for (;;) {
    while (run.next_ < run.count_) {
      const size_t t = run.order_[run.next_++];
      run.current_ = t;
      at.thread = run.threads_[t].at;
      run.threads_[t].fiber = run.running_;
      run.kernel_->run();
      run.threads_[run.current_].state = State::kDone;
      ++run.done_;
    }
    run.idle_.push_back(run.running_);
    run.running_->Stop();
  }
}

void BlockRun::RunNewThreads() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(&BlockRun::Body, this));
    idle_.push_back(fibers_.back().get());
  }
  running_ = idle_.back();
  idle_.pop_back();
  running_->Resume();
}

void BlockRun::ResumeOne() {
  const size_t chosen = TheRandom().Below(ready_.size());
  const size_t t = ready_[chosen];
  ready_[chosen] = ready_.back();
  ready_.pop_back();
  current_ = t;
  at.thread = threads_[t].at;
  running_ = threads_[t].fiber;
  running_->Resume();
}

void BlockRun::Wait(State state) {
  threads_[current_].state = state;
  running_->Stop();
}

void BlockRun::Sync(Site site) {
  threads_[current_].barrier = site;
  ++at_barrier_;
  Wait(State::kAtBarrier);
}

void BlockRun::Warp(const WarpCall& call) {
  Thread& thread = threads_[current_];
  const size_t warp = current_ / 32;
  if ((call.mask >> (current_ % 32) & 1) == 0) {
    AddProblem(Join(NameOf(call.op), " at ", Text(call.site), ": ", Describe(thread),
                    " is not in its own mask"));
  }
  thread.call = &call;
  thread.state = State::kInWarp;
  // An exchange of the whole warp can complete only when its last thread arrives.
  if (call.mask == ~0u && AnyElsewhere(warp)) return Wait(State::kInWarp);
  if (Complete(warp)) {  // the last thread to arrive continues at once
    ready_.erase(std::find(ready_.begin(), ready_.end(), current_));
    return;
  }
  Wait(State::kInWarp);
}

// Returns whether a thread of the warp neither ended nor waits in an exchange.
bool BlockRun::AnyElsewhere(size_t warp) const {
  for (size_t t = warp * 32; t < std::min(count_, warp * 32 + 32); ++t) {
    if (threads_[t].state != State::kDone && threads_[t].state != State::kInWarp) return true;
  }
  return false;
}

// Returns the threads of the mask that have not ended. Callers add the thread's own bit, which its
// mask may lack.
unsigned BlockRun::Members(size_t warp, unsigned mask) const {
  unsigned members = 0;
  for (size_t lane = 0; lane < 32 && warp * 32 + lane < count_; ++lane) {
    if (threads_[warp * 32 + lane].state != State::kDone) members |= 1u << lane;
  }
  return members & mask;
}

// Completes an exchange of the warp that has all its members, and makes them ready. Returns whether
// the current thread is ready.
bool BlockRun::Complete(size_t warp) {
  for (size_t t = warp * 32; t < std::min(count_, warp * 32 + 32); ++t) {
    if (threads_[t].state != State::kInWarp) continue;
    const WarpCall& first = *threads_[t].call;
    WarpCalls calls;
    calls.members = Members(warp, first.mask | 1u << (t % 32));
    bool all = true;
    for (size_t lane = 0; lane < 32; ++lane) {
      if ((calls.members >> lane & 1) == 0) continue;
      const Thread& other = threads_[warp * 32 + lane];
      all = all && other.state == State::kInWarp && other.call->op == first.op &&
            other.call->mask == first.mask && other.call->bytes == first.bytes &&
            other.call->site == first.site;
      calls.call[lane] = other.call;
    }
    if (!all) continue;
    const std::string problem = CompleteWarp(calls);
    if (!problem.empty()) AddProblem(Join("block ", Text(block_), ": ", problem));
    for (size_t lane = 0; lane < 32; ++lane) {
      if ((calls.members >> lane & 1) == 0) continue;
      threads_[warp * 32 + lane].state = State::kReady;
      ready_.push_back(warp * 32 + lane);
    }
    return threads_[current_].state == State::kReady;
  }
  return false;
}

// Completes exchanges that waited only for threads that have ended.
bool BlockRun::ReleaseWarps() {
  for (size_t warp = 0; warp * 32 < count_; ++warp) Complete(warp);
  return !ready_.empty();
}

bool BlockRun::ReleaseBarrier() {
  if (at_barrier_ == 0 || at_barrier_ < count_ - done_) return false;
  CheckBarrier();
  at_barrier_ = 0;
  for (size_t t = 0; t < count_; ++t) {
    if (threads_[t].state != State::kAtBarrier) continue;
    threads_[t].state = State::kReady;
    ready_.push_back(t);
  }
  return true;
}

// A GPU may continue if some threads have ended or wait at another line; no kernel may rely on it.
void BlockRun::CheckBarrier() {
  const Thread* first = nullptr;
  for (const Thread& thread : threads_) {
    if (thread.state == State::kAtBarrier && first == nullptr) first = &thread;
  }
  for (const Thread& thread : threads_) {
    if (sync_problem_ || (thread.state == State::kAtBarrier && thread.barrier == first->barrier)) {
      continue;
    }
    sync_problem_ = true;
    AddProblem(Join("block ", Text(block_), ": ", Describe(*first), " while ", Describe(thread)));
  }
}

std::string BlockRun::Describe(const Thread& thread) const {
  const std::string who = Join("thread ", Text(thread.at));
  switch (thread.state) {
    case State::kAtBarrier:
      return Join(who, " waits in __syncthreads at ", Text(thread.barrier));
    case State::kInWarp:
      return Join(who, " waits in ", NameOf(thread.call->op), " at ", Text(thread.call->site));
    case State::kDone:
      return who + " has ended";
    default:
      return who;
  }
}

// Describes one thread for each kind of waiting.
std::string BlockRun::DescribeWaiting() const {
  std::string text;
  std::vector<std::pair<State, int>> named;
  for (const Thread& thread : threads_) {
    const bool in_warp = thread.state == State::kInWarp;
    const std::pair kind(thread.state, in_warp ? thread.call->site.line : thread.barrier.line);
    if (std::find(named.begin(), named.end(), kind) != named.end()) continue;
    named.push_back(kind);
    text += (text.empty() ? "" : "; ") + Describe(thread);
  }
  return text;
}

}  // namespace emulated_gpu
