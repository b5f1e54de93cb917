#include "trainer/base/log/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <optional>

#include "support/scoped.h"
#include "trainer/base/log/status_line.h"

namespace trainer {
namespace {

// A terminal with `columns` columns.
class PseudoTerminal {
 public:
  explicit PseudoTerminal(unsigned short columns) {
    const winsize size = {24, columns, 0, 0};
    EXPECT_EQ(openpty(&owner_, &fd_, nullptr, nullptr, &size), 0);
  }
  ~PseudoTerminal() {
    close(fd_);
    close(owner_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;
  int fd() const { return fd_; }

 private:
  int owner_ = -1, fd_ = -1;
};

TEST(TerminalTest, ColoursFollowTheEnvironmentAndTheChoice) {
  const PseudoTerminal terminal(100);
  const ScopedEnvironment term("TERM", "xterm"), no_color("NO_COLOR", std::nullopt);
  EXPECT_TRUE(UsesColor(terminal.fd()));
  EXPECT_EQ(Painted(Color::kGreen, "best", terminal.fd()), "\033[32mbest\033[0m");
  no_color.Set("1");
  EXPECT_FALSE(UsesColor(terminal.fd()));
  EXPECT_TRUE(TerminalOf(terminal.fd()).redraws);
  SetColorChoice(ColorChoice::kAlways);
  EXPECT_TRUE(UsesColor(terminal.fd()));
  SetColorChoice(ColorChoice::kNever);
  no_color.Set(std::nullopt);
  EXPECT_EQ(Painted(Color::kRed, "error:", terminal.fd()), "error:");
  SetColorChoice(ColorChoice::kAuto);
  term.Set("dumb");
  EXPECT_FALSE(UsesColor(terminal.fd()));
  EXPECT_FALSE(TerminalOf(terminal.fd()).redraws);
  EXPECT_FALSE(TerminalOf(terminal.fd()).escapes);
}

TEST(TerminalTest, TellsItsColumns) {
  const PseudoTerminal wide(132), silent(0);
  EXPECT_EQ(TerminalColumns(wide.fd()), 132);
  EXPECT_EQ(TerminalColumns(silent.fd()), 80);
  EXPECT_EQ(TerminalColumns(-1), 0);
}

}  // namespace
}  // namespace trainer
