#include "node_sum.h"

#include <algorithm>
#include <cstring>

#include "add.h"
#include "trainer/base/thread/thread_team.h"
#include "trainer/parallel/exchange_rules.h"

namespace trainer {
namespace {

constexpr size_t kLine = 16;  // floats in a cache line, so that no two ranks write to one

// The part of `count` numbers that part `i` of `parts` has.
std::pair<size_t, size_t> Share(size_t count, int i, int parts) {
  const size_t lines = (count + kLine - 1) / kLine;
  const auto at = [&](int k) {
    return std::min(count, lines * static_cast<size_t>(k) / static_cast<size_t>(parts) * kLine);
  };
  return {at(i), at(i + 1)};
}

// On the caller's team, where that is worth its start.
void AddEverywhere(std::span<float* const> parts, size_t begin, size_t end, int most_threads) {
  constexpr size_t kPerThread = 1 << 16;
  const size_t count = end - begin;
  const int threads = static_cast<int>(
      std::clamp<size_t>(count / kPerThread, 1, static_cast<size_t>(most_threads)));
  RunParts(threads, [&](int part) {
    const auto [from, to] = Share(count, part, threads);
    AddInEveryPart(parts, begin + from, begin + to);
  });
}

}  // namespace

NodeSum::NodeSum(const NodeBlock& block, int local, SharedGradients& gradients, NodeLink* link)
    : block_(block),
      local_(local),
      gradients_(gradients),
      link_(link),
      mail_(static_cast<size_t>(block.locals())) {}

void NodeSum::Start(std::span<float> values) {
  values_ = values;
  done_ = 0;
  stage_ = Stage::kNextPart;
}

bool NodeSum::Advance() {
  while (stage_ != Stage::kIdle) {
    if (!Step()) return false;
  }
  return true;
}

// Whether another step may follow.
bool NodeSum::Step() {
  if (stage_ == Stage::kNextPart) {
    BeginPart();
    return true;
  }
  if (!AllPosted()) return false;
  switch (stage_) {
    case Stage::kMailed:
      AddMail();
      break;
    case Stage::kResult:
      std::memcpy(part_.data(), block_.mailbox(block_.locals(), turn_), part_.size_bytes());
      stage_ = Stage::kNextPart;
      break;
    case Stage::kReady:
      AddShare();
      Post();
      stage_ = Stage::kShared;
      break;
    default:
      stage_ = Stage::kNextPart;
  }
  return true;
}

void NodeSum::BeginPart() {
  if (done_ == values_.size()) {
    stage_ = Stage::kIdle;
    return;
  }
  const std::span<float> rest = values_.subspan(done_);
  // What is rounded is so whatever its number, so that no result depends on the bucket.
  const bool large = rest.size() > kMailedFloats || (link_ != nullptr && link_->rounds());
  if (large && !gradients_.Everywhere(rest).empty()) {
    part_ = rest;
    stage_ = Stage::kReady;
  } else {
    // A mailbox is used again when all ranks have posted the part that used the other one, and so
    // have read this one.
    part_ = rest.first(std::min(rest.size(), NodeBlock::kMailbox));
    turn_ = 1 - turn_;
    std::memcpy(block_.mailbox(local_, turn_), part_.data(), part_.size_bytes());
    stage_ = Stage::kMailed;
  }
  done_ += part_.size();
  Post();
}

// Of several machines the first rank of each adds, for all of its own.
void NodeSum::AddMail() {
  for (int local = 0; local < block_.locals(); ++local) {
    mail_[static_cast<size_t>(local)] = block_.mailbox(local, turn_);
  }
  if (link_ == nullptr) {
    AddParts(mail_, part_.data(), part_.size());
    stage_ = Stage::kNextPart;
    return;
  }
  if (local_ == 0) {
    float* const result = block_.mailbox(block_.locals(), turn_);
    AddParts(mail_, result, part_.size());
    link_->Sum(0, {result, part_.size()});
  }
  Post();
  stage_ = Stage::kResult;
}

// Between machines each rank sums its share with the ranks of the others that have the same one.
void NodeSum::AddShare() {
  const std::span<float* const> everywhere = gradients_.Everywhere(part_);
  const int shares = link_ == nullptr ? block_.locals() : link_->lanes();
  if (local_ >= shares) return;
  const auto [begin, end] = Share(part_.size(), local_, shares);
  AddEverywhere(everywhere, begin, end, link_ == nullptr ? TeamSize() : 1);
  if (link_ == nullptr) return;
  const std::span<float> own = part_.subspan(begin, end - begin);
  link_->SumGradients(local_, own, gradients_.BlockOf(part_));
  for (float* const other : everywhere) {
    if (other != part_.data()) std::memcpy(other + begin, own.data(), own.size_bytes());
  }
}

void NodeSum::Post() {
  block_.slot(local_).posted.fetch_add(1);
  for (int local = 0; local < block_.locals(); ++local) {
    if (local != local_ && block_.slot(local).sleeping.load() != 0) block_.Ring(local);
  }
}

bool NodeSum::AllPosted() const {
  const uint32_t own = block_.slot(local_).posted.load(std::memory_order_relaxed);
  for (int local = 0; local < block_.locals(); ++local) {
    const uint32_t other = block_.slot(local).posted.load();
    if (static_cast<int32_t>(other - own) < 0) return false;
  }
  return true;
}

}  // namespace trainer
