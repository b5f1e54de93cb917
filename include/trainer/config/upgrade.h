#pragma once
// Old forms of nets in files of weights. Text files are upgraded when they are loaded.

#include <string>

#include "net.pb.h"

namespace trainer {

// Rewrites `layers` (both old forms) and `input` of a net read from `file` as `layer`. A net
// without them is left as it is. Throws kConfig for a mixture of both forms or an unknown old type.
void UpgradeNet(caffe::NetParameter* net, const std::string& file);

}  // namespace trainer
