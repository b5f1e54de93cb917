#include "shuffled_reader.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/touch_pages.h"

namespace trainer {
namespace {

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

uint64_t CountRecords(Cursor& cursor) {
  if (cursor.Count() >= 0) return static_cast<uint64_t>(cursor.Count());
  uint64_t records = 1;
  cursor.SeekFirst();
  while (!cursor.Next()) ++records;
  return records;
}

}  // namespace

ShuffledReader::ShuffledReader(std::unique_ptr<Cursor> cursor, uint64_t window,
                               const PhiloxKey& key)
    : cursor_(std::move(cursor)), key_(key) {
  mean_bytes_ = MeanBytes(*cursor_);
  layout_ = ChooseLayout(CountRecords(*cursor_), mean_bytes_, window);
  FindExtents();
}

void ShuffledReader::SetLayout(const ShuffleLayout& layout) {
  if (layout == layout_) return;
  layout_ = layout;
  now_.is_set = next_.is_set = false;
  orders_[0].reset();
  orders_[1].reset();
  FindExtents();
}

void ShuffledReader::FindExtents() {
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

const ExtentOrder& ShuffledReader::OrderOf(uint64_t epoch) {
  std::optional<ExtentOrder>& order = orders_[epoch % 2];
  if (!order || order->epoch() != epoch) order.emplace(layout_, key_, epoch);
  return *order;
}

// Where the next one follows in memory, up to its begin, which counts what is between records.
uint64_t ShuffledReader::BytesOf(uint64_t extent) const {
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
void ShuffledReader::Announce(const ExtentOrder& order, uint64_t place) {
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

void ShuffledReader::GoTo(uint64_t record) {
  const uint64_t first = record / layout_.extent * layout_.extent;
  if (record < at_ || first > at_) {
    if (!cursor_->Seek(first_keys_[static_cast<size_t>(record / layout_.extent)])) {
      throw Error(ErrorCode::kData, {path()}, "a record disappeared while the database was read");
    }
    at_ = first;
  }
  for (; at_ < record; ++at_) cursor_->Next();
}

void ShuffledReader::Begin(uint64_t epoch, uint64_t number, uint64_t residue, Window* window) {
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

void ShuffledReader::ReadUpTo(uint64_t places, Window* window) {
  const uint64_t first = FirstOf(window->number);
  const uint64_t before = window->epoch * layout_.records + first;
  const ExtentOrder& order = OrderOf(window->epoch);
  for (; window->read < std::min(places, window->size()); ++window->read) {
    const uint32_t place = window->coming[static_cast<size_t>(window->read)];
    if (place < window->begun_at || (before + place) % every_ != window->residue) continue;
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
void ShuffledReader::ReadAhead(uint64_t place) {
  const bool last = FirstOf(now_.number + 1) >= layout_.records;
  const uint64_t epoch = now_.epoch + (last ? 1 : 0), number = last ? 0 : now_.number + 1;
  if (!next_.Is(epoch, number)) Begin(epoch, number, now_.residue, &next_);
  const uint64_t given = place + 1 - now_.begun_at, all = now_.size() - now_.begun_at;
  ReadUpTo((next_.size() * given + all - 1) / all, &next_);
}

ShuffledReader::Record ShuffledReader::Get(uint64_t epoch, uint64_t place) {
  const uint64_t number = place / layout_.window, in_window = place % layout_.window;
  if (every_ == 0) return GetAlone(epoch, number, in_window);
  const uint64_t residue = (epoch * layout_.records + place) % every_;
  if (!now_.Is(epoch, number)) {
    if (next_.Is(epoch, number) && next_.residue == residue) {
      std::swap(now_, next_);
      next_.is_set = false;
    } else {
      Begin(epoch, number, residue, &now_);
      now_.begun_at = in_window;
    }
    ReadUpTo(now_.size(), &now_);
  }
  const Kept& kept = now_.kept[static_cast<size_t>(in_window)];
  if (kept.is_there) {
    if (residue == now_.residue) ReadAhead(in_window);
    return {kept.key_view, kept.value_view, kept.number};
  }
  return GetAlone(epoch, number, in_window);
}

ShuffledReader::Record ShuffledReader::GetAlone(uint64_t epoch, uint64_t number,
                                                uint64_t in_window) {
  std::vector<uint32_t> order;
  OrderWindow(layout_, key_, epoch, number, &order);
  GoTo(OrderOf(epoch).RecordAt(FirstOf(number) + order[static_cast<size_t>(in_window)]));
  return {cursor_->Key(), cursor_->Value(), at_};
}

}  // namespace trainer
