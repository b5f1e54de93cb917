#pragma once
// The built program as a child process: starting, reading, signalling, waiting.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace trainer {

constexpr int kNobody = 65534;  // the user and group "nobody"

// The result of a run.
struct Outcome {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  std::string out, err;

  // Returns the lines of err without their newlines.
  std::vector<std::string> ErrLines() const;
  // Returns the lines of err that begin with "error: ", without this prefix.
  std::vector<std::string> Errors() const;
};

struct RunOptions {
  std::string folder = ".";                              // the working folder
  std::vector<std::string> env = {"OMP_NUM_THREADS=1"};  // "NAME=value", added to ours
  size_t memory_limit = 0;                               // bytes of address space; 0: none
  bool as_nobody = false;                                // give up root's rights first
  std::string stdout_path = "";                          // file for stdout instead of `out`
  std::string stderr_path = "";                          // file for stderr instead of `err`
  size_t file_limit = 0;                                 // most bytes of a file; 0: no limit
  std::vector<std::string> launcher = {};                // a command that starts it: mpirun -np 2
  bool emulated_gpu = false;  // trainer_emulated; TRAINER_EMULATED_GPU in env describes its GPUs
  // The run advances only as its log is read: it can write one page ahead. So a run in which a test
  // changes something does not end before the test gets a core.
  bool in_step = false;
};

// Starts a run. The destructor kills a run that has not ended.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& arguments,
                          const RunOptions& options = {});
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  // Reads stderr until a line contains `text`, and returns the line. If the output ends first, or
  // nothing arrives for minutes, the test fails and the result is "".
  std::string WaitForLine(const std::string& text);
  // Does the same as WaitForLine, but the output may end first without a failure.
  std::string FindLine(const std::string& text);
  void Signal(int signal) const;
  // Closes stderr: the program's writes to it fail from now on.
  void CloseStderr();
  pid_t pid() const { return pid_; }
  // Reads to the end of both outputs and returns how the run ended.
  Outcome Wait();

 private:
  bool ReadSome();

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  Outcome outcome_;
  size_t seen_ = 0;  // bytes of err that WaitForLine has passed
};

// Checks is_so() every few milliseconds. Returns false if it does not become true within minutes.
bool Await(const std::function<bool()>& is_so);

// Returns whether a process is gone or is a zombie: process 1 reaps orphans, but not in all
// containers.
bool HasEnded(pid_t process);

// Returns whether this build has the program with emulated GPUs.
bool HasEmulatedGpu();

// Returns the program's path.
std::string ProgramPath();

// Runs the program to its end.
Outcome RunProgram(const std::vector<std::string>& arguments, const RunOptions& options = {});

// Returns whether a part of `text` matches this regular expression.
bool Finds(const std::string& text, const std::string& pattern);

}  // namespace trainer
