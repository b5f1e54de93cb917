#pragma once
// A communicator that records the calls made to another one.

#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/ranks/communicator.h"
#include "trainer/base/text/text.h"

namespace trainer {

// Forwards each call to `to` and records a line with its name and the count of its numbers. Equal
// lines in a row become one line with their count. A rank that waits for the disk of rank 0 asks
// again each second: these questions count as one, since their number depends on the speed of the
// machine. `to` must outlive the object. Used by one thread.
class CollectiveLog final : public Communicator {
 public:
  explicit CollectiveLog(Communicator& to) : to_(to) {}

  Rank rank() const override { return to_.rank(); }
  void OnGradientReady(int slice, std::span<float> values) override {
    Write("gradient", slice, values.size());
    to_.OnGradientReady(slice, values);
  }
  void WaitGradient(int slice) override {
    Write("wait", slice);
    to_.WaitGradient(slice);
  }
  int LastReduced(int slice) const override { return to_.LastReduced(slice); }
  void AllReduce(std::span<float> values) override {
    const bool repeated = asks_again_ && values.size() == 1;
    if (!repeated) Write("all_reduce", values.size());
    to_.AllReduce(values);
    asks_again_ = values.size() == 1 && values[0] == 1;
  }
  std::string WhyNotTreeOrder() const override { return to_.WhyNotTreeOrder(); }
  std::vector<std::string> Gather(const std::string& own) override {
    Write("gather");
    return to_.Gather(own);
  }
  void Broadcast(std::span<float> values) override {
    Write("broadcast", values.size());
    to_.Broadcast(values);
  }
  std::pmr::memory_resource* gradient_memory() override { return to_.gradient_memory(); }
  void Heartbeat(int iterations) override { to_.Heartbeat(iterations); }

  std::string NameOf(int rank) const override { return Join("rank ", rank); }
  std::optional<CommStats> stats() const override { return CommStats{}; }

  // Adds a line of the caller's own that says what the following calls are for.
  void Mark(const std::string& text) { Line(Join("# ", text)); }
  std::string text() const {
    std::string all;
    for (const auto& [line, count] : lines_) {
      all += count > 1 ? Join(line, " x", count, "\n") : line + "\n";
    }
    return all;
  }

 private:
  template <class... Counts>
  void Write(const char* call, Counts... counts) {
    asks_again_ = false;
    std::string line = call;
    ((line += Join(" ", counts)), ...);
    Line(line);
  }
  void Line(const std::string& line) {
    if (lines_.empty() || lines_.back().first != line) lines_.emplace_back(line, 0);
    ++lines_.back().second;
  }

  Communicator& to_;
  std::vector<std::pair<std::string, int>> lines_;
  bool asks_again_ = false;  // rank 0 said in the last call that it has to wait
};

}  // namespace trainer
