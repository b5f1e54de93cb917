// Elastic averaging, asynchronous: every `period` steps a rank and a center, which all share, move
// towards each other by `elasticity` of their distance. With the momentum of the rule it is EAMSGD.
// Source: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with Elastic Averaging SGD", NIPS 2015
// (tau and alpha; alpha is 0.9 / ranks there, which is the default).

#include <algorithm>

#include "apart.h"
#include "checks.h"

namespace trainer {
namespace {

// Several ranks may be at work on different parts of the center.
constexpr size_t kPart = 1 << 16;  // floats

class Easgd final : public ApartStrategy {
 public:
  explicit Easgd(const SolverSpec& spec)
      : ApartStrategy(spec),
        period_(spec.proto.strategy_param().period()),
        elasticity_(spec.proto.strategy_param().elasticity()) {
    RequireAtLeast(spec, "period", period_, 1);
    RequireField(spec, elasticity_ >= 0 && elasticity_ <= 1, "elasticity", elasticity_,
                 "from 0 to 1; 0 stands for 0.9 / ranks");
  }

 private:
  void Share() override {
    if (elasticity_ == 0) elasticity_ = 0.9f / static_cast<float>(ranks());
    center_ = ShareFloats(numbers().weights());
    locks_ = ShareLocks((center_.size() + kPart - 1) / kPart);
    own_.resize(center_.size());
    if (rank() == 0) numbers().Read(center_);
  }

  void Exchange(int64_t steps) override {
    if (steps % period_ != 0) return;
    numbers().Read(own_);
    for (size_t begin = 0; begin < own_.size(); begin += kPart) {
      const SharedLockScope lock(locks_[begin / kPart], rank(), peers());
      const size_t end = std::min(own_.size(), begin + kPart);
      for (size_t i = begin; i < end; ++i) {
        const float move = elasticity_ * (own_[i] - center_[i]);
        own_[i] -= move;
        center_[i] += move;
      }
    }
    numbers().Write(own_);
    const int64_t now = taken();
    NoteExchange(2 * static_cast<int64_t>(center_.size_bytes()),
                 last_ < 0 ? 0 : std::max<int64_t>(0, now - last_ - period_));
    last_ = now;
  }

  void EnterConsensus() override {
    copy_.resize(center_.size());
    for (size_t begin = 0; begin < copy_.size(); begin += kPart) {
      const SharedLockScope lock(locks_[begin / kPart], rank(), peers());
      const auto part = center_.subspan(begin, std::min(kPart, center_.size() - begin));
      std::ranges::copy(part, copy_.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    Swap(copy_);
  }

  int period_;
  float elasticity_;
  std::span<float> center_;
  SharedLock* locks_ = nullptr;
  std::vector<float> own_, copy_;
  int64_t last_ = -1;  // steps that all had taken at the last exchange
};

const RegisterStrategy<Easgd> kEasgd("easgd");

}  // namespace
}  // namespace trainer
