#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// A top blob of an Input layer. Its first axis is the batch.
struct InputBlob {
  std::string name;
  Tensor value;
};

// Returns the blobs of all Input layers, in the order of the layers. Throws kConfig if a blob has
// no axes.
std::vector<InputBlob> InputBlobs(const Net& net);

// Fills the Input layers of a net before each pass. Not thread-safe.
class BlobSource {
 public:
  virtual ~BlobSource() = default;

  // Fills every input of the net for its next pass. Returns the number of items that are filled,
  // or 0 at the end of the data. The other items of the batch are zero.
  virtual int64_t Fill(const Net& net) = 0;
};

// Reads a file of arrays (see OpenArrayFile) with one array per input, named as the input. An array
// has the shape (rows, ...), and each pass takes as many rows as the input's first axis is long.
// Throws as OpenArrayFile, and kData if an array is missing, if its other axes differ from the
// input's, or if it is enough for a different number of passes than the first input's.
std::unique_ptr<BlobSource> MakeArraySource(const std::string& path, const Net& net);

// Draws uniform numbers in [0, 1) for `passes` passes. They depend on the seed, the input's name
// and the index of the pass only.
std::unique_ptr<BlobSource> MakeRandomSource(uint64_t seed, int passes);

// Makes a source for a net whose data layers fill it: it counts `passes` passes, and reports each
// batch as full.
std::unique_ptr<BlobSource> MakeDataLayerSource(int passes);

}  // namespace trainer
