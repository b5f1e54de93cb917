#pragma once
// What `trainer find-lr` prints and draws of its curve.

#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/run/search/lr_range_test.h"

namespace trainer {

// What was found, and how to show it.
struct LrReport {
  std::vector<LrRangeTest::Point> points;
  bool diverged = false;
  std::string solver;  // the file, for the command that the advice names

  // One sentence or two: the rate to train with, or why there is none.
  std::string Advice() const;
  // Some of the points, those of the advice among them.
  std::string ToTable() const;
  std::string ToCsv() const;
  std::string ToSvg() const;
  Json ToJson() const;
};

}  // namespace trainer
