#pragma once
// NaN and infinity, which the text parser takes for numbers and no field has a use for.

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>

namespace trainer {

// Throws kConfig at the line of the first float of `message` (fields in the order of the schema,
// those of inner messages too) that is not finite. `tree` is where its fields were written in
// `file`.
void RequireFinite(const google::protobuf::Message& message,
                   const google::protobuf::TextFormat::ParseInfoTree* tree,
                   const std::string& file);

// What is wrong with the first float that is not finite, or "".
std::string NotFinite(const google::protobuf::Message& message);

}  // namespace trainer
