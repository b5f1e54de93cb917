#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/image_input_flags.h"

namespace trainer {

// Which blobs of a net to write, and what fills its inputs.
struct FeatureOptions {
  std::vector<std::string> weights;  // files, loaded in order
  std::vector<std::string> blobs;    // to write
  std::string backend = "HDF5";      // or LMDB, LEVELDB
  std::vector<std::string> out;      // see MakeBlobWriter
  bool replace = false;

  // The source of the Input layers: exactly one of these, and none for a net with data layers.
  std::string input;                // HDF5 file
  bool random = false;              // uniform numbers
  std::vector<std::string> images;  // files, followed by the lines of image_flags.list
  ImageInputFlags image_flags;

  uint64_t seed = 0;    // of `random`
  int iterations = 50;  // passes of `random` and of a net with data layers
};

// Runs the net forward and writes the blobs, one row per item. Requires BufferReuse::kSeparate.
// Returns the number of passes. Throws kUsage if an input is missing or superfluous or if the net
// has parameters but no weights are given, and as RequireBlobs, ResolvePreprocessOptions,
// MakeBlobWriter and InferenceNet::LoadWeights.
int ExtractFeatures(InferenceNet& net, const FeatureOptions& options);

}  // namespace trainer
