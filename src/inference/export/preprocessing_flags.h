#pragma once

#include <functional>
#include <optional>
#include <string>

#include "net.pb.h"
#include "trainer/config/net_spec.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Returns a copy of the net whose image data layers do not crop, so that they output whole records.
// `net` must outlive the copy.
NetSpec WithoutCrops(const NetSpec& net);

// Returns the shape of one record of the data layer with the top blob `top`. Throws if the data is
// not there.
using RecordShape = std::function<Shape(const std::string& top)>;

// Returns the flags of ImageInputFlags that preprocess an image as the first data layer of the net
// in `state` does: "--resize=256,256 --mean_value=104,117,123 --scale=0.017". `record_shape` gives
// the size before the crop; if it throws, the flag is "--resize=H,W". Returns "" if pixels are used
// unchanged, and nullopt if the net reads no images.
std::optional<std::string> PreprocessingFlags(const NetSpec& net, const caffe::NetState& state,
                                              const RecordShape& record_shape);

}  // namespace trainer
