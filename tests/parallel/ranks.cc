#include "ranks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "node/control_block.h"
#include "support/temp_folder.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/parallel/failure.h"

namespace trainer {
namespace {

// Handles errors as tools/main.cc does.
int Guarded(const std::function<int(World&)>& body, const World::Options& settings) {
  try {
    World& world = *JoinWorld(settings);
    const int code = body(world);
    world.Finish();
    return code;
  } catch (const PeerFailed& e) {
    return e.code();
  } catch (const Error& e) {
    int code = static_cast<int>(e.code());
    if (MayReportFailure(&code))
      std::fprintf(stderr, "error: %s%s\n", RankPrefix().c_str(), e.what());
    return code;
  }
}

int CodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

// Reaps all processes in the order in which they end. Kills the stopped ones when only they are
// left.
std::vector<int> WaitForAll(const std::vector<pid_t>& processes) {
  std::vector<int> codes(processes.size(), -1);
  for (size_t left = processes.size(), stopped = 0; left > 0;) {
    int status = 0;
    const pid_t process = waitpid(-1, &status, WUNTRACED);
    for (size_t i = 0; i < processes.size(); ++i) {
      if (processes[i] != process) continue;
      if (WIFSTOPPED(status)) {
        ++stopped;
      } else {
        codes[i] = CodeOf(status);
        --left;
      }
    }
    if (left > 0 && left == stopped) {
      for (size_t i = 0; i < processes.size(); ++i) {
        if (codes[i] < 0) kill(processes[i], SIGKILL);
      }
    }
  }
  return codes;
}

}  // namespace

std::vector<std::string> RanksOutcome::Errors() const {
  std::vector<std::string> errors;
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("error: ")) errors.push_back(line.substr(7));
  }
  return errors;
}

RanksOutcome RunRanks(int count, const std::function<int(World&)>& body,
                      const World::Options& settings, const std::function<void(int rank)>& before) {
  const TempFolder folder;
  const std::string log = folder / "err";
  const ControlBlock block(SharedSegment(ControlBlock::Bytes(count)), count);
  std::vector<pid_t> processes;
  std::fflush(nullptr);
  for (int rank = 0; rank < count; ++rank) {
    const pid_t process = fork();
    if (process == 0) {
      const int err = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
      dup2(err, STDERR_FILENO);
      setenv("TRAINER_WORLD", Join(rank, ":", count, ":", block.fd()).c_str(), 1);
      block.status(rank).process = getpid();
      block.status(rank).rank = rank;
      if (before) before(rank);
      const int code = LeaveWorld(Guarded(body, settings));
      std::fflush(nullptr);
      _exit(code);
    }
    processes.push_back(process);
  }
  RanksOutcome outcome;
  outcome.codes = WaitForAll(processes);
  outcome.err = ReadFile(log, 1 << 20);
  return outcome;
}

void ExpectRanks(int count, const std::function<void(World&)>& body) {
  const RanksOutcome outcome = RunRanks(count, [&](World& world) {
    body(world);
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(outcome.codes, std::vector<int>(static_cast<size_t>(count), 0)) << outcome.err;
  EXPECT_EQ(outcome.err, "");
}

}  // namespace trainer
