#pragma once
// A light reading of a protobuf text file, for messages about errors: what is open at a place.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// A place in a text. Lines and columns count from 1; a tab goes to the next multiple of 8, as
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
  TextPlace opened;                        // where that field's name stands
  std::string field;                       // the last field name inside
  TextPlace field_place;                   // where it stands
  std::map<std::string, TextPlace> first;  // each field name inside, where it stands first
};

struct TextContext {
  std::vector<OpenMessage> open;  // outermost first; never empty
  TextPlace last_word;            // the last name or value
};

// What the tokens of `text` that begin before `stop` leave open. Never fails: text that makes no
// sense is skipped.
TextContext ScanText(std::string_view text, TextPlace stop);

// Line `line` of `text` without its end; empty past the last one.
std::string_view LineOf(std::string_view text, int line);

// `line` with its tabs as blanks, cut to a readable width around `column`, and a second line with a
// caret below that column.
std::string QuoteLine(std::string_view line, int column);

// Makes blanks of the field whose name stands at `place`, value and all; line ends stay, so that
// the places of other fields do too. Returns whether there was anything to take out.
bool BlankField(std::string* text, TextPlace place);

// The place of the end of the text: just after its last character that is not blank.
TextPlace EndOf(std::string_view text);

}  // namespace trainer
