#pragma once
// Layer types and fields that only forks of Caffe have, so that messages can name the fork.

#include <string_view>

namespace trainer {

// Returns the fork of Caffe that defines a layer type, such as "SSD", or "" if none is known. This
// program's own types need not be listed, because they are looked up first.
std::string_view ForkOfType(std::string_view type);
// Returns the fork of Caffe that defines a field of a net file, or "" if none is known. This
// program's own fields need not be listed, because they are looked up first.
std::string_view ForkOfField(std::string_view field);

}  // namespace trainer
