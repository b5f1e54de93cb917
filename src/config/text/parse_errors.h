#pragma once
// Rewrites the complaints of the text parser as messages of this program.

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <optional>
#include <string>

#include "text/brace_scanner.h"
#include "trainer/base/error/error.h"
#include "trainer/config/text/prototxt.h"

namespace trainer {

// The first complaint of protobuf's parser. Line and column count from 0; line -1 means no place.
struct ParserComplaint {
  int line = -1;
  int column = 0;
  std::string text;
};

struct Explanation {
  Error error;
  // The field to remove so that the parser finds further errors; empty if later complaints would
  // only follow from this one.
  std::optional<TextPlace> field;
};

// Explains a complaint. The error contains its place, what is wrong, what to write instead, and the
// line with a caret. `root` is the type of the file's message; `parsed` has its text and the places
// of all fields that were read.
Explanation ExplainComplaint(const ParserComplaint& complaint,
                             const google::protobuf::Descriptor& root, const ParsedText& parsed);

// Explains a complaint about the value of one field, as in --set: "it needs a number".
std::string ExplainValue(const google::protobuf::FieldDescriptor& field,
                         const std::string& complaint);

}  // namespace trainer
