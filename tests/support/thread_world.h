#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "support/thread_group.h"
#include "trainer/base/text/text.h"
#include "trainer/parallel/world.h"

namespace trainer {

// A rank that is a thread. Each rank reports a host of its own.
class ThreadWorld final : public World {
 public:
  ThreadWorld(Meeting& meeting, int rank, std::function<void()> on_finish)
      : group_(meeting, rank, true), on_finish_(std::move(on_finish)) {
    topology_.rank = group_.rank();
    topology_.names = {"rank 0", "rank 1"};
    topology_.ranks_of_node = {{0}, {1}};
    topology_.node = rank;
    topology_.host = Join("host ", rank);
  }
  Communicator& group() override { return group_; }
  SharedWindow* window() override { return nullptr; }
  const Topology& topology() const override { return topology_; }
  std::string Describe() const override { return "ranks that are threads"; }
  const std::string& warning() const override { return warning_; }
  std::string SetCompression(CompressionType) override { return ""; }
  std::string DescribeSent() const override { return ""; }
  void ResetErrorFeedback() override {}
  size_t bucket_floats() const override { return 1; }
  void Poll() override {}
  std::optional<double> AllReduceByMpi(std::span<float>) override { return std::nullopt; }
  bool mpi_takes_gpu_memory() const override { return false; }
  void SumByMpi(std::span<float>, const std::function<void()>&) override {}
  void Finish() override { on_finish_(); }

 private:
  ThreadGroup group_;
  const std::function<void()> on_finish_;
  const std::string warning_;
  Topology topology_;
};

}  // namespace trainer
