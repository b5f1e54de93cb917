#pragma once
// A line at the bottom of a terminal that is redrawn as it changes, and lines above it.

#include <functional>
#include <memory>
#include <string>

#include "trainer/base/log/terminal.h"

namespace trainer {

// Where the line is drawn.
struct TerminalSettings {
  int fd = 2;
  bool redraws = true;         // can erase a line; otherwise only lines above it are written
  bool escapes = true;         // knows ANSI's sequences
  bool colors = true;          // warnings are yellow and errors red
  bool log_lines = false;      // shows every line of the log above the line, not only warnings
  std::string log_path;        // file that gets the whole log, or ""
  std::function<int()> width;  // columns, asked at each redraw; null: the terminal's own
};

// Returns the settings for the terminal at `fd` from TERM, UsesColor and ShowsLogLines.
TerminalSettings TerminalOf(int fd);

// While an object exists, it alone shows lines of the log on the terminal: warnings and errors, or
// all lines with `log_lines`. A separate thread draws, so that a stopped or slow terminal delays no
// other thread. The destructor draws the pending lines and erases the status line. Only one object
// may exist at a time.
class StatusLine {
 public:
  // `text` returns the line in at most `columns` columns, or "" for no line. The drawing thread
  // calls it several times a second.
  using Text = std::function<std::string(int columns)>;
  StatusLine(const TerminalSettings& settings, Text text);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Prints a line above the status line. Returns without waiting for the terminal, so if that
  // accepts nothing, lines after the 10,000th pending one are dropped. Any thread may call it.
  void Say(const std::string& text, Color color = Color::kPlain);
  // Returns whether an object exists in this process.
  static bool IsShown();

 private:
  class Drawing;
  std::unique_ptr<Drawing> drawing_;
};

}  // namespace trainer
