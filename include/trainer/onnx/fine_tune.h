#pragma once

#include <cstdint>
#include <string>

#include "trainer/onnx/import_onnx.h"

namespace trainer {

// Where the data of a fine-tuned net comes from.
struct FineTuneOptions {
  int64_t classes = 0;
  std::string source, backend = "LMDB";            // the training set: "LMDB" or "LEVELDB"
  std::string test_source, test_backend = "LMDB";  // "": no tests
  int64_t train_batch = 32, test_batch = 50;
};

// A net for training and tests, and what changed in it.
struct FineTuneNet {
  caffe::NetParameter net;
  std::string old_layer, new_layer;  // the last layer before and after
  std::string score;                 // its blob, which the loss reads
};

// Changes the weights of the first convolution, so that the net gives for pixels from 0 to 255 in
// the order blue, green, red, minus the mean kTorchvisionMean, what it gave for the images that
// torchvision prepares: red, green, blue, from 0 to 1, minus a mean and divided by a deviation per
// channel. Returns false, and changes nothing, if the input is not a color image that a single
// convolution without groups reads.
bool TakeCaffePixels(ImportedNet* imported);
inline constexpr float kTorchvisionMean[3] = {103.53f, 116.28f, 123.675f};  // blue, green, red

// Replaces the Input layer by Data layers, the last layer with weights by one of another name for
// `classes` classes, and the Softmax by a loss. Removes a rectifier of the scores, which would stop
// the new layer from learning. `subtracts_mean`: see TakeCaffePixels; without it, pixels are scaled
// to [0, 1]. Throws kUsage, with the reason, for a net that does not have one image as input and
// one vector of scores as output.
FineTuneNet MakeFineTuneNet(const ImportedNet& imported, const FineTuneOptions& options,
                            bool subtracts_mean);

// Returns the prototxt of a solver that fine-tunes the net of the file `net`. `weights` is only
// named in a comment, with the command.
std::string FineTuneSolverText(const FineTuneOptions& options, const std::string& net,
                               const std::string& solver, const std::string& weights,
                               const std::string& snapshot_prefix);

}  // namespace trainer
