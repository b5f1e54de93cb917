#pragma once
// Shared memory of replicas that are threads of one process.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/ranks/shared_window.h"
#include "trainer/base/text/text.h"

namespace trainer {

// The shared memory of all threads of a run; each `per_machine` ranks in a row share a machine.
class SharedBlocks {
 public:
  explicit SharedBlocks(int ranks, int per_machine = 1 << 30)
      : ranks_(ranks),
        per_machine_(per_machine),
        barrier_(ranks),
        ended_(static_cast<size_t>(ranks)),
        boxes_(static_cast<size_t>(ranks)) {}

  // Makes the threads believe that the process of a rank has ended.
  void End(int rank) { ended_[static_cast<size_t>(rank)] = true; }
  // Returns how many blocks each machine has.
  size_t count() const { return blocks_.at(0).size(); }

 private:
  friend class ThreadWindow;
  friend class ThreadPost;
  // The request handlers of a rank.
  struct Box {
    std::mutex mutex;
    std::vector<Rpc::Handler> answers;
  };
  int NodeOf(int rank) const { return rank / per_machine_; }

  int ranks_, per_machine_;
  std::barrier<> barrier_;
  std::mutex mutex_;  // guards blocks_
  std::map<int, std::vector<std::unique_ptr<std::byte[], void (*)(void*)>>> blocks_;
  std::vector<std::atomic<bool>> ended_;
  std::vector<Box> boxes_;
};

// A thread of the rank that asks runs the handler.
class ThreadPost final : public Rpc {
 public:
  ThreadPost(SharedBlocks& blocks, int rank)
      : blocks_(blocks), rank_(rank), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

  int Register(Handler answer) override {
    const std::lock_guard lock(own().mutex);
    own().answers.push_back(std::move(answer));
    return static_cast<int>(own().answers.size()) - 1;
  }
  void Unregister() override {
    const std::lock_guard lock(own().mutex);
    own().answers.clear();
  }
  uint64_t CallAsync(int rank, int method, Bytes request) override {
    const std::lock_guard lock(mutex_);
    questions_.push_back({++tickets_, rank, method, std::move(request)});
    changed_.notify_all();
    return tickets_;
  }
  Bytes Wait(uint64_t call) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return replies_.contains(call); });
    return std::move(replies_.extract(call).mapped());
  }

 private:
  struct Question {
    uint64_t call;
    int rank, method;
    Bytes request;
  };
  SharedBlocks::Box& own() { return blocks_.boxes_[static_cast<size_t>(rank_)]; }

  void Run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !questions_.empty(); })) {
      AnswerAll();
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }
  // Answers in the order of the questions.
  void AnswerAll() {
    std::erase_if(questions_, [&](const Question& question) {
      SharedBlocks::Box& box = blocks_.boxes_[static_cast<size_t>(question.rank)];
      const std::lock_guard lock(box.mutex);
      const auto method = static_cast<size_t>(question.method);
      Bytes reply;
      if (method >= box.answers.size() || !box.answers[method](rank_, question.request, &reply)) {
        return false;
      }
      replies_[question.call] = std::move(reply);
      return true;
    });
    changed_.notify_all();
  }

  SharedBlocks& blocks_;
  int rank_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t tickets_ = 0;
  std::list<Question> questions_;
  std::map<uint64_t, Bytes> replies_;
  std::jthread thread_;
};

class ThreadWindow final : public SharedWindow {
 public:
  ThreadWindow(SharedBlocks& blocks, int rank) : blocks_(blocks), rank_(rank), rpc_(blocks, rank) {}

  std::byte* Allocate(size_t bytes) override {
    const int machine = NodeOf(rank_);
    if (rank_ % blocks_.per_machine_ == 0) {
      const size_t lines = (bytes + 63) / 64 * 64;
      auto* const block = static_cast<std::byte*>(std::aligned_alloc(64, lines));
      std::fill_n(block, lines, std::byte{0});
      const std::lock_guard lock(blocks_.mutex_);
      blocks_.blocks_[machine].emplace_back(block, std::free);
    }
    blocks_.barrier_.arrive_and_wait();
    std::byte* const block = blocks_.blocks_.at(machine).back().get();
    blocks_.barrier_.arrive_and_wait();
    return block;
  }
  int NodeOf(int rank) const override { return blocks_.NodeOf(rank); }
  bool IsSameNode(int rank) const override { return NodeOf(rank) == NodeOf(rank_); }
  Rpc* rpc() override { return NodeOf(blocks_.ranks_ - 1) > 0 ? &rpc_ : nullptr; }
  void EnterAsync(bool) override { blocks_.barrier_.arrive_and_wait(); }
  bool IsDead(int rank) override {
    return IsSameNode(rank) && blocks_.ended_[static_cast<size_t>(rank)];
  }
  void ThrowIfFailed() override {}
  void WaitFor(int rank, const std::function<bool()>& ready) override {
    while (!ready()) {
      if (IsDead(rank)) throw Error(ErrorCode::kPeerLost, NameOf(rank) + " has ended");
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  void Notify(int) override {}
  std::string NameOf(int rank) const override { return Join("rank ", rank, " (a thread)"); }

 private:
  SharedBlocks& blocks_;
  int rank_;
  ThreadPost rpc_;
};

}  // namespace trainer
