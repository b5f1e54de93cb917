#pragma once
// The answers of a test: which class was taken for which, and the images with the highest loss.

#include <string>
#include <vector>

#include "compared_labels.h"
#include "flags.h"
#include "trainer/base/json.h"
#include "trainer/predict/confusion.h"
#include "trainer/predict/worst_pictures.h"

namespace trainer {

class TestAnswers {
 public:
  // The net has a block of memory for each value. Throws as ComparedLabels does, and as
  // ReadClassNames for the names of --labels.
  TestAnswers(const Flags& flags, const Net& net, const std::string& file);

  // After each pass of the net. Throws as AnswersOf.
  void AddBatch();

  std::string Text() const;
  Json Confusion() const;
  // Images as PNG in base 64, with their classes, losses and the number of their record.
  Json Worst() const;

 private:
  const Net& net_;
  ComparedLabels labels_;
  ConfusionMatrix matrix_;
  WorstPictures worst_;
  std::vector<std::string> names_;  // of the classes, or none
  const Tensor* images_;            // null: the net reads none
};

}  // namespace trainer
