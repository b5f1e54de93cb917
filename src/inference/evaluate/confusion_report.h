#pragma once

#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/inference/evaluate/confusion_matrix.h"

namespace trainer {

// Returns accuracy, a table of the classes, the matrix if it fits on a terminal, and the most
// frequent mistakes. If there are many classes, only the ones with the lowest recall are shown.
// Without `names`, classes are numbers.
std::string ToText(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

// Returns all classes and all non-zero cells.
Json ToJson(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

}  // namespace trainer
