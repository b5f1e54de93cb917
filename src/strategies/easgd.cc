// Asynchronous elastic averaging SGD: every `period` steps (tau in the paper) a rank's weights x
// and the center variable x~, which all ranks share, move towards each other: x -= alpha (x - x~)
// and x~ += alpha (x - x~), where alpha is `elasticity`. With momentum in the update rule it is
// EAMSGD. The center is in the memory of rank 0's node; ranks of other nodes send their weights
// there and get them back moved. Source: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with
// Elastic Averaging SGD", NIPS 2015. The default of alpha, 0.9 / ranks, is the paper's.

#include <algorithm>
#include <optional>

#include "async_strategy.h"
#include "field_checks.h"
#include "shared_array.h"

namespace trainer {
namespace {

// The largest block of the center. Each has a lock, so that several ranks can move different blocks
// at once.
constexpr size_t kBlock = 1 << 16;  // floats

// The paper's variables: own_ is x^i, this rank's weights during an exchange; center_ is x~;
// elasticity_ is alpha; period_ is tau.
class Easgd final : public AsyncStrategy {
 public:
  explicit Easgd(const SolverSpec& spec)
      : AsyncStrategy(spec),
        period_(spec.proto.strategy_param().period()),
        elasticity_(spec.proto.strategy_param().elasticity()) {
    RequireAtLeast(spec, "period", period_, 1);
    RequireField(spec, elasticity_ >= 0 && elasticity_ <= 1, "elasticity", elasticity_,
                 "from 0 to 1; 0 means 0.9 / ranks");
  }

 private:
  // Allocates the center and starts it as rank 0's weights.
  void AllocateShared() override {
    if (elasticity_ == 0) elasticity_ = 0.9f / static_cast<float>(ranks());
    own_.resize(state().weights());
    const auto blocks = static_cast<int>((own_.size() + kBlock - 1) / kBlock);
    center_.emplace(window(), rank(), 0, own_.size(), blocks,
                    [this](std::span<float> center, std::span<float> own) { Move(center, own); });
    if (rank() == 0) state().Read(center_->floats());
  }

  // Every tau steps, moves this rank's weights and the center towards each other.
  void Exchange(int64_t steps) override {
    if (steps % period_ != 0) return;
    state().Read(own_);
    center_->Merge(own_);
    state().Write(own_);
    const int64_t now = coordinator().global_step();
    CountExchange(2 * static_cast<int64_t>(own_.size() * sizeof(float)),
                  last_ < 0 ? 0 : std::max<int64_t>(0, now - last_ - period_));
    last_ = now;
  }

  // Moves a part of x^i and the same part of the center x~ towards each other by alpha (x^i - x~).
  void Move(std::span<float> center, std::span<float> own) const {
    for (size_t i = 0; i < own.size(); ++i) {
      const float move = elasticity_ * (own[i] - center[i]);
      own[i] -= move;
      center[i] += move;
    }
  }

  // Returns the center.
  std::span<const float> Consensus() override {
    copy_.resize(own_.size());
    center_->Read(copy_);
    return copy_;
  }

  int period_;
  float elasticity_;
  std::optional<SharedArray> center_;
  std::vector<float> own_, copy_;
  int64_t last_ = -1;  // the global step at the last exchange; -1: none
};

const RegisterStrategy<Easgd> kEasgd("easgd");

}  // namespace
}  // namespace trainer
