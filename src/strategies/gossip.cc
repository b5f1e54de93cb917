// Gossip: after a step a rank sends, with some probability, its weights to another one that is
// drawn, which takes the mean of both. How much either counts is kept by push-sum: a rank gives
// half of its share away with the weights. Source: M. Blot, D. Picard, M. Cord, N. Thome, "Gossip
// training for deep learning", 2016 (GoSGD; p). What is sent is added to the inbox of the receiver,
// which is in the memory of its machine.

#include <algorithm>

#include "apart.h"
#include "checks.h"
#include "packet.h"
#include "trainer/base/random/philox.h"

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
    size_t near = 0;
    for (int other = 0; other < ranks(); ++other) {
      place_.push_back(near);
      near += peers().IsNear(other) ? 1 : 0;
    }
    inboxes_ = reinterpret_cast<Inbox*>(peers().Allocate(sizeof(Inbox) * near));
    sums_ = ShareFloats(numbers().weights() * near);
    own_.resize(numbers().weights());
    share_ = 1.0 / ranks();
    if (peers().post() != nullptr) ServeOthers();
  }

  // To senders of other machines, and to rank 0, which looks what is on its way.
  void ServeOthers() {
    using Request = std::span<const std::byte>;
    deposit_ = peers().post()->Serve([this](int, Request request, Rpc::Bytes*) {
      PacketReader sent(request);
      const auto share = sent.Get<double>();
      const auto taken = sent.Get<int64_t>();
      Deposit(rank(), share, taken, sent.Floats());
      return true;
    });
    look_ = peers().post()->Serve([this](int, Request, Rpc::Bytes* reply) {
      Inbox& inbox = InboxOf(rank());
      const SharedLockScope lock(inbox.lock, rank(), peers());
      const bool empty = inbox.messages == 0 || inbox.broken != 0;
      Packet packet;
      packet.Put(empty ? 0.0 : inbox.share);
      if (!empty) std::ranges::copy(SumOf(rank()), packet.Floats(own_.size()).begin());
      *reply = packet.Take();
      return true;
    });
  }

  double OwnWeight() const override { return share_; }
  void TakeWeight(double share) override {
    if (share > 0 && share <= 1) share_ = share;
  }

  void Exchange(int64_t steps) override {
    if (InboxOf(rank()).messages.load(std::memory_order_relaxed) > 0) Receive();
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
    if (peers().IsNear(to)) {
      numbers().Read(own_);
      return Deposit(to, share_, board().taken(), own_);
    }
    Packet packet;
    packet.Put(share_).Put(board().taken());
    numbers().Read(packet.Floats(own_.size()));
    peers().post()->Ask(to, deposit_, packet.Take());
  }

  // Weights that have `share`, when all had taken so many steps, for a rank of this machine.
  void Deposit(int to, double share, int64_t taken, std::span<const float> weights) {
    Inbox& inbox = InboxOf(to);
    const SharedLockScope lock(inbox.lock, rank(), peers());
    const std::span<float> sum = SumOf(to);
    if (inbox.broken != 0) Empty(to);
    inbox.broken = 1;
    const auto times = static_cast<float>(share);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += times * weights[i];
    inbox.share += share;
    if (inbox.messages == 0) inbox.taken = taken;
    ++inbox.messages;
    inbox.broken = 0;
  }

  void Receive() {
    Inbox& inbox = InboxOf(rank());
    numbers().Read(own_);
    const SharedLockScope lock(inbox.lock, rank(), peers());
    const std::span<const float> sum = SumOf(rank());
    NoteExchange(static_cast<int64_t>(inbox.messages * sum.size_bytes()),
                 std::max<int64_t>(0, board().taken() - inbox.taken));
    share_ = TakeIn(rank(), share_, own_);
    Empty(rank());
    numbers().Write(own_);
  }

  // What is in an inbox of this machine becomes a part of weights that have `share`; returns the
  // share of both. With its lock.
  double TakeIn(int of, double share, std::span<float> weights) {
    if (InboxOf(of).broken != 0) Empty(of);
    return Add(SumOf(of), InboxOf(of).share, share, weights);
  }

  static double Add(std::span<const float> sum, double of_sum, double share,
                    std::span<float> weights) {
    const double whole = share + of_sum;
    const auto own = static_cast<float>(share / whole), other = static_cast<float>(1 / whole);
    for (size_t i = 0; i < sum.size(); ++i) weights[i] = own * weights[i] + other * sum[i];
    return whole;
  }

  double Settle(int of, std::span<float> weights) override {
    double whole = tally(of).weight;
    VisitInbox(of, [&](std::span<const float> sum, double share) {
      whole = Add(sum, share, whole, weights);
    });
    return whole;
  }

  // Calls use(sum, share) where there is anything in the inbox of a rank, of any machine.
  template <class Use>
  void VisitInbox(int of, const Use& use) {
    if (peers().IsNear(of)) {
      Inbox& inbox = InboxOf(of);
      const SharedLockScope lock(inbox.lock, rank(), peers());
      if (inbox.messages > 0 && inbox.broken == 0) use(SumOf(of), inbox.share);
      return;
    }
    const Rpc::Bytes reply = peers().post()->Ask(of, look_, {});
    PacketReader there(reply);
    const auto share = there.Get<double>();
    if (share > 0) use(there.Floats(), share);
  }

  // With its lock.
  void Empty(int of) {
    Inbox& inbox = InboxOf(of);
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
      if (IsGone(other)) continue;
      VisitInbox(other, [&](std::span<const float> sum, double on_way) { add(sum, 1, on_way); });
    }
    for (float& weight : mean) weight /= static_cast<float>(whole);
    Swap(mean);
  }

  Inbox& InboxOf(int other) const { return inboxes_[place_[static_cast<size_t>(other)]]; }
  std::span<float> SumOf(int other) const {
    return sums_.subspan(own_.size() * place_[static_cast<size_t>(other)], own_.size());
  }

  float probability_;
  std::vector<size_t> place_;   // of a rank among those of its machine
  Inbox* inboxes_ = nullptr;    // of the ranks of this machine
  std::span<float> sums_;       // likewise
  int deposit_ = 0, look_ = 0;  // kinds of questions
  std::vector<float> own_;
  std::vector<int> there_;
  double share_ = 0;  // of this rank's weights, of all ranks' 1
};

const RegisterStrategy<Gossip> kGossip("gossip");

}  // namespace
}  // namespace trainer
