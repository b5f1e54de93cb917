#pragma once
// Pairs of images, as siamese nets are trained on.

#include <cstdint>
#include <string>

namespace trainer {

// Writes as many pairs as `set` has images. Each pair is two images drawn at random, stacked along
// the channels; its label is 1 if the two labels are equal, else 0. The result is a function of the
// set and the seed. Keeps all images in memory. Returns the number of pairs. Errors: as
// RecordScan, DatumParser and DatabaseWriter throw; kData for a record of floats, of another shape
// than the first, or without a label.
int64_t WritePairs(const std::string& set, const std::string& pairs,
                   const std::string& backend = "LMDB", uint64_t seed = 1);

}  // namespace trainer
