#pragma once
// The text parser's complaints in the program's own words.

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <optional>
#include <string>

#include "text/brace_scanner.h"
#include "trainer/base/error/error.h"
#include "trainer/config/text/prototxt.h"

namespace trainer {

// The first complaint of protobuf's parser. Line and column count from 0; -1: no place.
struct ParserComplaint {
  int line = -1;
  int column = 0;
  std::string text;
};

struct Explanation {
  Error error;
  // The field to leave out so that what else is wrong shows; none where later complaints would only
  // follow from this one.
  std::optional<TextPlace> field;
};

// The error to throw for it: place, what is wrong, what to write instead, the line with a caret.
// `root` is what the file holds; `parsed` has its text and the places of all that was read.
Explanation ExplainComplaint(const ParserComplaint& complaint,
                             const google::protobuf::Descriptor& root, const ParsedText& parsed);

}  // namespace trainer
