#pragma once
// Layer types and fields that only forks of Caffe have, for messages that say whose they are.

#include <string_view>

namespace trainer {

// The fork that a layer type, or a field of a net file, comes from, such as "SSD"; "" where none is
// known. What this program has need not be listed: its own types and fields are looked up first.
std::string_view ForkOfType(std::string_view type);
std::string_view ForkOfField(std::string_view field);

}  // namespace trainer
