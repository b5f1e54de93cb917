// Weights and the rule's state are once in the memory of the machine. Gradients are summed as by
// synchronous replicas; then each rank updates its part of the weights, for all. Ranks of the CPU
// compute with the weights there; every number is made as by synchronous ones, so that losses and
// weights are the same bits. GPUs have a copy of the weights, which they take after each update,
// and the processor makes the updates.

#include <algorithm>

#include "param_shares.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/steps/host_step.h"
#include "trainer/strategies/strategy.h"

namespace trainer {
namespace {

// Blocks that all ranks see, which stay until the run is over.
class PeerBlocks final : public std::pmr::memory_resource {
 public:
  explicit PeerBlocks(SharedWindow& peers) : peers_(peers) {}
  size_t bytes() const { return bytes_; }

 private:
  void* do_allocate(size_t bytes, size_t) override {
    bytes_ += bytes;
    return peers_.Allocate(std::max<size_t>(bytes, 1));
  }
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  SharedWindow& peers_;
  size_t bytes_ = 0;
};

class CentralStorage final : public Strategy {
 public:
  explicit CentralStorage(const SolverSpec& spec) : spec_(spec) {
    if (spec.proto.ema_decay() > 0) {
      spec.Fail("ema_decay",
                Join("ema_decay is ", spec.proto.ema_decay(),
                     ", but with strategy 'central_storage' all ranks share one set of weights, so "
                     "no rank can replace it by its average; remove one of the two"));
    }
  }

  std::pmr::memory_resource* WeightMemory(const Device& device, SharedWindow* peers) override {
    const bool share = peers != nullptr && peers->post() == nullptr;
    if (!share) {
      throw Error(ErrorCode::kUnavailable, spec_.Where("strategy"),
                  "strategy 'central_storage' stores the weights in memory shared by all ranks of "
                  "one machine, but these ranks share none; use strategy 'synchronous', which "
                  "gives the same results");
    }
    blocks_ = std::make_unique<PeerBlocks>(*peers);
    return device.IsAsync() ? nullptr : blocks_.get();
  }

  std::unique_ptr<StepRule> MakeRule(const SolverSpec& spec, const Device& device) override {
    const bool evaluates = StepRuleRegistry::Get().Has(spec.proto.type());
    if (evaluates || !device.IsAsync()) return Strategy::MakeRule(spec, device);
    auto step =
        std::make_unique<HostStep>(spec, trainer::MakeRule(spec, StepRuleNames()), *blocks_);
    host_ = step.get();
    return step;
  }

  void Prepare(const StrategySeat& seat) override {
    seat_ = &seat;
    if (seat.rule.SetShare(OwnParams(seat.objective.params(), seat.group.replica()))) return;
    spec_.Fail("type", Join("a solver of type ", spec_.proto.type(),
                            " updates all weights in one step, but with strategy 'central_storage' "
                            "each rank updates a part; use an update rule such as SGD"));
  }

  void Start(int) override {
    if (host_ == nullptr) return;
    if (seat_->group.replica().rank == 0) host_->GiveWeights();
    AwaitAll();
  }

  // The others move theirs.
  bool UpdatesMoveAll() const override { return false; }

  // All parts are updated before anybody reads them.
  void AfterStep(int) override {
    AwaitAll();
    if (host_ != nullptr) host_->TakeWeights();
  }

  std::string Describe() const override {
    return Join("Strategy central_storage: ", blocks_->bytes() / 1024,
                " KiB of weights and rule state, stored once for ", seat_->group.replica().size,
                " ranks");
  }

 private:
  void AwaitAll() {
    float done = 1;
    seat_->group.Sum({&done, 1});
  }

  const SolverSpec& spec_;
  std::unique_ptr<PeerBlocks> blocks_;
  HostStep* host_ = nullptr;  // where a GPU computes
  const StrategySeat* seat_ = nullptr;
};

const RegisterStrategy<CentralStorage> kCentralStorage("central_storage");

}  // namespace
}  // namespace trainer
