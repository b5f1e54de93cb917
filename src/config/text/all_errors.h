#pragma once
// Finds all errors of a text file, not only the first one.

#include <google/protobuf/message.h>

#include <optional>
#include <string>

#include "text/parse_errors.h"
#include "trainer/config/text/prototxt.h"

namespace trainer {

// Parses parsed->content into `message` and fills parsed->tree. Returns the parser's first
// complaint, if there is one.
std::optional<ParserComplaint> Parse(ParsedText* parsed, google::protobuf::Message* message);

// Throws the errors of a text that the parser refused with `complaint`. A single error quotes its
// line. Several come as an ErrorGroup: for a net, first the layers whose types do not exist, then
// fields in the order of the file. `message` keeps the fields that could be read.
[[noreturn]] void ThrowProblems(std::unique_ptr<ParsedText> parsed, ParserComplaint complaint,
                                google::protobuf::Message* message);

}  // namespace trainer
