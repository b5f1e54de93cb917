// Elastic averaging, asynchronous: every `period` steps a rank and a center, which all share, move
// towards each other by `elasticity` of their distance. With the momentum of the rule it is EAMSGD.
// The center is in the memory of rank 0's machine; ranks of others send their weights there, and
// get them back moved.
// Source: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with Elastic Averaging SGD", NIPS 2015
// (tau and alpha; alpha is 0.9 / ranks there, which is the default).

#include <algorithm>

#include "apart.h"
#include "checks.h"
#include "packet.h"

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
                 "from 0 to 1; 0 means 0.9 / ranks");
  }

 private:
  void Share() override {
    if (elasticity_ == 0) elasticity_ = 0.9f / static_cast<float>(ranks());
    const bool here = peers().IsNear(0);
    own_.resize(numbers().weights());
    center_ = ShareFloats(here ? own_.size() : 0);
    locks_ = ShareLocks(here ? (own_.size() + kPart - 1) / kPart : 1);
    if (rank() == 0) numbers().Read(center_);
    if (peers().post() == nullptr) return;
    kind_ =
        peers().post()->Serve([this](int, std::span<const std::byte> request, Rpc::Bytes* reply) {
          PacketReader asked(request);
          const auto begin = static_cast<size_t>(asked.Get<int64_t>());
          const std::span<const float> sent = asked.Floats();
          Packet packet;
          const std::span<float> moved = packet.Floats(sent.size());
          std::ranges::copy(sent, moved.begin());
          Move(moved, begin);
          *reply = packet.Take();
          return true;
        });
  }

  void Exchange(int64_t steps) override {
    if (steps % period_ != 0) return;
    numbers().Read(own_);
    if (peers().IsNear(0)) {
      Move(own_, 0);
    } else {
      HaveMoved();
    }
    numbers().Write(own_);
    const int64_t now = board().taken();
    NoteExchange(2 * static_cast<int64_t>(own_.size() * sizeof(float)),
                 last_ < 0 ? 0 : std::max<int64_t>(0, now - last_ - period_));
    last_ = now;
  }

  // Moves a rank's weights, of which `own` are those from number `first` on, and the center.
  void Move(std::span<float> own, size_t first) {
    for (size_t begin = 0; begin < own.size(); begin += kPart) {
      const SharedLockScope lock(locks_[(first + begin) / kPart], rank(), peers());
      const size_t end = std::min(own.size(), begin + kPart);
      for (size_t i = begin; i < end; ++i) {
        float& center = center_[first + i];
        const float move = elasticity_ * (own[i] - center);
        own[i] -= move;
        center += move;
      }
    }
  }

  void HaveMoved() {
    std::vector<uint64_t> tickets;
    VisitMessages(own_.size(), [&](size_t begin, size_t end) {
      Packet packet;
      packet.Put(static_cast<int64_t>(begin));
      std::ranges::copy(std::span(own_).subspan(begin, end - begin),
                        packet.Floats(end - begin).begin());
      tickets.push_back(peers().post()->Begin(0, kind_, packet.Take()));
    });
    auto moved = own_.begin();
    for (const uint64_t ticket : tickets) {
      const Rpc::Bytes reply = peers().post()->Await(ticket);
      moved = std::ranges::copy(PacketReader(reply).Floats(), moved).out;
    }
  }

  void EnterConsensus() override {
    copy_.resize(own_.size());
    for (size_t begin = 0; begin < copy_.size(); begin += kPart) {
      const SharedLockScope lock(locks_[begin / kPart], rank(), peers());
      const auto part = center_.subspan(begin, std::min(kPart, center_.size() - begin));
      std::ranges::copy(part, copy_.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    Swap(copy_);
  }

  int period_;
  float elasticity_;
  std::span<float> center_;  // at the machine of rank 0
  SharedLock* locks_ = nullptr;
  int kind_ = 0;  // of the question
  std::vector<float> own_, copy_;
  int64_t last_ = -1;  // steps that all had taken at the last exchange
};

const RegisterStrategy<Easgd> kEasgd("easgd");

}  // namespace
}  // namespace trainer
