#pragma once
// The built program as a child process: started, read, signalled, awaited.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace trainer {

constexpr int kNobody = 65534;  // the user and the group of that name

// How a run ended.
struct Outcome {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  std::string out, err;

  // Lines of err without their newlines.
  std::vector<std::string> ErrLines() const;
  // The lines of err that begin with "error: ", without that.
  std::vector<std::string> Errors() const;
};

struct RunOptions {
  std::string folder = ".";                              // to start it in
  std::vector<std::string> env = {"OMP_NUM_THREADS=1"};  // "NAME=value", added to ours
  size_t memory_limit = 0;                               // bytes of address space; 0: none
  bool as_nobody = false;                                // give up root's rights first
  std::string stdout_path = "";                          // where stdout goes instead of `out`
  std::string stderr_path = "";                          // the same of stderr and `err`
  size_t file_limit = 0;                                 // most bytes of a file; 0: no limit
  std::vector<std::string> launcher = {};                // a command that starts it: mpirun -np 2
  bool emulated_gpu = false;  // trainer_emulated; TRAINER_EMULATED_GPU in env describes its GPUs
  // The run goes on as its log is read: of that a page is written ahead. Where a test changes
  // something in the midst of a run, this one is not over before the test gets a core.
  bool in_step = false;
};

// One run. The destructor kills what still runs.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& arguments,
                          const RunOptions& options = {});
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  // Reads stderr until a line contains `text`, which it returns. When the output ends first, or
  // minutes pass without any, the test fails and "" comes back.
  std::string WaitForLine(const std::string& text);
  // The same where the output may end first, which is no failure.
  std::string FindLine(const std::string& text);
  void Signal(int signal) const;
  // Reads no more of stderr: what is written to it fails from here on.
  void CloseStderr();
  pid_t pid() const { return pid_; }
  // Reads to the end of both outputs and returns how the run ended.
  Outcome Wait();

 private:
  bool ReadSome();

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  Outcome outcome_;
  size_t seen_ = 0;  // bytes of err that WaitForLine went past
};

// Looks every few milliseconds whether it is so; false when it is not within minutes.
bool Await(const std::function<bool()>& is_so);

// Whether a process is no more, or is only left to be asked how it ended: that of an orphan is up
// to the first process, and in some containers it asks nobody.
bool HasEnded(pid_t process);

// Whether this build has the program on an emulated GPU.
bool HasEmulatedGpu();

// The program's path.
std::string ProgramPath();

// Start to end.
Outcome RunProgram(const std::vector<std::string>& arguments, const RunOptions& options = {});

// Whether a part of `text` matches this regular expression.
bool Finds(const std::string& text, const std::string& pattern);

}  // namespace trainer
