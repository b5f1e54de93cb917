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
// Returns whether the shape has at most 32 axes, no negative length and at most 2^48 elements, also
// without its axes of length 0.
bool AreValidDims(std::span<const int64_t> dims);
// Returns "1x3x224x224", or "()" for a scalar.
std::string DimsText(std::span<const int64_t> dims);

// An array whose numbers are known before the net runs, in row-major order: floats, or integers,
// which are also used for booleans.
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
// The same for element first + sum of position_k * steps_k, where position_k is the position along
// axis k. This needs no division for each axis of each element.
Constant SelectBySteps(const Constant& from, const Dims& dims, const Dims& steps,
                       int64_t first = 0);

// Reads a tensor of the model in `path`: numbers in the message or in an external file, which must
// be in the model's folder or below it. `what` names the tensor in messages. Nothing is allocated
// from the shape alone. Throws kData for a wrong shape, a type that is not a number, and a number
// of elements that differs from the shape's; kNoInput and similar errors for external files.
Constant ReadTensor(const onnx::TensorProto& tensor, const std::string& path,
                    const std::string& what);

}  // namespace trainer
