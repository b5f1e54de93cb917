#pragma once

#include <string>

namespace trainer {

// Returns the version of the HDF5 library: "1.10.8".
std::string Hdf5LibraryVersion();

}  // namespace trainer
