#pragma once
// One line at the bottom of a terminal that is drawn again as it changes, and lines above it.

#include <functional>
#include <memory>
#include <string>

#include "trainer/base/log/terminal.h"

namespace trainer {

// Where the line is drawn.
struct TerminalSettings {
  int fd = 2;
  bool redraws = true;         // it can take a line back; else there is none, only lines above it
  bool escapes = true;         // and knows ANSI's sequences
  bool colors = true;          // warnings are yellow and errors red
  bool log_lines = false;      // every line of the log stands above the line, not warnings alone
  std::string log_path;        // where the whole log goes, or ""
  std::function<int()> width;  // columns, asked at each redraw; null: the terminal's own
};

// What TERM, UsesColor and ShowsLogLines say of the terminal at `fd`.
TerminalSettings TerminalOf(int fd);

// While it lives, warnings and errors of the log are shown by it, and no other lines. A thread of
// its own draws, so that a terminal which is stopped or slow holds up nothing. The destructor draws
// the lines that wait and takes the line off. Only one may live at a time.
class StatusLine {
 public:
  // `text` returns the line in at most so many columns, or "" for none. The drawing thread calls it
  // several times a second.
  using Text = std::function<std::string(int columns)>;
  StatusLine(const TerminalSettings& settings, Text text);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // A line above it.
  void Say(const std::string& text, Color color = Color::kPlain);
  // Whether one lives in this process.
  static bool IsShown();

 private:
  class Drawing;
  std::unique_ptr<Drawing> drawing_;
};

}  // namespace trainer
