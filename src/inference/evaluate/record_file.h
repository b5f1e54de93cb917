#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trainer/metrics/comparison.h"

namespace trainer {

// A file with the targets and the predictions of each record of a test. A record is called by its
// number in the test, from 0 on. Records of classes have the label, the answer and the probability
// of each class p0, p1, ...; of labels the targets t0, ... and probabilities p0, ...; of numbers
// the targets t0, ... and outputs y0, .... A target that does not count is empty (null, -1, NaN).
class RecordFile {
 public:
  virtual ~RecordFile() = default;
  // Adds a row of RecordReader. Throws kIo.
  virtual void Add(std::span<const float> targets, std::span<const float> outputs) = 0;
  // Gives the file its name. Without it, no file is left.
  virtual void Finish() = 0;
};

// Throws kUsage unless the name ends in .csv, .jsonl or .npz.
void RequireRecordFormat(const std::string& path);

// Throws as RequireRecordFormat, AtomicFile and OpenArrayWriter do.
std::unique_ptr<RecordFile> OpenRecordFile(const std::string& path, const Comparison& comparison);

}  // namespace trainer
