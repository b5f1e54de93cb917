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

// How to build a net that is not trained.
struct InferenceOptions {
  caffe::NetState state;  // the caller sets the phase
  // kSeparate keeps every blob after a pass, so that it can be read.
  BufferReuse memory = BufferReuse::kShared;
  uint64_t seed = 0;
  bool log = false;  // log Caffe's start-up lines
  OutputFiles output_files = OutputFiles::kDisabled;
  // Builds the nets of a test of so many batches, or with 0 of one pass over the test data, in
  // which each record counts exactly once.
  std::optional<int> test_batches = std::nullopt;
};

// A net that is not trained, with its parameters. Not thread-safe.
class InferenceNet {
 public:
  // `spec` and `device` must outlive this object. Throws as Net and TestNets.
  InferenceNet(const NetSpec& spec, const Device& device, const InferenceOptions& options);

  // Returns the net; of a test, the one for whole batches.
  Net& net() { return test_ ? test_->net() : *net_; }
  // Returns the nets of a test. Requires InferenceOptions::test_batches.
  TestNets& test() { return *test_; }
  const NetSpec& spec() const { return spec_; }

  // Copies the weights in `files` to the net by layer name, in order, and logs the layers that do
  // not match. Returns the layers whose weights no file has, which keep the values of their
  // fillers. Throws as ReadModel and WeightLoader::Copy.
  std::vector<std::string> LoadWeights(std::span<const std::string> files);
  // Does the same for a net that is written to a file or answers without a log. Throws kData if a
  // layer's weights are missing, too.
  void LoadAllWeights(std::span<const std::string> files);

 private:
  const NetSpec& spec_;
  ParamStore params_;
  std::unique_ptr<Net> net_;  // null if test_ is set
  std::unique_ptr<TestNets> test_;
};

// Throws kUsage, with the nearest name, if --`flag` names a blob that the net does not have. The
// outputs of Split and Cast layers, which the program inserts, do not count.
void RequireBlobs(const Net& net, const std::string& flag, const std::vector<std::string>& blobs);

}  // namespace trainer
