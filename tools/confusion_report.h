#pragma once
// What `trainer test --confusion` prints.

#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/inference/evaluate/confusion_matrix.h"

namespace trainer {

// `names`: of the classes; empty for their numbers. Of many classes only the worst.
std::string ConfusionText(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

Json ConfusionJson(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

}  // namespace trainer
