#include "trainer/parallel/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <system_error>
#include <vector>

#include "join/cpu_sets.h"
#include "join/rank_address.h"
#include "node/control_block.h"
#include "trainer/base/error/error.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

constexpr std::array kHandedOn = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
// The time that ranks have to end by themselves after a failure, before they are killed.
constexpr int64_t kPatience = 7'000'000'000;  // nanoseconds

// Returns the signals for which the launcher waits: the forwarded ones, the end of a child
// (SIGCHLD) and the terminal's stop key (SIGTSTP).
sigset_t AwaitedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kHandedOn) sigaddset(&set, signal);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTSTP);
  return set;
}

// The parent process of the ranks. It forwards signals, records how each rank ends and reports
// ranks that ended without a message.
class Launcher {
 public:
  explicit Launcher(int ranks)
      : block_(SharedSegment(ControlBlock::Bytes(ranks)), ranks),
        processes_(static_cast<size_t>(ranks)) {}
  // Kills and reaps the ranks that StartRanks started before it failed, and unblocks the signals.
  ~Launcher() {
    SendAll(SIGKILL);
    for (const pid_t process : processes_) {
      if (process != 0) waitpid(process, nullptr, 0);
    }
    CloseGate();
    if (blocks_signals_) sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Starts the ranks and returns the exit code of the run when all have ended.
  int Run() {
    const sigset_t signals = AwaitedSignals();
    blocks_signals_ = sigprocmask(SIG_BLOCK, &signals, &before_) == 0;
    StartRanks();
    while (living_ > 0) WaitForEvent(signals);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    blocks_signals_ = false;
    return Outcome();
  }

 private:
  // Forks all ranks, each bound to its own cores. Ranks read each other's status in the control
  // block, so they wait at `gate_` until all are entered in it.
  void StartRanks() {
    const std::vector<std::string> command = CommandLine();
    const int ranks = block_.local_size();
    const std::vector<CoreSet> cores = SplitCores(OwnCores(), ranks);
    if (pipe2(gate_, O_CLOEXEC) != 0) {
      throw Error(ErrorCode::kResource,
                  Join("cannot start ranks: ", std::generic_category().message(errno)));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const pid_t process = fork();
      if (process == 0) BecomeRank(command, rank, cores);
      if (process < 0) {
        const std::string why = std::generic_category().message(errno);
        throw Error(ErrorCode::kResource, Join("cannot start rank ", rank, ": ", why));
      }
      block_.status(rank).process = process;
      block_.status(rank).rank = rank;
      processes_[static_cast<size_t>(rank)] = process;
      ++living_;
    }
    CloseGate();
  }

  void CloseGate() {
    for (int& fd : gate_) {
      if (fd >= 0) close(fd);
      fd = -1;
    }
  }

  // Called in the child: waits until all processes have closed the write end of the pipe.
  void AwaitStart() const {
    close(gate_[1]);
    char nothing;
    while (read(gate_[0], &nothing, 1) < 0 && errno == EINTR) {
    }
  }

  // Called in the child: becomes a rank. It leaves the launcher's process group, because it would
  // otherwise get the terminal's signals twice: directly and from the launcher.
  [[noreturn]] void BecomeRank(const std::vector<std::string>& command, int rank,
                               const std::vector<CoreSet>& cores) const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // a killed launcher must not leave orphans
    if (getppid() != launcher_) _exit(static_cast<int>(ErrorCode::kPeerLost));
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    if (!cores.empty()) RunOn(cores[static_cast<size_t>(rank)]);
    AwaitStart();
    fcntl(block_.fd(), F_SETFD, 0);
    setenv("TRAINER_WORLD", Join(rank, ":", block_.local_size(), ":", block_.fd()).c_str(), 1);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv("/proc/self/exe", words.data());
    std::fprintf(stderr, "error: cannot start rank %d: %s\n", rank, std::strerror(errno));
    _exit(static_cast<int>(ErrorCode::kResource));
  }

  // Handles one signal, or looks for ended ranks after 0.2 s without one. SIGTSTP stops all ranks
  // and then the launcher; other signals are forwarded. Kills the ranks that are still alive 7 s
  // after the first failure.
  void WaitForEvent(const sigset_t& signals) {
    const timespec time = {0, 200'000'000};
    const int signal = sigtimedwait(&signals, nullptr, &time);
    if (signal == SIGCHLD || signal < 0) {
      Reap();
    } else if (signal == SIGTSTP) {
      SendAll(SIGSTOP);
      raise(SIGSTOP);
      SendAll(SIGCONT);
    } else {
      handed_on_ = signal;
      SendAll(signal);
    }
    if (block_.failure().code == 0) return;
    if (failed_since_ == 0) failed_since_ = MonotonicNs();
    if (MonotonicNs() - failed_since_ > kPatience) SendAll(SIGKILL);
  }

  // Removes ended children. Reports how a rank ended before waitpid removes the zombie: after that
  // the other ranks find the process gone and would report less.
  void Reap() {
    for (int rank = 0; rank < block_.local_size(); ++rank) {
      pid_t& process = processes_[static_cast<size_t>(rank)];
      siginfo_t end = {};
      if (process == 0 ||
          waitid(P_PID, static_cast<id_t>(process), &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          end.si_pid != process) {
        continue;
      }
      RecordEnd(rank, end.si_code == CLD_EXITED ? W_EXITCODE(end.si_status, 0)
                                                : W_EXITCODE(0, end.si_status));
      waitpid(process, nullptr, 0);
      process = 0;
      --living_;
    }
  }

  // Records how a rank ended. It is a failure of the run, unless the rank had finished or another
  // rank has failed before. An error is printed only for a rank that could not report its own; an
  // asynchronous rank that was killed gives a warning, and the others continue.
  void RecordEnd(int rank, int wait_status) {
    const RankStatus& status = block_.status(rank);
    const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    if (WIFEXITED(wait_status) && status.state == RankState::kFinished) {
      if (code_ == 0) code_ = code;
      return;
    }
    if (block_.failure().code != 0) return;  // a rank has already reported it
    // The rank was ended by the forwarded signal, or by an error that it has reported itself. That
    // is the failure of the run; the other ranks end with the same code.
    const bool by_signal = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == handed_on_;
    const bool told = code >= static_cast<int>(ErrorCode::kUsage) &&
                      code <= static_cast<int>(ErrorCode::kBadSnapshot);
    if (by_signal || told) {
      if (by_signal) ended_by_ = handed_on_;
      block_.ReportFailure({told ? code : 128 + handed_on_, rank});
      return;
    }
    const bool left_behind = WIFSIGNALED(wait_status) && status.is_async != 0;
    if (!left_behind && !block_.ReportFailure({static_cast<int>(ErrorCode::kPeerLost), rank}))
      return;
    const std::string how = WIFSIGNALED(wait_status)
                                ? Join("was killed by signal ", WTERMSIG(wait_status), " (",
                                       strsignal(WTERMSIG(wait_status)), ")")
                                : Join("exited with code ", code, " before the end of the run");
    std::fprintf(stderr, "%s: %s %s; its last iteration was %d. %s\n",
                 left_behind ? "warning" : "error",
                 RankName(rank, OwnAddress().host, status.process).c_str(), how.c_str(),
                 status.iterations.load(),
                 left_behind ? "The other ranks continue without it"
                             : "Resume from the newest snapshot (--resume=auto)");
  }

  // Sends a signal to all ranks that have not ended.
  void SendAll(int signal) const {
    for (const pid_t process : processes_) {
      if (process != 0) kill(process, signal);
    }
  }

  // Returns the exit code of the first failure, or of the finished ranks. Ends this process by the
  // forwarded signal if that ended the ranks.
  int Outcome() const {
    if (ended_by_ != 0) {
      ::signal(ended_by_, SIG_DFL);
      raise(ended_by_);
    }
    return block_.failure().code != 0 ? block_.failure().code : code_;
  }

  const pid_t launcher_ = getpid();
  ControlBlock block_;
  int gate_[2] = {-1, -1};        // a pipe; closed when all ranks are in the control block
  std::vector<pid_t> processes_;  // 0 for a rank that has ended
  bool blocks_signals_ = false;
  sigset_t before_ = {};  // the signals that were blocked before
  int living_ = 0;
  int code_ = 0;
  int handed_on_ = 0;  // the last signal that was forwarded
  int ended_by_ = 0;
  int64_t failed_since_ = 0;
};

}  // namespace

int LaunchRanks(int ranks) { return Launcher(ranks).Run(); }

}  // namespace trainer
