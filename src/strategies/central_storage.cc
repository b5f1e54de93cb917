// Central storage: the weights and the optimizer state exist once, in shared memory of the node.
// Gradients are all-reduced as with strategy synchronous; then each rank updates its own parameters
// for all. CPU ranks compute directly with the shared weights. Every number is computed as with
// strategy synchronous, so losses and weights have the same bits. GPUs have a copy of the weights,
// which they refresh after each update, and the CPU makes the updates.

#include <algorithm>

#include "param_partition.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/optim/first_order.h"
#include "trainer/strategies/strategy.h"

namespace trainer {
namespace {

// Allocates blocks that all ranks map. They are never freed before the run ends.
class PeerBlocks final : public std::pmr::memory_resource {
 public:
  explicit PeerBlocks(SharedWindow& window) : window_(window) {}
  size_t bytes() const { return bytes_; }

 private:
  void* do_allocate(size_t bytes, size_t) override {
    bytes_ += bytes;
    return window_.Allocate(std::max<size_t>(bytes, 1));
  }
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  SharedWindow& window_;
  size_t bytes_ = 0;
};

// Implements strategy central_storage: all ranks share one set of weights, and each rank updates a
// part of it after the gradients were all-reduced.
class CentralStorage final : public Strategy {
 public:
  explicit CentralStorage(const SolverSpec& spec)
      : Strategy({.only_own_updates = false}), spec_(spec) {
    if (spec.proto.ema_decay() > 0) {
      spec.Fail("ema_decay",
                Join("ema_decay is ", spec.proto.ema_decay(),
                     ", but with strategy 'central_storage' all ranks share one set of weights, so "
                     "no rank can replace it by its average; remove one of the two"));
    }
  }

  // Returns shared memory for CPU ranks, and null for GPUs, whose weights stay on the device.
  std::pmr::memory_resource* WeightMemory(const Device& device, SharedWindow* window) override {
    const bool share = window != nullptr && window->rpc() == nullptr;
    if (!share) {
      throw Error(ErrorCode::kUnavailable, spec_.Where("strategy"),
                  "strategy 'central_storage' stores the weights in memory shared by all ranks of "
                  "one machine, but these ranks share none; use strategy 'synchronous', which "
                  "gives the same results");
    }
    blocks_ = std::make_unique<PeerBlocks>(*window);
    return device.IsAsync() ? nullptr : blocks_.get();
  }

  // For GPUs, returns an optimizer that updates weights in the shared memory on the host.
  std::unique_ptr<Optimizer> MakeOptimizer(const SolverSpec& spec, const Device& device) override {
    const bool evaluates = OptimizerRegistry::Get().Has(spec.proto.type());
    if (evaluates || !device.IsAsync()) return Strategy::MakeOptimizer(spec, device);
    auto optimizer = std::make_unique<FirstOrderOptimizer>(spec, blocks_.get());
    offloaded_ = optimizer.get();
    return optimizer;
  }

  // Makes this rank update its own parameters only. Throws kConfig for optimizers that cannot.
  void Connect() override {
    const std::vector<bool> own = OwnedParams(context().objective.params(), context().group.rank());
    if (context().optimizer.UpdateOnly(own, /*unscaled=*/false)) return;
    spec_.Fail("type", Join("a solver of type ", spec_.proto.type(),
                            " updates all weights in one step, but with strategy 'central_storage' "
                            "each rank updates a part; use an update rule such as SGD"));
  }

  // Fills the shared weights from rank 0's GPU, if GPUs compute.
  void Begin(int) override {
    if (offloaded_ == nullptr) return;
    if (context().group.rank().rank == 0) offloaded_->PushWeights();
    context().group.Barrier();
  }

  // Waits for all ranks, because no rank may read weights before all have updated their parameters.
  // GPUs then refresh their copies.
  int AfterStep(int iter) override {
    context().group.Barrier();
    if (offloaded_ != nullptr) offloaded_->PullWeights();
    return iter + 1;
  }

  std::string Describe() const override {
    return Join("Strategy central_storage: ", blocks_->bytes() / 1024,
                " KiB of weights and rule state, stored once for ", context().group.rank().size,
                " ranks");
  }

 private:
  const SolverSpec& spec_;
  std::unique_ptr<PeerBlocks> blocks_;
  FirstOrderOptimizer* offloaded_ = nullptr;  // null unless a GPU computes
};

const RegisterStrategy<CentralStorage> kCentralStorage("central_storage");

}  // namespace
}  // namespace trainer
