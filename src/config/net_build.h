#pragma once
// From a parsed NetParameter to a NetSpec: layers with their places, old forms rewritten.

#include <google/protobuf/text_format.h>

#include <string>

#include "net.pb.h"
#include "trainer/config/net_spec.h"

namespace trainer {

// Moves what is in `proto` into a spec. `tree` holds the places of the message's fields and must
// outlive the spec; null for a net that no text file holds. The spec tells what was rewritten.
// Throws kConfig.
NetSpec BuildNet(caffe::NetParameter proto, const std::string& file,
                 const google::protobuf::TextFormat::ParseInfoTree* tree);

// Reads and upgrades a net file. The caller makes its changes and calls CheckStorage then, once, so
// that each remark is logged once. Throws as ParseText does.
NetSpec ReadNet(const std::string& path);

}  // namespace trainer
