#include "shuffle_order.h"

#include <algorithm>

#include "trainer/base/random/permutation.h"

namespace trainer {
namespace {

constexpr uint32_t kShuffledOrderFirstPass =
    0x40000000;  // transforms draw from the passes before it

uint32_t PassOf(uint64_t epoch) { return kShuffledOrderFirstPass + static_cast<uint32_t>(epoch); }

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

}  // namespace trainer
