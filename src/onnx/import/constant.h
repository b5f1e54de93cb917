#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "onnx.pb.h"

namespace trainer {

using Dims = std::vector<int64_t>;

// Returns the product of the lengths; 1 for no axes. The lengths must not be negative and their
// product must fit, which CheckDims ensures.
int64_t CountOf(std::span<const int64_t> dims);
// Returns whether the shape has at most 32 axes, no negative length and at most 2^48 elements,
// where an axis of length 0 counts as 1.
bool AreValidDims(std::span<const int64_t> dims);
// Returns "1x3x224x224", or "()" for a scalar.
std::string DimsText(std::span<const int64_t> dims);

// Holds an array whose numbers are known before the net runs, in row-major order. The numbers are
// floats or integers; booleans are stored as integers.
struct Constant {
  Dims dims;
  bool is_float = true;
  std::vector<float> floats;  // if is_float
  std::vector<int64_t> ints;  // otherwise

  size_t Count() const { return is_float ? floats.size() : ints.size(); }
  double At(size_t i) const { return is_float ? floats[i] : static_cast<double>(ints[i]); }
};

Constant MakeFloats(Dims dims, std::vector<float> values);
Constant MakeInts(Dims dims, std::vector<int64_t> values);

// Returns an array of shape `dims` whose element i is element index(i) of `from`. Calls `index` in
// the order of i.
Constant SelectElements(const Constant& from, Dims dims,
                        const std::function<int64_t(int64_t)>& index);
// Does the same for the element first + sum of position_k * steps_k, where position_k is the
// position along axis k. This is faster than SelectElements, which needs a division per axis and
// element.
Constant SelectBySteps(const Constant& from, const Dims& dims, const Dims& steps,
                       int64_t first = 0);

// Reads a tensor of the model in `path`. Its numbers are in the message or in an external file,
// which must be in the model's folder or below it. `what` names the tensor in messages. The reader
// allocates memory only for numbers that exist, whatever the shape says. Throws kData for a wrong
// shape, a type that is not a number, and a number of elements that differs from the shape's;
// kNoInput and similar errors for external files.
Constant ReadTensor(const onnx::TensorProto& tensor, const std::string& path,
                    const std::string& what);

}  // namespace trainer
