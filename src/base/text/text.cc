#include "trainer/base/text/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "trainer/base/text/synonyms.h"

namespace trainer {
namespace {

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Returns the optimal string alignment distance: the number of letters to insert, delete or replace
// and of neighbours to swap. Ignores case.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) &&
          Lower(a[i - 2]) == Lower(b[j - 1])) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

// Returns whether both words have the same letters, in whatever order.
bool HasLettersOf(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

}  // namespace

std::string JoinList(std::span<const std::string> items, std::string_view separator) {
  std::string text;
  for (const std::string& item : items) {
    if (!text.empty()) text += separator;
    text += item;
  }
  return text;
}

std::string ShortestText(float value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::string JoinNumbers(std::span<const float> numbers, std::string_view separator) {
  std::vector<std::string> texts;
  for (const float number : numbers) texts.push_back(ShortestText(number));
  return JoinList(texts, separator);
}

std::string FirstNames(std::span<const std::string> names) {
  constexpr size_t kShown = 8;
  if (names.size() <= kShown) return JoinList(names);
  return Join(JoinList(names.first(kShown)), " and ", names.size() - kShown, " more");
}

std::vector<std::string> SplitList(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view piece = text.substr(0, end);
    while (!piece.empty() && std::isspace(static_cast<unsigned char>(piece.front()))) {
      piece.remove_prefix(1);
    }
    while (!piece.empty() && std::isspace(static_cast<unsigned char>(piece.back()))) {
      piece.remove_suffix(1);
    }
    if (!piece.empty()) pieces.emplace_back(piece);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pieces;
}

std::string EscapeControl(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  const auto byte_at = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool wide = byte_at(i) == 0xC2 && byte_at(i + 1) >= 0x80 && byte_at(i + 1) <= 0x9f;
    const unsigned byte = byte_at(wide ? ++i : i);
    if (wide || byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string Nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best = Synonym(word, candidates);
  if (!best.empty()) return best;
  // All messages of a layer end in "_param", so these letters do not show which one the user meant.
  constexpr std::string_view kEnding = "_param";
  const size_t letters = word.size() - (word.ends_with(kEnding) ? kEnding.size() : 0);
  size_t best_distance = std::max<size_t>(1, letters / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    const bool swapped = distance == best_distance && HasLettersOf(candidate, word);
    if (distance < best_distance || (swapped && !HasLettersOf(best, word) && !best.empty())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::string near = Nearest(word, candidates);
  return near.empty() ? "" : " Did you mean '" + near + "'?";
}

}  // namespace trainer
