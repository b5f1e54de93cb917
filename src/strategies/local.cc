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
      : period_(spec.proto.strategy_param().period()),
        synchronous_(spec.proto.strategy_param().synchronous_iter()),
        rounds_(spec.proto.exchange_type() != caffe::FLOAT) {
    RequireAtLeast(spec, "period", period_, 1);
    RequireAtLeast(spec, "synchronous_iter", synchronous_, 0);
  }

  bool IsSynchronous() const override { return false; }
  bool ReducesGradients(int updates) const override { return updates < synchronous_; }
  // Returns true after each synchronous step, and then every `period` steps.
  bool IsSyncPoint(int updates) const override {
    return updates <= synchronous_ || (updates - synchronous_) % period_ == 0;
  }

  void Prepare(const StrategyContext& context) override {
    context_ = &context;
    state_.emplace(context);
    // The all-reduce works in place in the communicator's gradient memory. With a 16-bit
    // exchange_type it rounds gradients there between nodes, which must not happen to weights.
    std::pmr::memory_resource* const memory = rounds_ ? nullptr : context.group.gradient_memory();
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
  void AfterStep(int updates) override {
    updates_ = updates;
    equal_ = ReducesGradients(updates - 1);
    if (equal_ || !IsSyncPoint(updates)) return;
    Average();
    state_->Write(*mean_);
    equal_ = true;
    ++exchanges_;
  }

  // Gathers the optimizer states, and the weights if they differ between ranks; nothing in the
  // synchronous phase, in which all ranks are equal.
  std::vector<std::string> SaveRanks() override {
    if (updates_ <= synchronous_) return {};
    if (!swapped_) state_->Read(own_);
    const std::span<const float> all(own_);
    const auto differs = static_cast<char>(equal_ ? Differs::kInStates : Differs::kInBoth);
    return context_->group.Gather(std::string(1, differs) +
                                  BytesOf(equal_ ? all.subspan(state_->weights()) : all));
  }

  size_t MaxStateBytes() const override {
    return static_cast<size_t>(context_->group.rank().size) * (1 + own_.size() * sizeof(float));
  }

  std::string Describe() const override {
    const auto others = static_cast<int64_t>(context_->group.rank().size - 1);
    const auto bytes = static_cast<int64_t>(state_->weights() * sizeof(float));
    return Join("Strategy local: ", exchanges_, " exchanges, ",
                exchanges_ * 2 * others * bytes / 1024, " KiB sent");
  }

 private:
  // Replaces the weights by their mean, unless all ranks have equal weights anyway.
  void EnterConsensus() override {
    swapped_ = !equal_;
    if (!swapped_) return;
    state_->Read(own_);
    Average();
    state_->Write(*mean_);
  }

  void LeaveConsensus() override {
    if (swapped_) state_->Write(std::span<const float>(own_).first(state_->weights()));
    swapped_ = false;
  }

  // Sets mean_ to the mean of all ranks' present weights.
  void Average() {
    state_->Read(*mean_);
    context_->group.AllReduce(*mean_);
    const auto ranks = static_cast<float>(context_->group.rank().size);
    for (float& weight : *mean_) weight /= ranks;
  }

  int period_, synchronous_;
  bool rounds_;
  const StrategyContext* context_ = nullptr;
  std::optional<FlatState> state_;
  std::optional<std::pmr::vector<float>> mean_;
  std::vector<float> own_;  // this rank's own state; valid within a consensus
  bool equal_ = true;       // whether all ranks have equal weights
  bool swapped_ = false;    // whether this rank has the mean, and its own weights are in own_
  int updates_ = 0;
  int64_t exchanges_ = 0;
};

const RegisterStrategy<Local> kLocal("local");

}  // namespace
}  // namespace trainer
