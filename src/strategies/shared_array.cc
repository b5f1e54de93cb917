#include "shared_array.h"

#include <algorithm>
#include <utility>

#include "cache_line.h"
#include "message.h"

namespace trainer {
namespace {

// Send's arguments for calls that send or return no numbers.
constexpr auto kNoFloats = [](MessageWriter*, size_t, size_t) {};
constexpr auto kNoReply = [](std::span<const float>, size_t) {};

}  // namespace

SharedArray::SharedArray(SharedWindow& window, int rank, int owner, size_t size, int blocks,
                         Merger merge)
    : window_(window),
      rank_(rank),
      owner_(owner),
      blocks_(blocks),
      size_(size),
      is_local_(window.IsSameNode(owner)),
      merge_(std::move(merge)) {
  const size_t locks = static_cast<size_t>(blocks) * sizeof(RobustMutex);
  const size_t header = kCacheLine + RoundUpToCacheLines(locks);
  std::byte* const memory = window.Allocate(is_local_ ? header + size * sizeof(float) : 1);
  if (is_local_) {
    version_ = reinterpret_cast<std::atomic<int64_t>*>(memory);
    locks_ = reinterpret_cast<RobustMutex*>(memory + kCacheLine);
    floats_ = {reinterpret_cast<float*>(memory + header), size};
  }
  if (window.rpc() == nullptr) return;
  method_ =
      window.rpc()->Register([this](int from, std::span<const std::byte> request,
                                    Rpc::Bytes* reply) { return Answer(from, request, reply); });
}

template <class Use>
void SharedArray::VisitBlocks(const Use& use) const {
  for (int block = 0; block < blocks_; ++block) use(block, BeginOf(block), BeginOf(block + 1));
}

template <class Fill, class Use>
void SharedArray::Send(Action action, int block, size_t begin, size_t end, const Fill& fill,
                       const Use& use) {
  VisitMessages(end - begin, [&](size_t from, size_t to) {
    MessageWriter message;
    message.Put(Part{action, block, from == 0, to == end - begin,
                     static_cast<int64_t>(begin + from), static_cast<int64_t>(begin + to)});
    fill(&message, begin + from, to - from);
    const Rpc::Bytes reply = window_.rpc()->Call(owner_, method_, message.Take());
    MessageReader reader(reply);
    *version_ = reader.Get<int64_t>();
    use(reader.Floats(), begin + from);
  });
}

// Runs at the owner. Returns false if the block is locked; the call is then retried.
bool SharedArray::Answer(int from, std::span<const std::byte> request, Rpc::Bytes* reply) {
  MessageReader reader(request);
  const auto part = reader.Get<Part>();
  const std::span<const float> sent = reader.Floats();
  const auto begin = static_cast<size_t>(part.begin);
  const std::span<float> range = floats_.subspan(begin, static_cast<size_t>(part.end) - begin);
  MessageWriter message;
  if (part.action == Action::kMerge) {
    message.Put(version());
    const std::span<float> merged = message.Floats(sent.size());
    std::ranges::copy(sent, merged.begin());
    MergeHere(begin, merged);
    *reply = message.Take();
    return true;
  }
  const bool reads = part.action == Action::kRead || part.action == Action::kAcquire;
  const bool locks = reads || part.action == Action::kStore;
  if (locks && part.is_first != 0 && !lock(part.block).TryAcquire(from)) return false;
  std::ranges::copy(sent, range.begin());
  const bool is_last_block = part.is_last != 0 && part.block + 1 == blocks_;
  if (part.action == Action::kCommit && is_last_block) NoteUpdate();
  message.Put(version());
  if (reads) std::ranges::copy(range, message.Floats(range.size()).begin());
  if (part.is_last != 0 && part.action != Action::kAcquire) lock(part.block).Release();
  *reply = message.Take();
  return true;
}

// Asks for no numbers if `values` is empty: the reply then is the version alone.
void SharedArray::Read(std::span<float> values) {
  if (values.empty() && !is_local_) {
    const Part part{Action::kRead, 0, 0, 0, 0, 0};
    const Rpc::Bytes reply = window_.rpc()->Call(owner_, method_, MessageWriter().Put(part).Take());
    *version_ = MessageReader(reply).Get<int64_t>();
  }
  VisitBlocks([&](int block, size_t begin, size_t limit) {
    const size_t end = std::min(limit, values.size());
    if (begin >= end) return;
    const auto copy = [&](std::span<const float> from, size_t first) {
      std::ranges::copy(from, values.subspan(first).begin());
    };
    if (!is_local_) return Send(Action::kRead, block, begin, end, kNoFloats, copy);
    const RobustLock lock(locks_[block], rank_, window_);
    copy(floats_.subspan(begin, end - begin), begin);
  });
}

void SharedArray::Store(int block, const FlatState& state) {
  const size_t begin = BeginOf(block), end = BeginOf(block + 1);
  if (is_local_) {
    const RobustLock lock(locks_[block], rank_, window_);
    return state.Read(floats_.subspan(begin, end - begin));
  }
  const auto fill = [&](MessageWriter* message, size_t first, size_t count) {
    state.Read(message->Floats(count), first - begin);
  };
  Send(Action::kStore, block, begin, end, fill, kNoReply);
}

// Merges values for the numbers from index `first` on. Locks one block at a time.
void SharedArray::MergeHere(size_t first, std::span<float> values) {
  VisitBlocks([&](int block, size_t block_begin, size_t block_end) {
    const size_t begin = std::max(block_begin, first);
    const size_t end = std::min(block_end, first + values.size());
    if (begin >= end) return;
    const RobustLock lock(locks_[block], rank_, window_);
    merge_(floats_.subspan(begin, end - begin), values.subspan(begin - first, end - begin));
  });
}

void SharedArray::Merge(std::span<float> values) {
  if (is_local_) return MergeHere(0, values);
  std::vector<uint64_t> calls;
  VisitMessages(values.size(), [&](size_t begin, size_t end) {
    MessageWriter message;
    message.Put(
        Part{Action::kMerge, 0, 0, 0, static_cast<int64_t>(begin), static_cast<int64_t>(end)});
    std::ranges::copy(values.subspan(begin, end - begin), message.Floats(end - begin).begin());
    calls.push_back(window_.rpc()->CallAsync(owner_, method_, message.Take()));
  });
  auto merged = values.begin();
  for (const uint64_t call : calls) {
    const Rpc::Bytes reply = window_.rpc()->Wait(call);
    MessageReader reader(reply);
    *version_ = reader.Get<int64_t>();
    merged = std::ranges::copy(reader.Floats(), merged).out;
  }
}

void SharedArray::Acquire(const FlatState& state) {
  if (!is_local_) {
    copy_.resize(size_);
    floats_ = copy_;
  }
  VisitBlocks([&](int block, size_t begin, size_t end) {
    if (is_local_) {
      locks_[block].Acquire(rank_, window_);
    } else {
      const auto copy = [&](std::span<const float> from, size_t first) {
        std::ranges::copy(from, floats_.subspan(first).begin());
      };
      Send(Action::kAcquire, block, begin, end, kNoFloats, copy);
    }
    state.Write(floats_.subspan(begin, end - begin), begin);
  });
}

int64_t SharedArray::Commit(const FlatState& state) {
  const int64_t version = is_local_ ? ++*version_ : 0;
  VisitBlocks([&](int block, size_t begin, size_t end) {
    const auto fill = [&](MessageWriter* message, size_t first, size_t count) {
      state.Read(message->Floats(count), first);
    };
    if (!is_local_) return Send(Action::kCommit, block, begin, end, fill, kNoReply);
    state.Read(floats_.subspan(begin, end - begin), begin);
    locks_[block].Release();
  });
  return is_local_ ? version : version_->load();
}

void SharedArray::Release() {
  VisitBlocks([&](int block, size_t begin, size_t end) {
    if (is_local_) return locks_[block].Release();
    if (begin == end) return;  // never acquired
    const auto at = static_cast<int64_t>(begin);
    const Part part{Action::kRelease, block, 0, 1, at, at};
    window_.rpc()->Call(owner_, method_, MessageWriter().Put(part).Take());
  });
}

}  // namespace trainer
