#pragma once
// How images must be prepared for a deploy net: what transform_param did in training.

#include <functional>
#include <optional>
#include <string>

#include "net.pb.h"
#include "trainer/config/net_spec.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// Takes the crops from the net's image data, which then has the size of the records.
void ClearCrops(NetSpec* net);

// The shape of one record of a data layer with that top; throws where the data is not there.
using RecordShape = std::function<Shape(const std::string& top)>;

// Flags of `trainer classify` and `trainer features` that do to an image what the first data layer
// of that state does: "--resize=256,256 --mean_value=104,117,123 --scale=0.017". `record_shape` is
// asked how large images are before they are cropped; where it throws, the flag is "--resize=H,W".
// "" where images go in as they are, nothing for a net that reads no images.
std::optional<std::string> ImageFlags(const NetSpec& net, const caffe::NetState& state,
                                      const RecordShape& record_shape);

}  // namespace trainer
