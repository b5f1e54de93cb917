#pragma once
// The settings that a random search draws.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/run/search/grid.h"

namespace trainer {

// Returns whether the value of an assignment is drawn: log:LOW..HIGH, uniform:LOW..HIGH,
// int:LOW..HIGH or choice:A,B. Throws kUsage for a misspelt kind, such as logg:LOW..HIGH.
bool IsDrawn(const std::string& assignment);

// The values of --set in a random search.
class SearchSpace {
 public:
  // Throws kUsage for a range or a choice that is not well formed, for log: and uniform: of a field
  // of whole numbers, for a list without choice:, and if no value is drawn.
  explicit SearchSpace(const std::vector<std::string>& assignments);

  // Returns trial `number` without its folder. The values depend on `seed`, `number` and the key
  // only, so another --set changes no other value. Values of log: have four digits, values of
  // uniform: are rounded to a thousandth of the range or finer.
  Trial Draw(uint64_t seed, int number) const;

  // Returns how many different trials there are; a range of real numbers counts as very many.
  double Combinations() const;

 private:
  enum class Kind { kLog, kUniform, kInt, kChoice };
  struct Dimension {
    std::string key;
    Kind kind = Kind::kLog;
    double low = 0, high = 0;         // of a range
    std::vector<std::string> values;  // of a choice: "key=value"
  };
  // Parses an assignment whose value is drawn.
  static Dimension Parse(const std::string& assignment);
  // Returns "key=value" for a number in [0, 1).
  static std::string SettingAt(const Dimension& dimension, double position);

  std::vector<Dimension> dimensions_;
  std::vector<std::string> fixed_;  // assignments that all trials have
};

// Returns "trial_0007", the name of the trial's folder and of its files.
std::string TrialName(int number);

// Returns the runs of the trials 1 to `trials`, each with `seeds` runs (0: one run), in subfolders
// of `folder`. Throws kUsage if there are not more different trials than `trials`.
std::vector<Trial> DrawTrials(const SearchSpace& space, uint64_t seed, int trials, int seeds,
                              const std::string& folder, const std::string& prefix);

}  // namespace trainer
