#pragma once
// Maps names that other trainers use to the names of a prototxt or a flag.

#include <span>
#include <string>
#include <string_view>

namespace trainer {

// Returns the candidate that `word` is another name for: "base_lr" for "learning_rate", "msra" for
// "he"; or "" if there is none. Case, '_' and '-' of `word` do not matter.
std::string Synonym(std::string_view word, std::span<const std::string> candidates);

// Returns advice for a setting that has no field of its own, such as "epochs": a sentence without a
// full stop, or "".
std::string_view AdviceFor(std::string_view word);

}  // namespace trainer
