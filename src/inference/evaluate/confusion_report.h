#pragma once

#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/inference/evaluate/confusion_matrix.h"

namespace trainer {

// Prints accuracy, a table of the classes, the matrix, and the most frequent mistakes. If there are
// many classes, only those with the lowest recall are shown. Without `names`, classes are numbers.
std::string ToText(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

// All classes and all non-zero cells.
Json ToJson(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

}  // namespace trainer
