#pragma once
// What the terminal at a file descriptor can show, and what the user wants to see on it.

#include <string>

namespace trainer {

enum class ColorChoice { kAuto, kAlways, kNever };
enum class Color { kPlain, kRed, kYellow, kGreen };

// Sets what UsesColor and ShowsLogLines return from then on. Call them before other threads start.
void SetColorChoice(ColorChoice choice);
void SetShowsLogLines(bool shows);

// Whether text written to `fd` may have colours. With kAuto: `fd` is a terminal that knows ANSI's
// sequences (TERM is neither empty nor "dumb"), and the environment variable NO_COLOR is empty.
bool UsesColor(int fd);
// Whether the user asked for every line of the log, also where a line of progress is drawn.
bool ShowsLogLines();

// `text` in this colour, or as it is where UsesColor(fd) is false.
std::string Painted(Color color, const std::string& text, int fd);
// The same with ANSI's sequences in any case.
std::string Painted(Color color, const std::string& text);

// The columns of the terminal at `fd`, 80 where it does not tell them; 0 where `fd` is no terminal.
int TerminalColumns(int fd);

}  // namespace trainer
