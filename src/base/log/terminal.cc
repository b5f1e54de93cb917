#include "trainer/base/log/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "trainer/base/process/own_process.h"

namespace trainer {
namespace {

constexpr int kUsualColumns = 80;

ColorChoice g_color_choice = ColorChoice::kAuto;
bool g_shows_log_lines = false;

// Returns ANSI's sequence that begins a colour, "" for kPlain.
const char* SequenceOf(Color color) {
  switch (color) {
    case Color::kRed:
      return "\033[31m";
    case Color::kYellow:
      return "\033[33m";
    case Color::kGreen:
      return "\033[32m";
    case Color::kPlain:
      break;
  }
  return "";
}

}  // namespace

void SetColorChoice(ColorChoice choice) { g_color_choice = choice; }
void SetShowsLogLines(bool shows) { g_shows_log_lines = shows; }
bool ShowsLogLines() { return g_shows_log_lines; }

bool UsesColor(int fd) {
  if (g_color_choice != ColorChoice::kAuto) return g_color_choice == ColorChoice::kAlways;
  const std::string term = EnvironmentVariable("TERM");
  return isatty(fd) == 1 && !term.empty() && term != "dumb" &&
         EnvironmentVariable("NO_COLOR").empty();
}

std::string Painted(Color color, const std::string& text) {
  return color == Color::kPlain ? text : SequenceOf(color) + text + "\033[0m";
}

std::string Painted(Color color, const std::string& text, int fd) {
  return UsesColor(fd) ? Painted(color, text) : text;
}

int TerminalColumns(int fd) {
  if (isatty(fd) != 1) return 0;
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

}  // namespace trainer
