#include "shuffled_order.h"

#include <algorithm>

#include "trainer/base/random/permutation.h"

namespace trainer {
namespace {

constexpr uint32_t kShuffledOrderFirstPass =
    0x40000000;  // transforms draw from the passes before it

uint32_t PassOf(uint64_t epoch) { return kShuffledOrderFirstPass + static_cast<uint32_t>(epoch); }

}  // namespace

ShuffleForm ChooseShuffle(uint64_t records, double mean_bytes, uint64_t window) {
  constexpr double kExtentBytes = 1 << 20, kWindowBytes = 64 << 20;
  constexpr double kLeastWindow = 256, kMostWindow = 1u << 28;
  const double bytes = std::max(mean_bytes, 1.0);
  ShuffleForm form;
  form.records = records;
  form.window =
      window > 0
          ? window
          : static_cast<uint64_t>(std::clamp(kWindowBytes / bytes, kLeastWindow, kMostWindow));
  form.window = std::clamp<uint64_t>(form.window, 1, records);
  const auto extent = static_cast<uint64_t>(std::max(kExtentBytes / bytes, 1.0));
  // A window draws from several extents, unless it is all there is.
  form.extent = std::clamp<uint64_t>(extent, 1, std::max<uint64_t>(form.window / 16, 1));
  if (form.window == records) form.extent = records;
  return form;
}

ExtentOrder::ExtentOrder(const ShuffleForm& form, const PhiloxKey& key, uint64_t epoch)
    : form_(form), epoch_(epoch) {
  const uint64_t count = (form.records + form.extent - 1) / form.extent;
  Permute(key, PassOf(epoch), 0, static_cast<size_t>(count), &extents_);
  const auto last = std::ranges::find(extents_, static_cast<uint32_t>(count - 1));
  short_at_ = static_cast<uint64_t>(last - extents_.begin());
}

uint64_t ExtentOrder::RecordAt(uint64_t place) const {
  const uint64_t missing = extents_.size() * form_.extent - form_.records;
  if (place >= (short_at_ + 1) * form_.extent - missing) place += missing;
  return extents_[static_cast<size_t>(place / form_.extent)] * form_.extent + place % form_.extent;
}

void OrderWindow(const ShuffleForm& form, const PhiloxKey& key, uint64_t epoch, uint64_t window,
                 std::vector<uint32_t>* order) {
  const uint64_t first = window * form.window;
  const uint64_t size = std::min(form.window, form.records - first);
  Permute(key, PassOf(epoch), (window + 1) << 32, static_cast<size_t>(size), order);
}

}  // namespace trainer
