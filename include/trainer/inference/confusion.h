#pragma once
// How often a net took which class for which.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t classes) : classes_(static_cast<size_t>(classes)) {}

  // A record of class `label` was answered with class `answer`. Both must be classes.
  void Add(int64_t label, int64_t answer);

  int64_t classes() const { return static_cast<int64_t>(classes_.size()); }
  int64_t total() const { return total_; }
  int64_t hits() const { return hits_; }
  // The share of hits; 0 without records.
  double accuracy() const { return Share(hits_, total_); }

  // Of one class: its records, how often it was the answer, and how often rightly so.
  struct ClassCounts {
    int64_t labels = 0, answers = 0, hits = 0;
    double recall() const { return Share(hits, labels); }      // of its records
    double precision() const { return Share(hits, answers); }  // of its answers
  };
  const ClassCounts& Of(int64_t c) const { return classes_[static_cast<size_t>(c)]; }
  // The mean of the recalls of the classes that have records.
  double MeanRecall() const;

  int64_t Count(int64_t label, int64_t answer) const;

  struct Cell {
    int64_t label = 0, answer = 0, count = 0;
  };
  // The cells that are not 0, by label and then by answer.
  std::vector<Cell> Cells() const;
  // The most frequent mistakes, at most `most`; of equals the first.
  std::vector<Cell> Worst(size_t most) const;

 private:
  static double Share(int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  std::vector<ClassCounts> classes_;
  std::map<std::pair<int64_t, int64_t>, int64_t> cells_;
  int64_t total_ = 0, hits_ = 0;
};

// Where a net's answers and labels are after a pass.
struct ScoredLabels {
  ConstTensor scores, labels;
  int axis = 1;  // of the scores, the axis of the classes
  bool has_ignore = false;
  float ignore = 0;        // labels that do not count
  std::string label_name;  // for messages
};

// What the net answered for a label.
struct LabelAnswer {
  int64_t place = 0;  // of the label in the batch
  int64_t label = 0, answer = 0;
  double loss = 0;        // minus the logarithm of the label's probability; not finite for
                          // scores that are not numbers
  double confidence = 0;  // the probability of the answer
};

// The answers of one batch, without labels that do not count: the answer is the class with the
// highest score. Another class that scores as high as the label's, or a score that is not a number,
// is a miss, as for an Accuracy layer. Scores that do not add up to 1 become probabilities by
// softmax. Throws kData for a label that is no class, kConfig for scores and labels that do not fit
// each other.
std::vector<LabelAnswer> AnswersOf(const Net& net, const ScoredLabels& batch, int64_t classes);

}  // namespace trainer
