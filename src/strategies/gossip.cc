// Gossip SGD: after a step a rank sends its weights, with some probability (p in the paper), to
// another rank that it draws at random, which averages both. Push-sum gives the factors of that
// average: each rank's weights have a mass, the masses of all ranks sum to 1, and a sender gives
// half of its mass away with its weights. A message is added to the receiver's inbox, which is in
// the memory of the receiver's node. Source: M. Blot, D. Picard, M. Cord, N. Thome, "Gossip
// training for deep learning", 2016 (GoSGD).

#include <algorithm>

#include "async_strategy.h"
#include "field_checks.h"
#include "message.h"
#include "robust_mutex.h"
#include "trainer/base/random/philox.h"

namespace trainer {
namespace {

constexpr uint32_t kStream = 0x60551900;  // the Philox stream of rank 0; rank r uses kStream + r

// The sum of the messages to a rank that it has not received yet. An array of its own has the sum
// of mass * weights.
struct alignas(64) Inbox {
  RobustMutex lock;
  std::atomic<uint32_t> messages;
  uint32_t torn;  // nonzero while a sender writes the sum, or if it died doing so
  double mass;
  int64_t taken;  // the global step when the oldest message was sent
};

// own_ holds this rank's weights while it sends or receives, mass_ is their mass, and probability_
// is the paper's p.
class Gossip final : public AsyncStrategy {
 public:
  explicit Gossip(const SolverSpec& spec)
      : AsyncStrategy(spec), probability_(spec.proto.strategy_param().probability()) {
    RequireField(spec, probability_ > 0 && probability_ <= 1, "probability", probability_,
                 "above 0 and at most 1");
  }

 private:
  // Allocates an inbox and its sum for each rank of this node, and gives each rank the mass 1 /
  // ranks.
  void AllocateShared() override {
    size_t local_count = 0;
    for (int other = 0; other < ranks(); ++other) {
      slot_of_.push_back(local_count);
      local_count += window().IsSameNode(other) ? 1 : 0;
    }
    inboxes_ = reinterpret_cast<Inbox*>(window().Allocate(sizeof(Inbox) * local_count));
    const size_t floats = state().weights() * local_count;
    sums_ = {reinterpret_cast<float*>(window().Allocate(floats * sizeof(float))), floats};
    own_.resize(state().weights());
    mass_ = 1.0 / ranks();
    if (window().rpc() != nullptr) RegisterMethods();
  }

  // Registers the calls with which ranks of other nodes deposit messages in this rank's inbox, and
  // with which rank 0 reads what is in flight.
  void RegisterMethods() {
    using Request = std::span<const std::byte>;
    deposit_method_ = window().rpc()->Register([this](int, Request request, Rpc::Bytes*) {
      MessageReader sent(request);
      const auto mass = sent.Get<double>();
      const auto taken = sent.Get<int64_t>();
      Deposit(rank(), mass, taken, sent.Floats());
      return true;
    });
    read_method_ = window().rpc()->Register([this](int, Request, Rpc::Bytes* reply) {
      Inbox& inbox = InboxOf(rank());
      const RobustLock lock(inbox.lock, rank(), window());
      const bool empty = inbox.messages == 0 || inbox.torn != 0;
      MessageWriter message;
      message.Put(empty ? 0.0 : inbox.mass);
      if (!empty) std::ranges::copy(SumOf(rank()), message.Floats(own_.size()).begin());
      *reply = message.Take();
      return true;
    });
  }

  double mixing_weight() const override { return mass_; }
  // Sets the mass from a snapshot. Ignores a value outside (0, 1].
  void set_mixing_weight(double mass) override {
    if (mass > 0 && mass <= 1) mass_ = mass;
  }

  // Takes in what is in the inbox, then sends with the given probability. The random numbers depend
  // only on the seed, the rank and its step.
  void Exchange(int64_t steps) override {
    if (InboxOf(rank()).messages.load(std::memory_order_relaxed) > 0) Receive();
    const PhiloxKey key{context().seed, kStream + static_cast<uint32_t>(rank())};
    const Philox4 drawn = PhiloxBlock(key, 0, static_cast<uint64_t>(steps));
    if (UniformFloat(drawn.x[0]) < probability_) Send(drawn.x[1]);
  }

  // Sends half of the mass to one of the active ranks, which the random number `drawn` selects.
  void Send(uint32_t drawn) {
    std::vector<int>& there = there_;
    there.clear();
    for (int other = 0; other < ranks(); ++other) {
      if (other != rank() && IsActive(other)) there.push_back(other);
    }
    constexpr double kLeast = 1e-30;  // below this, mass * weight may underflow
    if (there.empty() || mass_ < kLeast) return;
    const int to = there[drawn % there.size()];
    mass_ /= 2;
    if (window().IsSameNode(to)) {
      state().Read(own_);
      return Deposit(to, mass_, coordinator().global_step(), own_);
    }
    MessageWriter message;
    message.Put(mass_).Put(coordinator().global_step());
    state().Read(message.Floats(own_.size()));
    window().rpc()->Call(to, deposit_method_, message.Take());
  }

  // Adds weights with mass `mass`, sent at global step `taken`, to the inbox of a rank of this
  // node.
  void Deposit(int to, double mass, int64_t taken, std::span<const float> weights) {
    Inbox& inbox = InboxOf(to);
    const RobustLock lock(inbox.lock, rank(), window());
    const std::span<float> sum = SumOf(to);
    if (inbox.torn != 0) ClearInbox(to);
    inbox.torn = 1;
    const auto times = static_cast<float>(mass);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += times * weights[i];
    inbox.mass += mass;
    if (inbox.messages == 0) inbox.taken = taken;
    ++inbox.messages;
    inbox.torn = 0;
  }

  // Averages the content of this rank's inbox with its weights, and empties the inbox.
  void Receive() {
    Inbox& inbox = InboxOf(rank());
    state().Read(own_);
    const RobustLock lock(inbox.lock, rank(), window());
    const std::span<const float> sum = SumOf(rank());
    CountExchange(static_cast<int64_t>(inbox.messages * sum.size_bytes()),
                  std::max<int64_t>(0, coordinator().global_step() - inbox.taken));
    mass_ = MergeInbox(rank(), mass_, own_);
    ClearInbox(rank());
    state().Write(own_);
  }

  // Averages the content of an inbox of this node with `weights`, whose mass is `mass`, and returns
  // the total mass. Discards a sum that its sender left unfinished. The caller holds the inbox's
  // lock.
  double MergeInbox(int of, double mass, std::span<float> weights) {
    if (InboxOf(of).torn != 0) ClearInbox(of);
    return MergeSum(SumOf(of), InboxOf(of).mass, mass, weights);
  }

  // Replaces `weights`, whose mass is `mass`, by (mass * weights + sum) / (mass + of_sum), and
  // returns the new mass.
  static double MergeSum(std::span<const float> sum, double of_sum, double mass,
                         std::span<float> weights) {
    const double whole = mass + of_sum;
    const auto own = static_cast<float>(mass / whole), other = static_cast<float>(1 / whole);
    for (size_t i = 0; i < sum.size(); ++i) weights[i] = own * weights[i] + other * sum[i];
    return whole;
  }

  // Merges the messages in the rank's inbox, on any node, without taking them out.
  double AddInFlight(int of, std::span<float> weights) override {
    double whole = stats(of).weight;
    VisitInbox(of, [&](std::span<const float> sum, double mass) {
      whole = MergeSum(sum, mass, whole, weights);
    });
    return whole;
  }

  // Calls use(sum, mass) if the inbox of a rank, on any node, is not empty.
  template <class Use>
  void VisitInbox(int of, const Use& use) {
    if (window().IsSameNode(of)) {
      Inbox& inbox = InboxOf(of);
      const RobustLock lock(inbox.lock, rank(), window());
      if (inbox.messages > 0 && inbox.torn == 0) use(SumOf(of), inbox.mass);
      return;
    }
    const Rpc::Bytes reply = window().rpc()->Call(of, read_method_, {});
    MessageReader there(reply);
    const auto mass = there.Get<double>();
    if (mass > 0) use(there.Floats(), mass);
  }

  // Empties an inbox of this node. The caller holds its lock.
  void ClearInbox(int of) {
    Inbox& inbox = InboxOf(of);
    std::ranges::fill(SumOf(of), 0.0f);
    inbox.mass = 0;
    inbox.torn = 0;
    inbox.messages = 0;
  }

  // Returns the mean of all ranks' weights and of the messages in flight, weighted by mass.
  std::span<const float> Consensus() override {
    Collect();
    double whole = 0;
    mean_.assign(own_.size(), 0);
    const auto add = [&](std::span<const float> weights, float times, double mass) {
      for (size_t i = 0; i < mean_.size(); ++i) mean_[i] += times * weights[i];
      whole += mass;
    };
    for (int other = 0; other < ranks(); ++other) {
      const std::span<const float> laid = PublishedState(other);
      const double mass = stats(other).weight;
      if (!laid.empty()) add(laid, static_cast<float>(mass), mass);
      if (IsLost(other)) continue;
      VisitInbox(other, [&](std::span<const float> sum, double on_way) { add(sum, 1, on_way); });
    }
    for (float& weight : mean_) weight /= static_cast<float>(whole);
    return mean_;
  }

  // Returns the inbox of a rank of this node.
  Inbox& InboxOf(int other) const { return inboxes_[slot_of_[static_cast<size_t>(other)]]; }
  // Returns the sum of mass * weights in the inbox of a rank of this node.
  std::span<float> SumOf(int other) const {
    return sums_.subspan(own_.size() * slot_of_[static_cast<size_t>(other)], own_.size());
  }

  float probability_;
  std::vector<size_t> slot_of_;               // a rank's index among the ranks of its node
  Inbox* inboxes_ = nullptr;                  // of the ranks of this node
  std::span<float> sums_;                     // by slot
  int deposit_method_ = 0, read_method_ = 0;  // RPC methods
  std::vector<float> own_, mean_;
  std::vector<int> there_;
  double mass_ = 0;  // of this rank's weights; all masses sum to 1
};

const RegisterStrategy<Gossip> kGossip("gossip");

}  // namespace
}  // namespace trainer
