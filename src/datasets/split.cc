#include "trainer/datasets/split.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include "trainer/base/error/error.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

struct Stratum {
  std::vector<size_t> members;
  size_t drawn = 0;
  double rest = 0;  // what rounding down left over
};

// How many of each stratum: together `wanted`.
void DivideShare(size_t wanted, size_t all, std::map<int32_t, Stratum>* strata) {
  std::vector<Stratum*> by_rest;
  size_t given = 0;
  for (auto& [label, stratum] : *strata) {
    const double part = static_cast<double>(wanted) * static_cast<double>(stratum.members.size()) /
                        static_cast<double>(all);
    stratum.drawn = static_cast<size_t>(part);
    stratum.rest = part - static_cast<double>(stratum.drawn);
    given += stratum.drawn;
    by_rest.push_back(&stratum);
  }
  std::ranges::stable_sort(by_rest,
                           [](const Stratum* a, const Stratum* b) { return a->rest > b->rest; });
  for (Stratum* stratum : by_rest) {
    if (given == wanted) return;
    ++stratum->drawn;
    ++given;
  }
}

}  // namespace

SplitSize ParseSplit(std::string_view flag, const std::string& text) {
  SplitSize share;
  if (text.empty()) return share;
  const bool percent = text.ends_with('%');
  const char* const end = text.data() + text.size() - (percent ? 1 : 0);
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool whole = number == std::floor(number) && number <= 1e15;
  if (error != std::errc() || stop != end || !std::isfinite(number) || number <= 0 ||
      (percent ? number >= 100 : number >= 1 && !whole)) {
    throw Error(ErrorCode::kUsage,
                Join("--", flag, "=", EscapeControl(text),
                     ": give a share, such as 10% or 0.1, or a whole number of records"));
  }
  if (percent || number < 1) {
    share.share = percent ? number / 100 : number;
  } else {
    share.count = static_cast<int64_t>(number);
  }
  return share;
}

std::vector<bool> DrawSplit(std::span<const int32_t> labels, const SplitSize& share,
                            bool stratified, uint64_t seed) {
  const size_t all = labels.size();
  const auto wanted =
      share.share > 0 ? static_cast<size_t>(std::llround(share.share * static_cast<double>(all)))
                      : static_cast<size_t>(share.count);
  if (wanted == 0 || wanted >= all) {
    throw Error(ErrorCode::kUsage,
                Join("a part of ", wanted, " of ", all, " records was requested; it must be 1 to ",
                     all - std::min<size_t>(all, 1)));
  }
  std::map<int32_t, Stratum> strata;
  for (size_t i = 0; i < all; ++i) strata[stratified ? labels[i] : 0].members.push_back(i);
  DivideShare(wanted, all, &strata);
  std::vector<bool> drawn(all);
  std::vector<uint32_t> order;
  for (const auto& [label, stratum] : strata) {
    // A pass for each label, so that one label's choice does not depend on the others.
    Permute({seed, 1}, static_cast<uint32_t>(label), 0, stratum.members.size(), &order);
    for (size_t i = 0; i < stratum.drawn; ++i) drawn[stratum.members[order[i]]] = true;
  }
  return drawn;
}

}  // namespace trainer
