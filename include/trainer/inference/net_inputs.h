#pragma once
// What fills the Input layers of a net, pass by pass.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// A blob of an Input layer. Its first axis is the batch.
struct InputBlob {
  std::string name;
  Tensor value;
};

// In the order of the layers. Throws kConfig for an input without axes.
std::vector<InputBlob> InputBlobs(const Net& net);

// Used by one thread.
class InputSource {
 public:
  virtual ~InputSource() = default;

  // Fills every input of the net for its next pass. Returns how many items of the batch are real,
  // the others are zero; 0 when there is nothing more.
  virtual int64_t Fill(const Net& net) = 0;
};

// An HDF5 file with a dataset for each input, named as the input: rows of (rows, ...) go into the
// batch one after the other, so many at a time as the input's first axis is long. Throws as
// Hdf5Reader does, and kData: a dataset that is missing, has other lengths after the first axis
// than the input, or would make another number of passes than the first input's.
std::unique_ptr<InputSource> MakeHdf5Source(const std::string& path, const Net& net);

// Numbers from 0 to 1, each as likely, for `passes` passes: a function of the seed, the input's
// name and the pass.
std::unique_ptr<InputSource> MakeRandomSource(uint64_t seed, int passes);

}  // namespace trainer
