#pragma once
// How images must be prepared for a deploy net: what transform_param did in training.

#include <functional>
#include <optional>
#include <string>

#include "net.pb.h"
#include "trainer/config/net_spec.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// The shape of one item that the net's data gives; throws where the data is not there.
using ItemShape = std::function<Shape(const NetSpec& net, const std::string& blob)>;

// Flags of `trainer classify` and `trainer features` that do to an image what the first data layer
// of that state does: "--resize=256,256 --mean_value=104,117,123 --scale=0.017". `shape_of` is
// asked how large records are before they are cropped. "" where images go in as they are, nothing
// for a net whose data has no transform_param.
std::optional<std::string> ImageFlags(const NetSpec& net, const caffe::NetState& state,
                                      const ItemShape& shape_of);

}  // namespace trainer
