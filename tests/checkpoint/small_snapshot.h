#pragma once
// Provides a net and a state of a few bytes, filled so that every snapshot differs.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "net.pb.h"
#include "state.pb.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/config/blob.h"

namespace trainer {

// Returns the formats that a test runs in. NameOfFormat names them in test names.
inline auto BothFormats() {
  return testing::Values(SnapshotFormat::kBinary, SnapshotFormat::kHdf5);
}
inline std::string NameOfFormat(const testing::TestParamInfo<SnapshotFormat>& format) {
  return format.param == SnapshotFormat::kHdf5 ? "Hdf5" : "Binary";
}

// Returns a net of two layers; each weight is `value`, or value + its index in the first blob.
inline caffe::NetParameter SmallNet(float value, int weights = 6) {
  caffe::NetParameter net;
  net.set_name("tiny");
  auto* layer = net.add_layer();
  layer->set_name("ip");
  layer->set_type("InnerProduct");
  std::vector<float> numbers(static_cast<size_t>(weights));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = value + static_cast<float>(i);
  WriteBlob(std::vector<int64_t>{2, weights / 2}, numbers, layer->add_blobs());
  WriteBlob(std::vector<int64_t>{2}, std::vector<float>{value, value}, layer->add_blobs());
  net.add_layer()->set_name("relu");
  return net;
}

inline caffe::SolverState SmallState(float value) {
  caffe::SolverState state;
  state.set_current_step(3);
  WriteBlob(std::vector<int64_t>{2}, std::vector<float>{value, -value}, state.add_history());
  return state;
}

inline float FirstWeight(const caffe::NetParameter& net) { return net.layer(0).blobs(0).data(0); }

}  // namespace trainer
