#pragma once
// A simple scan of a protobuf text file for error messages: it finds the messages that are open at
// a place.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// A place in a text. Lines and columns count from 1; a tab advances to the next multiple of 8, as
// protobuf counts.
struct TextPlace {
  int line = 0;
  int column = 0;
  bool operator<(const TextPlace& other) const {
    return line != other.line ? line < other.line : column < other.column;
  }
};

// One message that is open at the place.
struct OpenMessage {
  std::string name;                        // the field that opened it; empty for the file itself
  TextPlace opened;                        // place of that field's name
  std::string field;                       // the last field name inside
  TextPlace field_place;                   // its place
  std::map<std::string, TextPlace> first;  // first place of each field name inside
};

struct TextContext {
  std::vector<OpenMessage> open;  // outermost first; never empty
  TextPlace last_word;            // the last name or value
};

// Returns the messages that are open after the tokens of `text` that begin before `stop`. Never
// fails, because it skips text that has no meaning.
TextContext ScanText(std::string_view text, TextPlace stop);

// Returns line `line` of `text` without its end; empty if the text has fewer lines.
std::string_view LineOf(std::string_view text, int line);

// Returns `line` with its tabs as blanks, cut to a readable width around `column`, and a second
// line with a caret below that column.
std::string QuoteLine(std::string_view line, int column);

// Replaces the field whose name is at `place`, including its value, by blanks. Line ends stay, so
// that the places of other fields stay too. Returns whether it replaced anything.
bool BlankField(std::string* text, TextPlace place);

// Returns the end of the text, which is the place after its last character that is not blank.
TextPlace EndOf(std::string_view text);

}  // namespace trainer
