#pragma once
// The numbers of an HDF5 file's data set, for tests.

#include <span>
#include <vector>

#include "trainer/hdf5/reader.h"

namespace trainer {

inline std::vector<float> Floats(const Hdf5Array& array) {
  std::vector<float> values(static_cast<size_t>(array.count()));
  array.Read(std::span<float>(values));
  return values;
}

}  // namespace trainer
