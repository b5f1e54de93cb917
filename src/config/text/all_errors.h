#pragma once
// Finds all errors of a text file, not only the first one.

#include <google/protobuf/message.h>

#include <optional>
#include <string>

#include "text/parse_errors.h"
#include "trainer/config/text/prototxt.h"

namespace trainer {

// Parses parsed->content into `message`; the parser's first complaint, if there is one.
std::optional<ParserComplaint> Parse(ParsedText* parsed, google::protobuf::Message* message);

// Throws what is wrong with a text that the parser refused with `complaint`. A single error quotes
// its line. Several come as an ErrorGroup: for a net, the layers whose types are not there, then
// fields in the order of the file. Leaves `message` with what could be read.
[[noreturn]] void ThrowProblems(std::unique_ptr<ParsedText> parsed, ParserComplaint complaint,
                                google::protobuf::Message* message);

}  // namespace trainer
