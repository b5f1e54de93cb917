#include "trainer/input/position.h"

#include <charconv>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

// Takes "<number> " off the front.
bool TakeNumber(std::string_view& text, uint64_t* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  if (error != std::errc() || stop == end || *stop != ' ') return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()) + 1);
  return true;
}

}  // namespace

std::string Position::Encode() const {
  if (bad > 0) return Join("2 ", record, " ", epoch, " ", bad, " ", key);
  return Join("1 ", record, " ", epoch, " ", key);
}

Position Position::Decode(const std::string& text) {
  Position position;
  uint64_t version = 0;
  std::string_view rest = text;
  if (!TakeNumber(rest, &version) || version < 1 || version > 2 ||
      !TakeNumber(rest, &position.record) || !TakeNumber(rest, &position.epoch) ||
      (version == 2 && !TakeNumber(rest, &position.bad))) {
    throw Error(
        ErrorCode::kBadSnapshot,
        Join("the position in the data set, ", QuoteKey(text),
             ", is not in the format of this program; start from the weights with --weights"));
  }
  position.key = rest;
  return position;
}

}  // namespace trainer
