#pragma once
// The capabilities of the terminal at a file descriptor, and the user's choices for it.

#include <string>

namespace trainer {

enum class ColorChoice { kAuto, kAlways, kNever };
enum class Color { kPlain, kRed, kYellow, kGreen };

// Sets when UsesColor is true, for all of the process. Call it before other threads start.
void SetColorChoice(ColorChoice choice);
// Sets what ShowsLogLines returns. Call it before other threads start.
void SetShowsLogLines(bool shows);

// Returns whether text written to `fd` may have colours. With kAuto it may if `fd` is a terminal
// that knows ANSI's sequences (TERM is neither empty nor "dumb"), and the environment variable
// NO_COLOR is empty.
bool UsesColor(int fd);
// Returns whether the user asked for every line of the log, even while a progress line is shown.
bool ShowsLogLines();

// Returns `text` in this colour, or unchanged if UsesColor(fd) is false.
std::string Painted(Color color, const std::string& text, int fd);
// Returns `text` in this colour and always uses ANSI's sequences.
std::string Painted(Color color, const std::string& text);

// Returns the columns of the terminal at `fd`, 80 if it does not report them, and 0 if `fd` is not
// a terminal.
int TerminalColumns(int fd);

}  // namespace trainer
