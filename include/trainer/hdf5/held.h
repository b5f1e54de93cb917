#pragma once

namespace trainer {

// Whether a thread that was left behind in a read holds the HDF5 library, which lets one in at a
// time: no file can be read or written by it any more.
bool Hdf5IsHeld();

}  // namespace trainer
