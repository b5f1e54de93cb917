#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace trainer {

// Counts how often each class was predicted for each label.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t classes) : classes_(static_cast<size_t>(classes)) {}

  // Counts one record. `label` and `predicted` must be in [0, classes()).
  void Add(int64_t label, int64_t predicted);

  int64_t classes() const { return static_cast<int64_t>(classes_.size()); }
  int64_t total() const { return total_; }
  int64_t hits() const { return hits_; }
  // Returns the fraction of correct predictions; 0 without records.
  double accuracy() const { return Ratio(hits_, total_); }

  // Counts of one class: records with this label, predictions of it, and correct predictions.
  struct ClassCounts {
    int64_t labels = 0, predictions = 0, hits = 0;
    double recall() const { return Ratio(hits, labels); }
    double precision() const { return Ratio(hits, predictions); }
  };
  // Returns the counts of class `c`, which must be in [0, classes()).
  const ClassCounts& Of(int64_t c) const { return classes_[static_cast<size_t>(c)]; }
  // Returns the mean recall over the classes that have records; 0 without any.
  double MeanRecall() const;

  // Returns how many records with this label got this prediction.
  int64_t Count(int64_t label, int64_t predicted) const;

  // How often a label got a prediction.
  struct Cell {
    int64_t label = 0, predicted = 0, count = 0;
  };
  // Returns the non-zero cells, sorted by label, then by predicted class.
  std::vector<Cell> Cells() const;
  // Returns the `max` most frequent mistakes, the most frequent first; equal counts are in the
  // order of Cells.
  std::vector<Cell> Worst(size_t max) const;

 private:
  static double Ratio(int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  std::vector<ClassCounts> classes_;
  std::map<std::pair<int64_t, int64_t>, int64_t> cells_;
  int64_t total_ = 0, hits_ = 0;
};

}  // namespace trainer
