#pragma once
// Refuses NaN and infinity: the text parser accepts them as numbers, but no field can use them.

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>

namespace trainer {

// Throws kConfig at the line of the first float of `message` that is not finite. Fields are checked
// in the order of the schema, including the fields of inner messages. `tree` holds the places of
// its fields in `file`.
void RequireFinite(const google::protobuf::Message& message,
                   const google::protobuf::TextFormat::ParseInfoTree* tree,
                   const std::string& file);

// Returns a description of the first float that is not finite, or "".
std::string NotFinite(const google::protobuf::Message& message);

}  // namespace trainer
