#pragma once

#include <optional>
#include <string>

#include "net.pb.h"
#include "trainer/config/net_spec.h"

namespace trainer {

// Returns the flags of ImageInputFlags that preprocess an image as the first data layer of the net
// in `state` does: "--resize=256,256 --mean_value=104,117,123 --scale=0.017". If the layer crops,
// it reads some records for their size before the crop. Records that only share the length of their
// shorter side give --resize_short; if the data is not there or other sizes differ, the flag is
// "--resize=H,W". Returns "" if pixels are used unchanged, and nullopt if the net reads no images.
std::optional<std::string> PreprocessingFlags(const NetSpec& net, const caffe::NetState& state);

// Returns the set of a net's data layer that 'trainer dataset csv' made from a table; "" if there
// is none, or its files are not there.
std::string FindTableSet(const NetSpec& net, const caffe::NetState& state);

}  // namespace trainer
