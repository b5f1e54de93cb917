#pragma once
// Pairs of images, as siamese nets are trained on.

#include <cstdint>
#include <string>

namespace trainer {

// Writes as many pairs as `set` has images: two drawn at random, stacked along the channels, with
// label 1 if their labels are equal, else 0. A function of the set, which is kept in memory, and
// the seed. Returns their number. Errors: as RecordScan, DatumParser and DatabaseWriter throw;
// kData for a record of floats, of another shape than the first, or without a label.
int64_t WritePairs(const std::string& set, const std::string& pairs,
                   const std::string& backend = "LMDB", uint64_t seed = 1);

}  // namespace trainer
