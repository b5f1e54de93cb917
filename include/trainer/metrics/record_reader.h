#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/metrics/comparison.h"
#include "trainer/net/net.h"

namespace trainer {

// Reads the compared outputs and targets of a net after each forward pass, as rows of RowWidth
// numbers: the targets, then the outputs. A target that does not count is NaN. While the object
// exists, the net has a hook that copies the two inputs of the comparing layer before it runs,
// because later layers may use their memory.
class RecordReader {
 public:
  // `net` must outlive the object. Two named blobs need a net with BufferReuse::kSeparate.
  RecordReader(Net& net, const Comparison& comparison);
  ~RecordReader();
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  // Returns the rows of the last pass. Throws kData if a label is not a class, or is one of several
  // and neither 0 nor 1.
  std::span<const float> Rows();
  // Returns how many numbers the rows of a pass have, if all its shapes are fixed.
  size_t NumbersPerPass() const;

 private:
  void Copy(const ConstTensor& outputs, const ConstTensor& targets);
  void Arrange();

  Net& net_;
  const Comparison comparison_;
  const NodeHook hook_;
  bool arranged_ = false;
  std::vector<float> outputs_, targets_;  // of the last pass, in NCHW order
  std::vector<float> rows_;
};

// Returns the numbers of a row: one class or all targets, then an output for each column.
inline int64_t RowWidth(const Comparison& comparison) {
  return comparison.columns + (comparison.kind == TargetKind::kClasses ? 1 : comparison.columns);
}

}  // namespace trainer
