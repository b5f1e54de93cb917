#include "shuffled_sampler.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/fault_guard.h"

namespace trainer {
namespace {

constexpr uint32_t kShuffledOrderFirstPass =
    0x40000000;  // transforms draw from the passes before it

uint32_t PassOf(uint64_t epoch) { return kShuffledOrderFirstPass + static_cast<uint32_t>(epoch); }

// The mean of the first records: of content, so that copies of a database give the same.
double MeanBytes(Cursor& cursor) {
  constexpr int kLooked = 64;
  double bytes = 0;
  int looked = 0;
  cursor.SeekFirst();
  do {
    bytes += static_cast<double>(cursor.Value().size());
    ++looked;
  } while (looked < kLooked && !cursor.Next());
  cursor.SeekFirst();
  return bytes / looked;
}

uint64_t RecordsOf(Cursor& cursor) {
  if (cursor.Count() >= 0) return static_cast<uint64_t>(cursor.Count());
  uint64_t records = 1;
  cursor.SeekFirst();
  while (!cursor.Next()) ++records;
  return records;
}

}  // namespace

ShuffleLayout ChooseLayout(uint64_t records, double mean_bytes, uint64_t window) {
  constexpr double kExtentBytes = 1 << 20, kWindowBytes = 64 << 20;
  constexpr double kLeastWindow = 256, kMostWindow = 1u << 28;
  const double bytes = std::max(mean_bytes, 1.0);
  ShuffleLayout layout;
  layout.records = records;
  layout.window =
      window > 0
          ? window
          : static_cast<uint64_t>(std::clamp(kWindowBytes / bytes, kLeastWindow, kMostWindow));
  layout.window = std::clamp<uint64_t>(layout.window, 1, records);
  const auto extent = static_cast<uint64_t>(std::max(kExtentBytes / bytes, 1.0));
  // A window draws from several extents, unless it is all there is.
  layout.extent = std::clamp<uint64_t>(extent, 1, std::max<uint64_t>(layout.window / 16, 1));
  if (layout.window == records) layout.extent = records;
  return layout;
}

ExtentOrder::ExtentOrder(const ShuffleLayout& layout, const PhiloxKey& key, uint64_t epoch)
    : layout_(layout), epoch_(epoch) {
  const uint64_t count = (layout.records + layout.extent - 1) / layout.extent;
  Permute(key, PassOf(epoch), 0, static_cast<size_t>(count), &extents_);
  const auto last = std::ranges::find(extents_, static_cast<uint32_t>(count - 1));
  short_at_ = static_cast<uint64_t>(last - extents_.begin());
}

uint64_t ExtentOrder::RecordAt(uint64_t place) const {
  const uint64_t missing = extents_.size() * layout_.extent - layout_.records;
  if (place >= (short_at_ + 1) * layout_.extent - missing) place += missing;
  return extents_[static_cast<size_t>(place / layout_.extent)] * layout_.extent +
         place % layout_.extent;
}

void OrderWindow(const ShuffleLayout& layout, const PhiloxKey& key, uint64_t epoch, uint64_t window,
                 std::vector<uint32_t>* order) {
  const uint64_t first = window * layout.window;
  const uint64_t size = std::min(layout.window, layout.records - first);
  Permute(key, PassOf(epoch), (window + 1) << 32, static_cast<size_t>(size), order);
}

ShuffledSampler::ShuffledSampler(std::unique_ptr<Cursor> cursor, uint64_t window,
                                 const PhiloxKey& key,
                                 std::unique_ptr<const ChecksumVerifier> checksums)
    : cursor_(std::move(cursor)), key_(key), checksums_(std::move(checksums)) {
  mean_bytes_ = MeanBytes(*cursor_);
  layout_ = ChooseLayout(RecordsOf(*cursor_), mean_bytes_, window);
  FindExtents();
  LOG(INFO) << "Shuffling data: " << layout_.records << " records, " << layout_.window
            << " at a time, read in runs of " << layout_.extent;
}

// Continues the order of a snapshot.
void ShuffledSampler::SetLayout(const ShuffleLayout& layout) {
  if (layout == layout_) return;
  layout_ = layout;
  now_.is_set = next_.is_set = false;
  orders_[0].reset();
  orders_[1].reset();
  FindExtents();
}

void ShuffledSampler::FindExtents() {
  first_keys_.clear();
  first_values_.clear();
  read_extent_.reset();
  announced_.clear();
  const auto note = [this] {
    first_keys_.emplace_back(cursor_->Key());
    if (stable()) first_values_.push_back(cursor_->Value());
  };
  cursor_->SeekFirst();
  note();
  at_ = 0;
  if (layout_.extent >= layout_.records) return;
  uint64_t record = 1;
  for (; !cursor_->Next(); ++record) {
    if (record % layout_.extent == 0) note();
  }
  if (record == layout_.records) return;
  throw Error(ErrorCode::kData, {path()},
              Join("the database has ", record, " records, but its header says ", layout_.records,
                   "; copy it or make it again"));
}

const ExtentOrder& ShuffledSampler::OrderOf(uint64_t epoch) {
  std::optional<ExtentOrder>& order = orders_[epoch % 2];
  if (!order || order->epoch() != epoch) order.emplace(layout_, key_, epoch);
  return *order;
}

// Where the next one follows in memory, up to its begin, which counts what is between records.
uint64_t ShuffledSampler::BytesOf(uint64_t extent) const {
  const auto mean = static_cast<uint64_t>(mean_bytes_ * static_cast<double>(layout_.extent));
  const auto at = static_cast<size_t>(extent);
  if (at + 1 == first_values_.size()) return mean;
  const auto address = [](std::string_view value) {
    return reinterpret_cast<uintptr_t>(value.data());
  };
  const uint64_t begin = address(first_values_[at]), end = address(first_values_[at + 1]);
  return end > begin && end - begin < 4 * mean ? end - begin : mean;
}

// The extent at a place of the order, and those after it, which come in while this one is used: a
// disk is asked for several at a time, as each by itself leaves it waiting for most of the time.
void ShuffledSampler::Announce(const ExtentOrder& order, uint64_t place) {
  constexpr uint64_t kAhead = 4;
  const uint64_t extent = order.RecordAt(place) / layout_.extent;
  if (first_values_.empty() || extent == read_extent_) return;
  read_extent_ = extent;
  std::vector<uint64_t> coming;
  for (uint64_t at = place; at < layout_.records && coming.size() <= kAhead; at += layout_.extent) {
    const uint64_t one = order.RecordAt(at) / layout_.extent;
    coming.push_back(one);
    if (std::ranges::find(announced_, one) != announced_.end()) continue;
    cursor_->WillNeed(first_values_[static_cast<size_t>(one)], BytesOf(one));
  }
  announced_ = std::move(coming);
}

void ShuffledSampler::GoTo(uint64_t record) {
  const uint64_t first = record / layout_.extent * layout_.extent;
  if (record < at_ || first > at_) {
    if (!cursor_->Seek(first_keys_[static_cast<size_t>(record / layout_.extent)])) {
      throw Error(ErrorCode::kData, {path()}, "a record disappeared while the database was read");
    }
    at_ = first;
  }
  for (; at_ < record; ++at_) cursor_->Next();
}

void ShuffledSampler::Begin(uint64_t epoch, uint64_t number, uint64_t residue, Window* window) {
  std::vector<uint32_t> order;
  OrderWindow(layout_, key_, epoch, number, &order);
  window->is_set = true;
  window->epoch = epoch;
  window->number = number;
  window->residue = residue;
  window->coming.resize(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) window->coming[order[i]] = i;
  window->kept.resize(std::max(window->kept.size(), order.size()));
  for (Kept& kept : window->kept) kept.is_there = false;
  window->read = window->begun_at = 0;
}

void ShuffledSampler::ReadUpTo(uint64_t places, Window* window) {
  const uint64_t first = FirstOf(window->number);
  const uint64_t before = window->epoch * layout_.records + first;
  const ExtentOrder& order = OrderOf(window->epoch);
  for (; window->read < std::min(places, window->size()); ++window->read) {
    const uint32_t place = window->coming[static_cast<size_t>(window->read)];
    if (place < window->begun_at || (before + place) % stride_ != window->residue) continue;
    Announce(order, first + window->read);
    GoTo(order.RecordAt(first + window->read));
    Kept& kept = window->kept[place];
    if (stable()) {
      kept.key_view = cursor_->Key();
      kept.value_view = cursor_->Value();
      TouchPages(path(), kept.value_view);
    } else {
      kept.key_view = kept.key = cursor_->Key();
      kept.value_view = kept.value = cursor_->Value();
    }
    kept.number = at_;
    kept.is_there = true;
  }
}

// As much of the next window as was given out of this one.
void ShuffledSampler::ReadAhead(uint64_t place) {
  const bool last = FirstOf(now_.number + 1) >= layout_.records;
  const uint64_t epoch = now_.epoch + (last ? 1 : 0), number = last ? 0 : now_.number + 1;
  if (!next_.Is(epoch, number)) Begin(epoch, number, now_.residue, &next_);
  const uint64_t given = place + 1 - now_.begun_at, all = now_.size() - now_.begun_at;
  ReadUpTo((next_.size() * given + all - 1) / all, &next_);
}

// Returns false if the current record is not in memory.
bool ShuffledSampler::FindKept(Record* record) {
  const uint64_t number = place_ / layout_.window, in_window = place_ % layout_.window;
  const uint64_t residue = (epoch_ * layout_.records + place_) % stride_;
  if (!now_.Is(epoch_, number)) {
    if (next_.Is(epoch_, number) && next_.residue == residue) {
      std::swap(now_, next_);
      next_.is_set = false;
    } else {
      Begin(epoch_, number, residue, &now_);
      now_.begun_at = in_window;
    }
    ReadUpTo(now_.size(), &now_);
  }
  const Kept& kept = now_.kept[static_cast<size_t>(in_window)];
  if (!kept.is_there) return false;
  if (residue == now_.residue) ReadAhead(in_window);
  record->key = kept.key_view;
  record->value = kept.value_view;
  record->index = kept.number;
  return true;
}

void ShuffledSampler::GetAlone(Record* record) {
  std::vector<uint32_t> order;
  const uint64_t window = place_ / layout_.window;
  OrderWindow(layout_, key_, epoch_, window, &order);
  const uint64_t in_window = order[static_cast<size_t>(place_ % layout_.window)];
  GoTo(OrderOf(epoch_).RecordAt(FirstOf(window) + in_window));
  record->key = cursor_->Key();
  record->value = cursor_->Value();
  record->index = at_;
}

void ShuffledSampler::Get(Record* record) {
  if (std::exchange(epoch_ended_, false)) cursor_->CheckUnchanged();
  if (stride_ == 0 || !FindKept(record)) GetAlone(record);
  if (stable()) record->PrefetchValue();
}

uint64_t ShuffledSampler::Skip(uint64_t count) {
  place_ += count;
  const uint64_t ended = place_ / layout_.records;
  place_ %= layout_.records;
  epoch_ += ended;
  epoch_ended_ |= ended > 0;
  return ended;
}

// These numbers and the seed define the order of the epoch.
std::string ShuffledSampler::Key() const {
  return Join("shuffled ", epoch_, " place ", place_, " of ", layout_.records, " extent ",
              layout_.extent, " window ", layout_.window);
}

std::string ShuffledSampler::Describe() {
  Record record;
  Get(&record);
  return Join("record ", QuoteKey(record.key), " of ", path());
}

void ShuffledSampler::Seek(const Position& position) {
  if (position.key.empty()) {
    epoch_ = place_ = 0;
    return;
  }
  std::string_view rest = position.key;
  uint64_t epoch = 0, place = 0;
  ShuffleLayout was;
  if (!TakeNumber(&rest, "shuffled ", &epoch) || !TakeNumber(&rest, " place ", &place) ||
      !TakeNumber(&rest, " of ", &was.records) || !TakeNumber(&rest, " extent ", &was.extent) ||
      !TakeNumber(&rest, " window ", &was.window) || !rest.empty() || place >= was.records ||
      was.extent < 1 || was.window < 1) {
    throw Error(ErrorCode::kBadSnapshot, {path()},
                Join("the snapshot stopped at ", QuoteKey(position.key),
                     ", which is not a position in a shuffled epoch; set data_param.shuffle as "
                     "in the run of the snapshot, or start from the weights with --weights"));
  }
  if (was.records != layout_.records) {
    throw Error(ErrorCode::kBadSnapshot, {path()},
                Join("the database has ", layout_.records, " records now, but had ", was.records,
                     " when the snapshot was made; use the database of that run"));
  }
  SetLayout(was);
  epoch_ = epoch;
  place_ = place;
}

}  // namespace trainer
