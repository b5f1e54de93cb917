#pragma once
// Small text helpers. Numbers print as C++ streams print them in the C locale (6 digits).

#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// Concatenates its arguments, each printed with operator<<.
template <class... Args>
std::string Join(const Args&... args) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << args);
  return out.str();
}

// Returns the items with `separator` between them. Empty items at the start get no separator.
std::string JoinList(std::span<const std::string> items, std::string_view separator = ", ");

// Returns the fewest digits that read back as the same number.
std::string ShortestText(float value);

// Returns the ShortestText of the numbers with `separator` between them.
std::string JoinNumbers(std::span<const float> numbers, std::string_view separator = ", ");

// Returns "1 layer", "2 layers" or "2 batches".
template <class Count>
std::string Counted(Count count, std::string_view noun) {
  const char* const plural = noun.ends_with("ch") ? "es" : "s";
  return Join(count, " ", noun, count == 1 ? "" : plural);
}

// Returns at most the first eight names and the number of the others: "a, b, c and 40 more".
std::string FirstNames(std::span<const std::string> names);

// Splits at each `separator` and trims blanks; empty pieces are left out.
std::vector<std::string> SplitList(std::string_view text, char separator = ',');

// Replaces control characters (all below U+0020, newline and tab too, and U+007F to U+009F) by
// \xNN, so that names from files can neither drive a terminal nor look like lines of their own.
std::string EscapeControl(std::string_view text);

// Returns the candidate that `word` probably means: the one that it is a synonym of (synonyms.h),
// else the nearest by edit distance (case-insensitive, a swap of neighbours counts 1 and wins a
// tie). Returns "" if all differ by more than a third of the word's letters, the ending "_param"
// not counted, and by more than 1.
std::string Nearest(std::string_view word, std::span<const std::string> candidates);

// Returns " Did you mean 'X'?" with the Nearest candidate X, or "".
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

}  // namespace trainer
