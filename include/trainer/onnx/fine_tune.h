#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/onnx/import_onnx.h"

namespace trainer {

// Says where a fine-tuned net reads its data.
struct FineTuneOptions {
  int64_t classes = 0;
  std::string source, backend = "LMDB";            // the training set: "LMDB" or "LEVELDB"
  std::string test_source, test_backend = "LMDB";  // "": no tests
  int64_t train_batch = 32, test_batch = 50;
  // The input is (pixel - mean) * scale, with a mean per channel or none, of pixels from 0 to 255.
  std::vector<float> means = {};
  float scale = 1 / 255.0f;
};

// Holds a net for training and tests, and what the conversion changed in it.
struct FineTuneNet {
  caffe::NetParameter net;
  std::string old_layer, new_layer;  // the last layer before and after
  std::string score;                 // the blob of its scores, which the loss reads
  int64_t channels = 0;              // of the images
};

// Changes the weights of the first convolution, so that the net takes the pixels that Caffe
// prepares and still gives the same outputs. Torchvision prepares red, green and blue in [0, 1],
// minus a mean and divided by a deviation per channel. Caffe prepares blue, green and red from 0 to
// 255, minus the mean kTorchvisionMean. Returns false, and changes nothing, if the input is not a
// color image that a single convolution without groups reads.
bool TakeCaffePixels(ImportedNet* imported);
inline constexpr float kTorchvisionMean[3] = {103.53f, 116.28f, 123.675f};  // blue, green, red

// Replaces the Input layer by Data layers, the last layer with weights by one of another name for
// `classes` classes, and the Softmax by a loss. Removes a rectifier of the scores, which would stop
// the new layer from learning. If the options have the means and the scale of TakeCaffePixels, its
// small weights learn at a small rate. Throws kUsage, with the reason, for a net that does not have
// one image as input and one vector of scores as output.
FineTuneNet MakeFineTuneNet(const ImportedNet& imported, const FineTuneOptions& options);

// Returns the prototxt of a solver that fine-tunes the net of the file `net`. `weights` is only
// named in a comment, with the command.
std::string FineTuneSolverText(const FineTuneOptions& options, const std::string& net,
                               const std::string& solver, const std::string& weights,
                               const std::string& snapshot_prefix);

}  // namespace trainer
