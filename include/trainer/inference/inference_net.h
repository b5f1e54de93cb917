#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/net/net.h"
#include "trainer/net/test_nets.h"

namespace trainer {

// Says how to build a net that is not trained.
struct InferenceOptions {
  caffe::NetState state;  // the caller sets the phase
  // The value kSeparate keeps every blob after a pass, so that the caller can read it.
  BufferReuse memory = BufferReuse::kShared;
  uint64_t seed = 0;
  bool log = false;  // log Caffe's start-up lines
  OutputFiles output_files = OutputFiles::kDisabled;
  // If set, builds the nets of a test with this number of batches. With 0, the test is one pass
  // over the test data, in which each record counts exactly once.
  std::optional<int> test_batches = std::nullopt;
};

// Holds a net that is not trained, and its parameters. Not thread-safe.
class InferenceNet {
 public:
  // `spec` and `device` must outlive this object. Throws as Net and TestNets do.
  InferenceNet(const NetSpec& spec, const Device& device, const InferenceOptions& options);

  // Returns the net. For a test, returns the net for whole batches.
  Net& net() { return test_ ? test_->net() : *net_; }
  // Returns the nets of the test. Requires InferenceOptions::test_batches.
  TestNets& test() { return *test_; }
  const NetSpec& spec() const { return spec_; }

  // Copies the weights in `files` to the net by layer name, in order, and logs the layers that do
  // not match. Returns the layers that are missing in all files; these keep the values of their
  // fillers. Throws as ReadModel and WeightLoader::Copy do.
  std::vector<std::string> LoadWeights(std::span<const std::string> files);
  // Loads weights as LoadWeights does, but throws kData if a layer's weights are missing. Use it
  // for a net that is written to a file, or that makes predictions.
  void LoadAllWeights(std::span<const std::string> files);

 private:
  const NetSpec& spec_;
  ParamStore params_;
  std::unique_ptr<Net> net_;  // null if test_ is set
  std::unique_ptr<TestNets> test_;
};

// Throws kUsage, with the nearest name, if --`flag` names a blob that is missing in the net. The
// outputs of Split and Cast layers do not count, because the program inserts these layers.
void RequireBlobs(const Net& net, const std::string& flag, const std::vector<std::string>& blobs);

}  // namespace trainer
