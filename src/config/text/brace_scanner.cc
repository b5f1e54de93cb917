#include "text/brace_scanner.h"

#include <algorithm>
#include <cctype>
#include <span>

namespace trainer {
namespace {

constexpr int kTab = 8;

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-' ||
         c == '+' || static_cast<unsigned char>(c) >= 0x80;
}

// Splits text into words, strings and single marks, and knows where each begins.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  // Reads the next token. Returns false at the end of the text.
  bool Next() {
    SkipBlanks();
    if (at_ >= text_.size()) return false;
    place_ = here_;
    const size_t begin = at_;
    if (IsWord(text_[at_])) {
      while (at_ < text_.size() && IsWord(text_[at_])) Step();
    } else if (text_[at_] == '"' || text_[at_] == '\'') {
      SkipString();
    } else {
      Step();
    }
    token_ = text_.substr(begin, at_ - begin);
    return true;
  }

  std::string_view token() const { return token_; }
  // Returns the offset at which the token begins.
  size_t begin() const { return at_ - token_.size(); }
  TextPlace place() const { return place_; }
  // Returns the place after the token.
  TextPlace here() const { return here_; }

 private:
  // Advances by one byte and keeps the line and the column.
  void Step() {
    const char c = text_[at_++];
    if (c == '\n') {
      here_ = {here_.line + 1, 1};
    } else if (c == '\t') {
      here_.column += kTab - (here_.column - 1) % kTab;
    } else {
      ++here_.column;
    }
  }

  // Skips blanks, line ends and comments.
  void SkipBlanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') Step();
      } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        Step();
      } else {
        return;
      }
    }
  }

  // Skips a string, which ends at its quote or at the end of the line. A backslash escapes the
  // quote.
  void SkipString() {
    const char quote = text_[at_];
    Step();
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) Step();
      Step();
    }
    if (at_ < text_.size() && text_[at_] == quote) Step();
  }

  std::string_view text_;
  size_t at_ = 0;
  TextPlace here_{1, 1}, place_{1, 1};
  std::string_view token_;
};

// Keeps the stack of open messages while it takes the tokens of a file in order.
class Scanner {
 public:
  Scanner() {
    context_.open.emplace_back();
    state_.emplace_back();
  }

  // Updates the stack for the next token.
  void Take(std::string_view token, TextPlace place) {
    if (token == "{" || token == "<") {
      Open();
    } else if (token == "}" || token == ">") {
      Close();
    } else if (token == ":") {
      state_.back().value = true;
    } else if (token == "[") {
      state_.back().list = state_.back().value;
    } else if (token == "]") {
      state_.back() = {};
    } else if (IsWord(token.front())) {
      Word(token, place);
    } else if (token.front() == '"' || token.front() == '\'') {
      state_.back().value = false;
      context_.last_word = place;
    }
  }

  TextContext context_;

 private:
  struct State {
    bool value = false;  // after a colon
    bool list = false;   // between [ and ]
  };

  // Pushes a message, which has the name of the last field.
  void Open() {
    OpenMessage inner;
    inner.name = context_.open.back().field;
    inner.opened = context_.open.back().field_place;
    state_.back().value = false;
    context_.open.push_back(std::move(inner));
    state_.emplace_back();
  }

  // Pops the innermost message. An extra brace at the end of the file changes nothing.
  void Close() {
    if (context_.open.size() == 1) return;
    context_.open.pop_back();
    state_.pop_back();
  }

  // Takes a word: the value after a colon, an element of a list, or else the name of the next
  // field.
  void Word(std::string_view word, TextPlace place) {
    context_.last_word = place;
    State& state = state_.back();
    if (state.list) return;
    if (state.value) {
      state.value = false;
      return;
    }
    OpenMessage& in = context_.open.back();
    in.field = word;
    in.field_place = place;
    in.first.emplace(word, place);
  }

  std::vector<State> state_;
};

}  // namespace

TextContext ScanText(std::string_view text, TextPlace stop) {
  Tokens tokens(text);
  Scanner scanner;
  while (tokens.Next() && tokens.place() < stop) scanner.Take(tokens.token(), tokens.place());
  return std::move(scanner.context_);
}

bool BlankField(std::string* text, TextPlace place) {
  Tokens tokens(*text);
  bool more = tokens.Next();
  while (more && tokens.place() < place) more = tokens.Next();
  if (!more || place < tokens.place()) return false;
  const size_t begin = tokens.begin();
  size_t end = begin + tokens.token().size();
  int open = 0;       // brackets of any kind
  bool done = false;  // the value is complete, unless a further piece of text follows
  while (tokens.Next()) {
    const std::string_view token = tokens.token();
    const bool is_text = token.front() == '"' || token.front() == '\'';
    if (done && !is_text) break;
    if (token == "{" || token == "<" || token == "[") ++open;
    if (token == "}" || token == ">" || token == "]") --open;
    if (open < 0) break;  // this bracket closes the enclosing message, so the field had no value
    end = tokens.begin() + token.size();
    if (open > 0 || token == ":" || token == "-") continue;
    if (!is_text && (token != "}" && token != ">" && token != "]") && !IsWord(token.front())) break;
    done = true;
    if (!is_text) break;
  }
  for (char& c : std::span(*text).subspan(begin, end - begin)) {
    if (c != '\n' && c != '\t') c = ' ';
  }
  return true;
}

std::string_view LineOf(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

std::string QuoteLine(std::string_view line, int column) {
  constexpr size_t kBefore = 60, kWidth = 100;
  std::string flat;
  for (const char c : line.substr(0, 1 << 16)) {
    if (c == '\t') {
      flat.append(kTab - flat.size() % kTab, ' ');
    } else {
      flat += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  size_t caret = static_cast<size_t>(std::max(column, 1)) - 1;
  size_t begin = std::min(flat.find_first_not_of(' '), caret);
  if (caret - begin > kBefore) begin = caret - kBefore;
  // Not inside a character of several bytes.
  while (begin > 0 && begin < flat.size() && (flat[begin] & 0xC0) == 0x80) --begin;
  caret -= begin;
  flat = flat.size() > begin ? flat.substr(begin, kWidth) : "";
  while (!flat.empty() && (flat.back() & 0x80) != 0) flat.pop_back();
  while (!flat.empty() && flat.back() == ' ') flat.pop_back();
  return "  " + flat + "\n  " + std::string(caret, ' ') + "^";
}

TextPlace EndOf(std::string_view text) {
  TextPlace end{1, 1};
  for (Tokens tokens(text); tokens.Next();) end = tokens.here();
  return end;
}

}  // namespace trainer
