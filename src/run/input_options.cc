#include "trainer/run/input_options.h"

#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/input/bad_records.h"

namespace trainer {

void ApplyBadRecords(const std::string& what) {
  constexpr std::string_view kSkip = "skip=";
  if (what == "stop") return SetMaxBadRecords(-1);
  const int most =
      what.starts_with(kSkip) ? ParseNumber<int>(what.substr(kSkip.size())).value_or(-1) : -1;
  if (most < 0) {
    throw Error(ErrorCode::kUsage, Join("--bad_records='", EscapeControl(what),
                                        "': give stop, or skip=N with the largest number of "
                                        "skipped records, such as skip=100"));
  }
  SetMaxBadRecords(most);
}

}  // namespace trainer
