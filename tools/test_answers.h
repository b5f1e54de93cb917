#pragma once
// The answers of a test: which class was taken for which, and the images with the highest loss.

#include <string>
#include <vector>

#include "compared_labels.h"
#include "trainer/base/text/json.h"
#include "trainer/cli/flag_set.h"
#include "trainer/inference/evaluate/confusion_matrix.h"
#include "trainer/inference/evaluate/top_losses.h"
#include "trainer/net/test_nets.h"

namespace trainer {

class TestAnswers {
 public:
  // The nets have a block of memory for each value. Throws as ComparedLabels does, and as
  // ReadClassNames for the names of --labels.
  TestAnswers(const Flags& flags, TestNets& nets, const std::string& file);

  // After each pass; `is_rest`: of the net of the last batch. Throws as ReadPredictions.
  void AddBatch(bool is_rest);

  std::string Text() const;
  Json Confusion() const;
  // Images as PNG in base 64, with their classes, losses and the number of their record.
  Json Worst() const;

 private:
  // A net and what is compared in it.
  struct Compared {
    const Net& net;
    ComparedLabels labels;
    const Tensor* images;  // null: the net reads none
  };
  static std::vector<Compared> ComparedIn(const Flags& flags, TestNets& nets,
                                          const std::string& file);

  const std::vector<Compared> compared_;  // of whole batches, of the last one
  ConfusionMatrix matrix_;
  TopLosses worst_;
  std::vector<std::string> names_;  // of the classes, or none
};

}  // namespace trainer
