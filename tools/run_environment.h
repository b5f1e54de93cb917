#pragma once
// What environment.json in the folder of a run says.

#include <google/protobuf/struct.pb.h>

#include <string>

namespace trainer {

// Without fields where the file is missing or damaged.
google::protobuf::Struct EnvironmentOf(const std::string& folder);

// A text of it, or "".
std::string TextOf(const google::protobuf::Struct& environment, const std::string& name);

}  // namespace trainer
