// Local SGD: each rank makes steps of its own, and every `period` steps the weights of all become
// their mean. With `synchronous_iter` gradients are summed in each step before that: post-local SGD
// (Lin, Stich, Patel, Jaggi: "Don't Use Large Mini-Batches, Use Local SGD", ICLR 2020). The rule's
// state stays each rank's own.

#include <algorithm>
#include <memory_resource>
#include <optional>

#include "field_checks.h"
#include "flat_state.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// What a rank's state begins with: whether its weights are those of the file, and whether its
// rule's state is.
enum class Differs : char { kInBoth = 'b', kInStates = 's' };

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
  bool IsSyncPoint(int updates) const override {
    return updates <= synchronous_ || (updates - synchronous_) % period_ == 0;
  }

  void Prepare(const StrategyContext& context) override {
    context_ = &context;
    state_.emplace(context);
    // Sums are made in place in the group's memory. Gradients there may be rounded between
    // machines; weights must not be.
    std::pmr::memory_resource* const memory = rounds_ ? nullptr : context.group.gradient_memory();
    mean_.emplace(state_->weights(), memory == nullptr ? std::pmr::get_default_resource() : memory);
    own_.resize(state_->all());
  }

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

  void AfterStep(int updates) override {
    updates_ = updates;
    equal_ = ReducesGradients(updates - 1);
    if (equal_ || !IsSyncPoint(updates)) return;
    Average();
    state_->Write(*mean_);
    equal_ = true;
    ++exchanges_;
  }

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

  // Over all ranks, of their present weights.
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
  std::vector<float> own_;  // a copy of this rank's, of use within a consensus
  bool equal_ = true;       // the weights of all ranks
  bool swapped_ = false;    // this rank has the mean, and its own are in own_
  int updates_ = 0;
  int64_t exchanges_ = 0;
};

const RegisterStrategy<Local> kLocal("local");

}  // namespace
}  // namespace trainer
