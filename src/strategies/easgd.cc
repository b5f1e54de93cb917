// Asynchronous elastic averaging SGD: every `period` steps (tau in the paper) a rank's weights x
// and the center variable x~, which all ranks share, move towards each other: x -= alpha (x - x~)
// and x~ += alpha (x - x~), where alpha is `elasticity`. With momentum in the update rule it is
// EAMSGD. The center is in the memory of rank 0's node; ranks of other nodes send their weights
// there and get them back moved. Source: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with
// Elastic Averaging SGD", NIPS 2015. The default of alpha, 0.9 / ranks, is the paper's.

#include <algorithm>

#include "async_strategy.h"
#include "field_checks.h"
#include "message.h"

namespace trainer {
namespace {

// Each chunk has a lock, so that several ranks can move different chunks of the center at once.
constexpr size_t kChunk = 1 << 16;  // floats

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
  // Allocates the center, starts it as rank 0's weights, and registers the method by which ranks of
  // other nodes call Move.
  void AllocateShared() override {
    if (elasticity_ == 0) elasticity_ = 0.9f / static_cast<float>(ranks());
    const bool here = window().IsSameNode(0);
    own_.resize(state().weights());
    center_ = AllocateFloats(here ? own_.size() : 0);
    locks_ = AllocateLocks(here ? (own_.size() + kChunk - 1) / kChunk : 1);
    if (rank() == 0) state().Read(center_);
    if (window().rpc() == nullptr) return;
    method_ = window().rpc()->Register(
        [this](int, std::span<const std::byte> request, Rpc::Bytes* reply) {
          MessageReader asked(request);
          const auto begin = static_cast<size_t>(asked.Get<int64_t>());
          const std::span<const float> sent = asked.Floats();
          MessageWriter message;
          const std::span<float> moved = message.Floats(sent.size());
          std::ranges::copy(sent, moved.begin());
          Move(moved, begin);
          *reply = message.Take();
          return true;
        });
  }

  // Every tau steps, moves this rank's weights and the center towards each other.
  void Exchange(int64_t steps) override {
    if (steps % period_ != 0) return;
    state().Read(own_);
    if (window().IsSameNode(0)) {
      Move(own_, 0);
    } else {
      MoveRemotely();
    }
    state().Write(own_);
    const int64_t now = coordinator().global_step();
    CountExchange(2 * static_cast<int64_t>(own_.size() * sizeof(float)),
                  last_ < 0 ? 0 : std::max<int64_t>(0, now - last_ - period_));
    last_ = now;
  }

  // Moves `own` (x^i, from index `first` on) and the center x~ towards each other by alpha (x^i -
  // x~). Runs on rank 0's node, and locks one chunk of the center at a time.
  void Move(std::span<float> own, size_t first) {
    for (size_t begin = 0; begin < own.size(); begin += kChunk) {
      const RobustLock lock(locks_[(first + begin) / kChunk], rank(), window());
      const size_t end = std::min(own.size(), begin + kChunk);
      for (size_t i = begin; i < end; ++i) {
        float& center = center_[first + i];
        const float move = elasticity_ * (own[i] - center);
        own[i] -= move;
        center += move;
      }
    }
  }

  // Sends own_ to rank 0, which calls Move, and stores the moved weights in own_.
  void MoveRemotely() {
    std::vector<uint64_t> calls;
    VisitMessages(own_.size(), [&](size_t begin, size_t end) {
      MessageWriter message;
      message.Put(static_cast<int64_t>(begin));
      std::ranges::copy(std::span(own_).subspan(begin, end - begin),
                        message.Floats(end - begin).begin());
      calls.push_back(window().rpc()->CallAsync(0, method_, message.Take()));
    });
    auto moved = own_.begin();
    for (const uint64_t call : calls) {
      const Rpc::Bytes reply = window().rpc()->Wait(call);
      moved = std::ranges::copy(MessageReader(reply).Floats(), moved).out;
    }
  }

  // Makes the center the consensus. Only ranks of rank 0's node, which have it, may call this.
  void EnterConsensus() override {
    copy_.resize(own_.size());
    for (size_t begin = 0; begin < copy_.size(); begin += kChunk) {
      const RobustLock lock(locks_[begin / kChunk], rank(), window());
      const auto part = center_.subspan(begin, std::min(kChunk, center_.size() - begin));
      std::ranges::copy(part, copy_.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    Swap(copy_);
  }

  int period_;
  float elasticity_;
  std::span<float> center_;  // empty on other nodes than rank 0's
  RobustMutex* locks_ = nullptr;
  int method_ = 0;  // the RPC method that moves weights
  std::vector<float> own_, copy_;
  int64_t last_ = -1;  // the global step at the last exchange; -1: none
};

const RegisterStrategy<Easgd> kEasgd("easgd");

}  // namespace
}  // namespace trainer
