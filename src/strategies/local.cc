// Local SGD: each rank makes its own steps, and every `period` steps all weights are replaced by
// their mean over the ranks. The first `synchronous_iter` steps all-reduce gradients instead:
// post-local SGD (Lin, Stich, Patel, Jaggi: "Don't Use Large Mini-Batches, Use Local SGD", ICLR
// 2020). Each rank keeps its own optimizer state.

#include <algorithm>
#include <memory_resource>
#include <optional>

#include "field_checks.h"
#include "flat_state.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The first byte of a rank's record. kInBoth: weights and optimizer state follow; kInStates: only
// the optimizer state follows, because the weights are the ones in the snapshot's file.
enum class Differs : char { kInBoth = 'b', kInStates = 's' };

// Implements strategy local: each rank makes its own steps, and the ranks average their weights
// every `period` steps.
class Local final : public Strategy {
 public:
  explicit Local(const SolverSpec& spec)
      : Strategy({.synchronous = false, .only_own_updates = false}),
        period_(spec.proto.strategy_param().period()),
        synchronous_(spec.proto.strategy_param().synchronous_iter()),
        rounds_(spec.proto.exchange_type() != caffe::FLOAT) {
    RequireAtLeast(spec, "period", period_, 1);
    RequireAtLeast(spec, "synchronous_iter", synchronous_, 0);
  }

  bool ReducesGradients(int updates) const override { return updates < synchronous_; }
  // Returns true after each synchronous step, and then every `period` steps.
  bool IsSyncPoint(int updates) const override {
    return updates <= synchronous_ || (updates - synchronous_) % period_ == 0;
  }

  void Connect() override {
    state_.emplace(context());
    // The all-reduce works in place in the communicator's gradient memory. With a 16-bit
    // exchange_type it rounds gradients there between nodes, which must not happen to weights.
    std::pmr::memory_resource* const memory = rounds_ ? nullptr : context().group.gradient_memory();
    mean_.emplace(state_->weights(), memory == nullptr ? std::pmr::get_default_resource() : memory);
    own_.resize(state_->all());
  }

  // Restores the optimizer state, and the weights unless the record says that they are the
  // snapshot's.
  void LoadRank(const std::string& state) override {
    const bool both = state.starts_with(static_cast<char>(Differs::kInBoth));
    const std::string_view bytes =
        std::string_view(state).substr(std::min<size_t>(1, state.size()));
    state_->Read(own_);
    const std::span<float> all(own_);
    ReadFloats(bytes, both ? all : all.subspan(state_->weights()));
    state_->Write(own_);
    equal_ = !both;
  }

  void Begin(int updates) override { updates_ = updates; }

  // After each `period` local steps, replaces the weights by their mean over the ranks.
  int AfterStep(int iter) override {
    updates_ = iter + 1;
    equal_ = ReducesGradients(iter);
    if (equal_ || !IsSyncPoint(updates_)) return updates_;
    Average();
    state_->Write(*mean_);
    equal_ = true;
    ++exchanges_;
    return updates_;
  }

  // Gathers the optimizer states, and the weights if they differ between ranks; nothing in the
  // synchronous phase, in which all ranks are equal.
  std::vector<std::string> SaveRanks() override {
    if (updates_ <= synchronous_) return {};
    state_->Read(own_);
    std::ranges::copy(own_weights(), own_.begin());
    const std::span<const float> all(own_);
    const auto differs = static_cast<char>(equal_ ? Differs::kInStates : Differs::kInBoth);
    return context().group.Gather(std::string(1, differs) +
                                  BytesOf(equal_ ? all.subspan(state_->weights()) : all));
  }

  size_t MaxStateBytes() const override {
    return static_cast<size_t>(context().group.rank().size) * (1 + own_.size() * sizeof(float));
  }

  std::string Describe() const override {
    const auto others = static_cast<int64_t>(context().group.rank().size - 1);
    const auto bytes = static_cast<int64_t>(state_->weights() * sizeof(float));
    return Join("Strategy local: ", exchanges_, " exchanges, ",
                exchanges_ * 2 * others * bytes / 1024, " KiB sent");
  }

 private:
  // Returns the mean of the weights, unless all ranks have equal weights anyway.
  std::span<const float> Consensus() override {
    if (equal_) return {};
    Average();
    return *mean_;
  }

  // Sets mean_ to the mean of all ranks' present weights.
  void Average() {
    state_->Read(*mean_);
    context().group.AllReduce(*mean_);
    const auto ranks = static_cast<float>(context().group.rank().size);
    for (float& weight : *mean_) weight /= ranks;
  }

  int period_, synchronous_;
  bool rounds_;
  std::optional<FlatState> state_;
  std::optional<std::pmr::vector<float>> mean_;
  std::vector<float> own_;  // a copy of this rank's own state
  bool equal_ = true;       // whether all ranks have equal weights
  int updates_ = 0;
  int64_t exchanges_ = 0;
};

const RegisterStrategy<Local> kLocal("local");

}  // namespace
}  // namespace trainer
