#include "shared_array.h"

#include <algorithm>

#include "message.h"

namespace trainer {
namespace {

// A range of floats in one block.
struct Range {
  int64_t block, begin, end;
};

}  // namespace

SharedArray::SharedArray(const StrategyContext& context, const FlatState& numbers, int owner,
                         int blocks)
    : window_(*context.window),
      state_(numbers),
      rank_(context.group.rank().rank),
      owner_(owner),
      blocks_(blocks),
      is_local_(window_.IsSameNode(owner)) {
  const size_t all = numbers.all();
  auto* const shared =
      reinterpret_cast<float*>(window_.Allocate(is_local_ ? all * sizeof(float) : sizeof(float)));
  locks_ = reinterpret_cast<RobustMutex*>(
      window_.Allocate(static_cast<size_t>(blocks) * sizeof(RobustMutex)));
  const auto ranks = static_cast<size_t>(context.group.rank().size);
  version_ = reinterpret_cast<std::atomic<int64_t>*>(window_.Allocate(ranks * sizeof(*version_)));
  if (is_local_) {
    floats_ = {shared, all};
    if (rank_ == owner_) numbers.Read(floats_);
  } else {
    version_ += rank_;  // this rank's own copy
    copy_.resize(all);
    floats_ = copy_;
  }
  if (window_.rpc() != nullptr) RegisterMethods();
}

void SharedArray::RegisterMethods() {
  using Request = std::span<const std::byte>;
  acquire_method_ = window_.rpc()->Register([this](int from, Request request, Rpc::Bytes* reply) {
    const auto range = MessageReader(request).Get<Range>();
    const auto begin = static_cast<size_t>(range.begin), end = static_cast<size_t>(range.end);
    const bool is_first =
        begin == floats_.size() * static_cast<size_t>(range.block) / static_cast<size_t>(blocks_);
    if (is_first && !locks_[range.block].TryAcquire(from)) return false;
    MessageWriter message;
    message.Put(version());
    std::ranges::copy(floats_.subspan(begin, end - begin), message.Floats(end - begin).begin());
    *reply = message.Take();
    return true;
  });
  commit_method_ = window_.rpc()->Register([this](int, Request request, Rpc::Bytes* reply) {
    MessageReader given(request);
    const auto range = given.Get<Range>();
    const std::span<const float> floats = given.Floats();
    std::ranges::copy(floats, floats_.begin() + range.begin);
    const bool is_last =
        static_cast<size_t>(range.end) ==
        floats_.size() * static_cast<size_t>(range.block + 1) / static_cast<size_t>(blocks_);
    if (is_last && range.block + 1 == blocks_ && !floats.empty()) NoteUpdate();
    if (is_last) locks_[range.block].Release();
    *reply = MessageWriter().Put(version()).Take();
    return true;
  });
  read_method_ = window_.rpc()->Register([this](int, Request request, Rpc::Bytes* reply) {
    const auto range = MessageReader(request).Get<Range>();
    const auto count = static_cast<size_t>(range.end - range.begin);
    MessageWriter message;
    message.Put(version());
    std::ranges::copy(floats_.subspan(static_cast<size_t>(range.begin), count),
                      message.Floats(count).begin());
    *reply = message.Take();
    return true;
  });
}

template <class Use>
void SharedArray::VisitBlocks(const Use& use) const {
  const auto blocks = static_cast<size_t>(blocks_);
  for (size_t block = 0; block < blocks; ++block) {
    use(static_cast<int>(block), floats_.size() * block / blocks,
        floats_.size() * (block + 1) / blocks);
  }
}

void SharedArray::Acquire() {
  VisitBlocks([&](int block, size_t begin, size_t end) {
    if (is_local_) {
      locks_[block].Acquire(rank_, window_);
    } else {
      AcquireRemote(block, begin, end);
    }
    state_.Write(floats_.subspan(begin, end - begin), begin);
  });
}

// Acquires a block of another node and copies it: the owner's handler locks the block for this rank
// at its first message.
void SharedArray::AcquireRemote(int block, size_t begin, size_t end) {
  VisitMessages(end - begin, [&](size_t from, size_t to) {
    const Range range{block, static_cast<int64_t>(begin + from), static_cast<int64_t>(begin + to)};
    const Rpc::Bytes reply =
        window_.rpc()->Call(owner_, acquire_method_, MessageWriter().Put(range).Take());
    MessageReader taken(reply);
    *version_ = taken.Get<int64_t>();
    std::ranges::copy(taken.Floats(), floats_.begin() + range.begin);
  });
}

void SharedArray::SendBlock(int block, size_t begin, size_t end, bool stores) {
  const auto send = [&](size_t from, size_t to) {
    MessageWriter message;
    message.Put(Range{block, static_cast<int64_t>(from), static_cast<int64_t>(to)});
    if (stores) state_.Read(message.Floats(to - from), from);
    const Rpc::Bytes reply = window_.rpc()->Call(owner_, commit_method_, message.Take());
    *version_ = MessageReader(reply).Get<int64_t>();
  };
  if (!stores) return send(begin, end);
  VisitMessages(end - begin, [&](size_t from, size_t to) { send(begin + from, begin + to); });
}

int64_t SharedArray::Commit() {
  const int64_t version = is_local_ ? ++*version_ : 0;
  VisitBlocks([&](int block, size_t begin, size_t end) {
    if (!is_local_) return SendBlock(block, begin, end, true);
    state_.Read(floats_.subspan(begin, end - begin), begin);
    locks_[block].Release();
  });
  return is_local_ ? version : version_->load();
}

void SharedArray::Release() {
  VisitBlocks([&](int block, size_t begin, size_t end) {
    if (!is_local_) return SendBlock(block, begin, end, false);
    locks_[block].Release();
  });
}

void SharedArray::Read(size_t count) {
  const auto read = [&](size_t begin, size_t end) {
    const Range range{0, static_cast<int64_t>(begin), static_cast<int64_t>(end)};
    const Rpc::Bytes reply =
        window_.rpc()->Call(owner_, read_method_, MessageWriter().Put(range).Take());
    MessageReader seen(reply);
    *version_ = seen.Get<int64_t>();
    std::ranges::copy(seen.Floats(), floats_.begin() + static_cast<std::ptrdiff_t>(begin));
  };
  if (count == 0) return read(0, 0);
  VisitMessages(count, read);
}

}  // namespace trainer
