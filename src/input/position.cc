#include "trainer/input/position.h"

#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"

namespace trainer {
std::string Position::Encode() const {
  if (bad > 0) return Join("2 ", record, " ", epoch, " ", bad, " ", key);
  return Join("1 ", record, " ", epoch, " ", key);
}

Position Position::Decode(const std::string& text) {
  Position position;
  uint64_t version = 0;
  std::string_view rest = text;
  if (!TakeNumber(&rest, "", &version) || version < 1 || version > 2 ||
      !TakeNumber(&rest, " ", &position.record) || !TakeNumber(&rest, " ", &position.epoch) ||
      (version == 2 && !TakeNumber(&rest, " ", &position.bad)) || !rest.starts_with(' ')) {
    throw Error(
        ErrorCode::kBadSnapshot,
        Join("the position in the data set, ", QuoteKey(text),
             ", is not in the format of this program; start from the weights with --weights"));
  }
  position.key = rest.substr(1);
  return position;
}

}  // namespace trainer
