#include "shared_weights.h"

#include <algorithm>

#include "packet.h"

namespace trainer {
namespace {

// A range of a part.
struct Range {
  int64_t part, begin, end;
};

}  // namespace

SharedWeights::SharedWeights(const StrategySeat& seat, const RankNumbers& numbers, int owner,
                             int parts)
    : peers_(*seat.peers),
      numbers_(numbers),
      rank_(seat.group.replica().rank),
      owner_(owner),
      parts_(parts),
      here_(peers_.IsNear(owner)) {
  const size_t all = numbers.all();
  auto* const shared =
      reinterpret_cast<float*>(peers_.Allocate(here_ ? all * sizeof(float) : sizeof(float)));
  locks_ = reinterpret_cast<SharedLock*>(
      peers_.Allocate(static_cast<size_t>(parts) * sizeof(SharedLock)));
  const auto ranks = static_cast<size_t>(seat.group.replica().size);
  version_ = reinterpret_cast<std::atomic<int64_t>*>(peers_.Allocate(ranks * sizeof(*version_)));
  if (here_) {
    floats_ = {shared, all};
    if (rank_ == owner_) numbers.Read(floats_);
  } else {
    version_ += rank_;  // a copy, of this rank alone
    copy_.resize(all);
    floats_ = copy_;
  }
  if (peers_.post() != nullptr) ServeOthers();
}

void SharedWeights::ServeOthers() {
  using Request = std::span<const std::byte>;
  take_ = peers_.post()->Serve([this](int from, Request request, Rpc::Bytes* reply) {
    const auto range = PacketReader(request).Get<Range>();
    const auto begin = static_cast<size_t>(range.begin), end = static_cast<size_t>(range.end);
    const bool is_first =
        begin == floats_.size() * static_cast<size_t>(range.part) / static_cast<size_t>(parts_);
    if (is_first && !locks_[range.part].TryAcquire(from)) return false;
    Packet packet;
    packet.Put(version());
    std::ranges::copy(floats_.subspan(begin, end - begin), packet.Floats(end - begin).begin());
    *reply = packet.Take();
    return true;
  });
  give_ = peers_.post()->Serve([this](int, Request request, Rpc::Bytes* reply) {
    PacketReader given(request);
    const auto range = given.Get<Range>();
    const std::span<const float> floats = given.Floats();
    std::ranges::copy(floats, floats_.begin() + range.begin);
    const bool is_last =
        static_cast<size_t>(range.end) ==
        floats_.size() * static_cast<size_t>(range.part + 1) / static_cast<size_t>(parts_);
    if (is_last && range.part + 1 == parts_ && !floats.empty()) NoteUpdate();
    if (is_last) locks_[range.part].Release();
    *reply = Packet().Put(version()).Take();
    return true;
  });
  look_ = peers_.post()->Serve([this](int, Request request, Rpc::Bytes* reply) {
    const auto range = PacketReader(request).Get<Range>();
    const auto count = static_cast<size_t>(range.end - range.begin);
    Packet packet;
    packet.Put(version());
    std::ranges::copy(floats_.subspan(static_cast<size_t>(range.begin), count),
                      packet.Floats(count).begin());
    *reply = packet.Take();
    return true;
  });
}

template <class Use>
void SharedWeights::VisitParts(const Use& use) const {
  const auto parts = static_cast<size_t>(parts_);
  for (size_t part = 0; part < parts; ++part) {
    use(static_cast<int>(part), floats_.size() * part / parts, floats_.size() * (part + 1) / parts);
  }
}

void SharedWeights::Take() {
  VisitParts([&](int part, size_t begin, size_t end) {
    if (here_) {
      locks_[part].Acquire(rank_, peers_);
    } else {
      TakeFromThere(part, begin, end);
    }
    numbers_.Write(floats_.subspan(begin, end - begin), begin);
  });
}

// The machine has the lock for this rank.
void SharedWeights::TakeFromThere(int part, size_t begin, size_t end) {
  VisitMessages(end - begin, [&](size_t from, size_t to) {
    const Range range{part, static_cast<int64_t>(begin + from), static_cast<int64_t>(begin + to)};
    const Rpc::Bytes reply = peers_.post()->Ask(owner_, take_, Packet().Put(range).Take());
    PacketReader taken(reply);
    *version_ = taken.Get<int64_t>();
    std::ranges::copy(taken.Floats(), floats_.begin() + range.begin);
  });
}

void SharedWeights::Give(int part, size_t begin, size_t end, bool stores) {
  const auto give = [&](size_t from, size_t to) {
    Packet packet;
    packet.Put(Range{part, static_cast<int64_t>(from), static_cast<int64_t>(to)});
    if (stores) numbers_.Read(packet.Floats(to - from), from);
    const Rpc::Bytes reply = peers_.post()->Ask(owner_, give_, packet.Take());
    *version_ = PacketReader(reply).Get<int64_t>();
  };
  if (!stores) return give(begin, end);
  VisitMessages(end - begin, [&](size_t from, size_t to) { give(begin + from, begin + to); });
}

int64_t SharedWeights::Store() {
  const int64_t version = here_ ? ++*version_ : 0;
  VisitParts([&](int part, size_t begin, size_t end) {
    if (!here_) return Give(part, begin, end, true);
    numbers_.Read(floats_.subspan(begin, end - begin), begin);
    locks_[part].Release();
  });
  return here_ ? version : version_->load();
}

void SharedWeights::Release() {
  VisitParts([&](int part, size_t begin, size_t end) {
    if (!here_) return Give(part, begin, end, false);
    locks_[part].Release();
  });
}

void SharedWeights::Look(size_t count) {
  const auto look = [&](size_t begin, size_t end) {
    const Range range{0, static_cast<int64_t>(begin), static_cast<int64_t>(end)};
    const Rpc::Bytes reply = peers_.post()->Ask(owner_, look_, Packet().Put(range).Take());
    PacketReader seen(reply);
    *version_ = seen.Get<int64_t>();
    std::ranges::copy(seen.Floats(), floats_.begin() + static_cast<std::ptrdiff_t>(begin));
  };
  if (count == 0) return look(0, 0);
  VisitMessages(count, look);
}

}  // namespace trainer
