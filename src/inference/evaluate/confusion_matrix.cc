#include "trainer/inference/evaluate/confusion_matrix.h"

#include <algorithm>
#include <functional>

namespace trainer {

void ConfusionMatrix::Add(int64_t label, int64_t predicted) {
  ++classes_[static_cast<size_t>(label)].labels;
  ++classes_[static_cast<size_t>(predicted)].predictions;
  ++cells_[{label, predicted}];
  ++total_;
  if (label != predicted) return;
  ++classes_[static_cast<size_t>(label)].hits;
  ++hits_;
}

double ConfusionMatrix::MeanRecall() const {
  double sum = 0;
  int64_t present = 0;
  for (const ClassCounts& one : classes_) {
    if (one.labels == 0) continue;
    sum += one.recall();
    ++present;
  }
  return present == 0 ? 0 : sum / static_cast<double>(present);
}

int64_t ConfusionMatrix::Count(int64_t label, int64_t predicted) const {
  const auto found = cells_.find({label, predicted});
  return found == cells_.end() ? 0 : found->second;
}

std::vector<ConfusionMatrix::Cell> ConfusionMatrix::Cells() const {
  std::vector<Cell> cells;
  for (const auto& [key, count] : cells_) cells.push_back({key.first, key.second, count});
  return cells;
}

std::vector<ConfusionMatrix::Cell> ConfusionMatrix::Worst(size_t max) const {
  std::vector<Cell> cells = Cells();
  std::erase_if(cells, [](const Cell& cell) { return cell.label == cell.predicted; });
  std::ranges::stable_sort(cells, std::greater(), &Cell::count);
  cells.resize(std::min(cells.size(), max));
  return cells;
}

}  // namespace trainer
