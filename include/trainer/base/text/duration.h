#pragma once
// Durations in the notation of people and batch systems.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace trainer {

// Parses whole numbers with units, days before hours before minutes before seconds: "90s", "30m",
// "1h30m", "2d". Returns nothing for any other text and for more than a hundred years.
std::optional<std::chrono::seconds> ParseDuration(std::string_view text);

// Parses the forms of ParseDuration and those used by batch systems: "minutes", "minutes:seconds",
// "hours:minutes:seconds", "days-hours", "days-hours:minutes", "days-hours:minutes:seconds".
std::optional<std::chrono::seconds> ParseWallTime(std::string_view text);

// Returns the time as hours, minutes and seconds: "0:05:00", "26:00:00".
std::string WallTimeText(std::chrono::seconds time);

}  // namespace trainer
