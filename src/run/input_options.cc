#include "trainer/run/input_options.h"

#include <charconv>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/data/bad_records.h"

namespace trainer {

void ApplyBadRecords(const std::string& what) {
  constexpr std::string_view kSkip = "skip=";
  if (what == "stop") return SkipBadRecords(-1);
  int most = -1;
  const char* const last = what.data() + what.size();
  if (what.starts_with(kSkip)) {
    const auto [stop, error] = std::from_chars(what.data() + kSkip.size(), last, most);
    if (error != std::errc() || stop != last) most = -1;
  }
  if (most < 0) {
    throw Error(ErrorCode::kUsage, Join("--bad_records='", EscapeControl(what),
                                        "': give stop, or skip=N with the largest number of "
                                        "skipped records, such as skip=100"));
  }
  SkipBadRecords(most);
}

}  // namespace trainer
