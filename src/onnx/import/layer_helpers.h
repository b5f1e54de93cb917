#pragma once
// Adds layers that the importers of several operators share.

#include <string>
#include <vector>

#include "import/net_builder.h"

namespace trainer {

// Returns the elements [start, start + count) of an axis of the blob. Adds a Slice layer, unless
// these are all elements.
int SlicePart(NetBuilder& net, const ImportNode& node, int blob, size_t axis, int64_t start,
              int64_t count, const std::string& suffix = "");

// Throws by graph.Refuse if a layer would have more than 2^26 numbers that are not in the file,
// because a small file must not make the importer allocate unlimited memory.
void CheckMadeNumbers(const NetBuilder& net, const ImportNode& node, int64_t numbers);

// Holds a matrix in row-major order. It maps an axis of `columns` elements to an axis of `rows`.
struct AxisMatrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> values;
};
// Returns a matrix of zeros. Throws as CheckMadeNumbers does.
AxisMatrix ZeroMatrix(const NetBuilder& net, const ImportNode& node, int64_t rows, int64_t columns);
// Multiplies each vector along an axis by a matrix. Adds an InnerProduct layer whose weight does
// not change in training.
int MultiplyAxis(NetBuilder& net, const ImportNode& node, int blob, size_t axis,
                 const AxisMatrix& matrix, const std::string& suffix);

// Repeats the blob along axes until its shape is `dims`, to which it must broadcast.
int BroadcastTo(NetBuilder& net, const ImportNode& node, int blob, const Dims& dims,
                const std::string& suffix = "");

// Says which axes of a large array a small one covers, and holds the small array's shape along
// them. The small array is repeated along the other axes.
struct CoveredAxes {
  size_t axis = 0;
  Dims dims;
};
// Finds the axes of `large` that an array of shape `small` covers. Without `whole`, axes of length
// 1 between covered axes count as covered, and the caller must repeat the numbers along them. With
// `whole`, returns false for such axes, and counts the first axis as covered if both shapes have
// the same number of axes.
bool FindCoveredAxes(const Dims& small, const Dims& large, bool whole, CoveredAxes* covered);

// Returns the numbers of a constant, repeated along the axes of `large` that it covers.
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

// Adds an InnerProduct layer, W x [+ b] along the last axis, and returns its top. `weight` is
// (outputs, inputs); an empty bias means no bias.
int AddInnerProduct(NetBuilder& net, const ImportNode& node, int blob, int64_t outputs,
                    std::span<const float> weight, std::span<const float> bias);

}  // namespace trainer
