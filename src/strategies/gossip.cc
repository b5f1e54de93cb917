// Gossip: after a step a rank sends, with some probability, its weights to another one that is
// drawn, which takes the mean of both. How much either counts is kept by push-sum: a rank gives
// half of its share away with the weights. Source: M. Blot, D. Picard, M. Cord, N. Thome, "Gossip
// training for deep learning", 2016 (GoSGD; p).

#include <algorithm>

#include "apart.h"
#include "checks.h"
#include "trainer/base/philox.h"

namespace trainer {
namespace {

constexpr uint32_t kStream = 0x60551900;  // of random numbers

// What was sent to a rank and not read yet, added up: weights times shares in an array beside it.
struct alignas(64) Inbox {
  SharedLock lock;
  std::atomic<uint32_t> messages;
  uint32_t broken;  // a sender is in it, or died in it
  double share;
  int64_t taken;  // steps of all, when the oldest message was sent
};

class Gossip final : public ApartStrategy {
 public:
  explicit Gossip(const SolverSpec& spec)
      : ApartStrategy(spec), probability_(spec.proto.strategy_param().probability()) {
    RequireField(spec, probability_ > 0 && probability_ <= 1, "probability", probability_,
                 "above 0 and at most 1");
  }

 private:
  void Share() override {
    inboxes_ =
        reinterpret_cast<Inbox*>(peers().Allocate(sizeof(Inbox) * static_cast<size_t>(ranks())));
    sums_ = ShareFloats(numbers().weights() * static_cast<size_t>(ranks()));
    own_.resize(numbers().weights());
    share_ = 1.0 / ranks();
  }

  double OwnWeight() const override { return share_; }
  void TakeWeight(double share) override {
    if (share > 0 && share <= 1) share_ = share;
  }

  void Exchange(int64_t steps) override {
    if (inboxes_[rank()].messages.load(std::memory_order_relaxed) > 0) Receive();
    const PhiloxKey key{seat().seed, kStream + static_cast<uint32_t>(rank())};
    const Philox4 drawn = PhiloxBlock(key, 0, static_cast<uint64_t>(steps));
    if (UniformFloat(drawn.x[0]) < probability_) Send(drawn.x[1]);
  }

  // To one of the ranks that are at work.
  void Send(uint32_t drawn) {
    std::vector<int>& there = there_;
    there.clear();
    for (int other = 0; other < ranks(); ++other) {
      if (other != rank() && IsAtWork(other)) there.push_back(other);
    }
    constexpr double kLeast = 1e-30;  // below, products with weights might be lost
    if (there.empty() || share_ < kLeast) return;
    const int to = there[drawn % there.size()];
    share_ /= 2;
    numbers().Read(own_);
    Inbox& inbox = inboxes_[to];
    const SharedLockScope lock(inbox.lock, rank(), peers());
    const std::span<float> sum = SumOf(to);
    if (inbox.broken != 0) Empty(to);
    inbox.broken = 1;
    const auto share = static_cast<float>(share_);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += share * own_[i];
    inbox.share += share_;
    if (inbox.messages == 0) inbox.taken = taken();
    ++inbox.messages;
    inbox.broken = 0;
  }

  void Receive() {
    Inbox& inbox = inboxes_[rank()];
    numbers().Read(own_);
    const SharedLockScope lock(inbox.lock, rank(), peers());
    const std::span<const float> sum = SumOf(rank());
    NoteExchange(static_cast<int64_t>(inbox.messages * sum.size_bytes()),
                 std::max<int64_t>(0, taken() - inbox.taken));
    share_ = TakeIn(rank(), share_, own_);
    Empty(rank());
    numbers().Write(own_);
  }

  // What is in an inbox becomes a part of weights that have `share`; returns the share of both.
  // With its lock.
  double TakeIn(int of, double share, std::span<float> weights) {
    if (inboxes_[of].broken != 0) Empty(of);
    const std::span<const float> sum = SumOf(of);
    const double whole = share + inboxes_[of].share;
    const auto own = static_cast<float>(share / whole), other = static_cast<float>(1 / whole);
    for (size_t i = 0; i < sum.size(); ++i) weights[i] = own * weights[i] + other * sum[i];
    return whole;
  }

  double Settle(int of, std::span<float> weights) override {
    const SharedLockScope lock(inboxes_[of].lock, rank(), peers());
    return TakeIn(of, tally(of).weight, weights);
  }

  // With its lock.
  void Empty(int of) {
    Inbox& inbox = inboxes_[of];
    std::ranges::fill(SumOf(of), 0.0f);
    inbox.share = 0;
    inbox.broken = 0;
    inbox.messages = 0;
  }

  // The mean of all weights by their shares, those that are on their way included.
  void EnterConsensus() override {
    Collect();
    double whole = 0;
    std::vector<float> mean(own_.size());
    const auto add = [&](std::span<const float> weights, float times, double share) {
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += times * weights[i];
      whole += share;
    };
    for (int other = 0; other < ranks(); ++other) {
      const std::span<const float> laid = LaidDown(other);
      const double share = tally(other).weight;
      if (!laid.empty()) add(laid, static_cast<float>(share), share);
      Inbox& inbox = inboxes_[other];
      const SharedLockScope lock(inbox.lock, rank(), peers());
      if (!IsGone(other) && inbox.broken == 0) add(SumOf(other), 1, inbox.share);
    }
    for (float& weight : mean) weight /= static_cast<float>(whole);
    Swap(mean);
  }

  std::span<float> SumOf(int other) const {
    return sums_.subspan(own_.size() * static_cast<size_t>(other), own_.size());
  }

  float probability_;
  Inbox* inboxes_ = nullptr;
  std::span<float> sums_;  // by rank
  std::vector<float> own_;
  std::vector<int> there_;
  double share_ = 0;  // of this rank's weights, of all ranks' 1
};

const RegisterStrategy<Gossip> kGossip("gossip");

}  // namespace
}  // namespace trainer
