#include "trainer/base/text/duration.h"

#include <charconv>
#include <cstdio>
#include <vector>

namespace trainer {
namespace {

using std::chrono::seconds;

constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr int64_t kDurationMost = 36500 * kDay;

// Takes a whole number off the start of `text`. Returns nothing if there is none or if it exceeds a
// hundred years in seconds.
std::optional<int64_t> TakeNumber(std::string_view* text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || number < 0 || number > kDurationMost) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return number;
}

// Returns the seconds of a unit, 0 for an unknown letter.
int64_t UnitOf(char letter) {
  switch (letter) {
    case 'd':
      return kDay;
    case 'h':
      return kHour;
    case 'm':
      return kMinute;
    case 's':
      return 1;
    default:
      return 0;
  }
}

// Returns the numbers of "a:b:c", or none if the text has another form.
std::vector<int64_t> NumbersOf(std::string_view text) {
  std::vector<int64_t> numbers;
  for (;;) {
    const std::optional<int64_t> number = TakeNumber(&text);
    if (!number) return {};
    numbers.push_back(*number);
    if (text.empty()) return numbers;
    if (text.front() != ':') return {};
    text.remove_prefix(1);
  }
}

}  // namespace

std::optional<seconds> ParseDuration(std::string_view text) {
  int64_t sum = 0, last_unit = kDurationMost;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::optional<int64_t> number = TakeNumber(&text);
    if (!number || text.empty()) return std::nullopt;
    const int64_t unit = UnitOf(text.front());
    if (unit == 0 || unit >= last_unit || *number > kDurationMost / unit) return std::nullopt;
    text.remove_prefix(1);
    sum += *number * unit;
    last_unit = unit;
  }
  return sum <= kDurationMost ? std::optional(seconds(sum)) : std::nullopt;
}

std::optional<seconds> ParseWallTime(std::string_view text) {
  if (const std::optional<seconds> time = ParseDuration(text)) return time;
  int64_t days = 0;
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const std::vector<int64_t> number = NumbersOf(text.substr(0, dash));
    if (number.size() != 1) return std::nullopt;
    days = number[0];
    text.remove_prefix(dash + 1);
  }
  const std::vector<int64_t> numbers = NumbersOf(text);
  if (numbers.empty() || numbers.size() > 3) return std::nullopt;
  // After days the first number is hours; without them one or two numbers begin with minutes.
  int64_t unit = dash != std::string_view::npos || numbers.size() == 3 ? kHour : kMinute;
  int64_t sum = 0;
  for (const int64_t number : numbers) {
    if (number > kDurationMost / unit) return std::nullopt;
    sum += number * unit;
    unit /= 60;
  }
  if (days > kDurationMost / kDay || sum > kDurationMost) return std::nullopt;
  return seconds(sum + days * kDay);
}

std::string WallTimeText(seconds time) {
  const int64_t count = time.count() < 0 ? 0 : time.count();
  char text[64];
  std::snprintf(text, sizeof(text), "%lld:%02d:%02d", static_cast<long long>(count / kHour),
                static_cast<int>(count / kMinute % 60), static_cast<int>(count % 60));
  return text;
}

}  // namespace trainer
