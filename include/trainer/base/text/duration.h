#pragma once
// Lengths of time as people and batch systems write them.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace trainer {

// A text of whole numbers with units, days before hours before minutes before seconds: "90s",
// "30m", "1h30m", "2d". Nothing for any other text and for more than a hundred years.
std::optional<std::chrono::seconds> ParseDuration(std::string_view text);

// The same, or what batch systems write: "minutes", "minutes:seconds", "hours:minutes:seconds",
// "days-hours", "days-hours:minutes", "days-hours:minutes:seconds".
std::optional<std::chrono::seconds> ParseWallTime(std::string_view text);

// "0:05:00", "26:00:00".
std::string WallTimeText(std::chrono::seconds time);

}  // namespace trainer
