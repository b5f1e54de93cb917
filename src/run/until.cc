#include "trainer/run/until.h"

#include <algorithm>
#include <cstdint>

#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {

int UntilIter(const std::string& until, int max_iter) {
  if (until.empty()) return 0;
  const size_t slash = until.find('/');
  const int part = ParseNumber<int>(until.substr(0, slash)).value_or(0);
  if (slash == std::string::npos && part > 0) return part;
  const int whole =
      slash == std::string::npos ? 0 : ParseNumber<int>(until.substr(slash + 1)).value_or(0);
  if (part <= 0 || whole < part) {
    throw Error(ErrorCode::kUsage,
                Join("--until=", EscapeControl(until),
                     ": give an iteration, such as 1000, or a share of max_iter, such as 1/9"));
  }
  return static_cast<int>(std::max<int64_t>(1, int64_t{max_iter} * part / whole));
}

}  // namespace trainer
