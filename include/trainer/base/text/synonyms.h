#pragma once
// Names that other trainers use for what a prototxt or a flag calls otherwise.

#include <span>
#include <string>
#include <string_view>

namespace trainer {

// The candidate that `word` is another name of: "base_lr" for "learning_rate", "msra" for "he"; or
// "" when none of them is. Case, '_' and '-' of `word` do not matter.
std::string Synonym(std::string_view word, std::span<const std::string> candidates);

// What to write for a setting that has no field of its own, such as "epochs": a sentence without a
// full stop, or "".
std::string_view AdviceFor(std::string_view word);

}  // namespace trainer
