#pragma once
// Layers that the importers of several operators add.

#include <string>
#include <vector>

#include "import/net_builder.h"

namespace trainer {

// Returns elements [start, start + count) of an axis of the blob: a Slice layer, or the blob itself
// if these are all elements.
int SlicePart(NetBuilder& net, const ImportNode& node, int blob, size_t axis, int64_t start,
              int64_t count, const std::string& suffix = "");

// Throws by graph.Refuse if a layer would have more than 2^26 numbers that are not in the file: a
// small file must not make the importer allocate any amount of memory.
void CheckMadeNumbers(const NetBuilder& net, const ImportNode& node, int64_t numbers);

// A matrix in row-major order that replaces an axis of `columns` elements by one of `rows`.
struct AxisMatrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> values;
};
// Returns a matrix of zeros. Throws as CheckMadeNumbers does.
AxisMatrix ZeroMatrix(const NetBuilder& net, const ImportNode& node, int64_t rows, int64_t columns);
// Returns the product of a matrix and each vector along an axis, as an InnerProduct layer whose
// weight stays as it is in training.
int MultiplyAxis(NetBuilder& net, const ImportNode& node, int blob, size_t axis,
                 const AxisMatrix& matrix, const std::string& suffix);

// Returns the blob repeated so that its shape, to which it must broadcast, is `dims`.
int BroadcastTo(NetBuilder& net, const ImportNode& node, int blob, const Dims& dims,
                const std::string& suffix = "");

// The axes of a large array that a small one covers, and the small one's shape there. It is
// repeated along the other axes.
struct CoveredAxes {
  size_t axis = 0;
  Dims dims;
};
// Returns which axes of `large` an array of shape `small` covers. Without `whole`, axes of length 1
// between covered ones are included, and the numbers must be repeated along them. With `whole`,
// returns false in that case, and counts the first axis of equally long shapes as covered.
bool FindCoveredAxes(const Dims& small, const Dims& large, bool whole, CoveredAxes* covered);

// Returns the numbers of a constant repeated to the axes that it covers of `large`.
std::vector<float> NumbersFor(const Constant& constant, const Dims& large,
                              const CoveredAxes& covered);

// Returns the constant's numbers as floats.
std::vector<float> FloatsOfConstant(const Constant& constant);

// Return x + c and x * c for a constant that broadcasts to the shape of x: a Power layer for one
// number, else a Bias or Scale layer.
int AddConstantTo(NetBuilder& net, const ImportNode& node, int blob, const Constant& constant,
                  const std::string& suffix = "");
int MultiplyByConstant(NetBuilder& net, const ImportNode& node, int blob, const Constant& factor,
                       const Constant* offset = nullptr, const std::string& suffix = "");

// Returns an InnerProduct layer's top: W x [+ b] along the last axis. `weight` is (outputs,
// inputs); an empty bias leaves it out.
int AddInnerProduct(NetBuilder& net, const ImportNode& node, int blob, int64_t outputs,
                    std::span<const float> weight, std::span<const float> bias);

}  // namespace trainer
