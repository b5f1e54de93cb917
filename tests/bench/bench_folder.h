#pragma once
// Provides a folder for a benchmark, which holds gigabytes.

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace trainer {

// A temporary folder that is removed when the process ends, however it ends: a second process waits
// for the end of a pipe and then removes it.
class BenchFolder {
 public:
  BenchFolder() : path_(std::filesystem::temp_directory_path() / "trainer_bench_XXXXXX") {
    int ends[2];
    if (mkdtemp(path_.data()) == nullptr || pipe(ends) != 0) {
      throw std::runtime_error("cannot make a temporary folder");
    }
    pipe_ = ends[1];
    remover_ = fork();
    if (remover_ == 0) Remove(ends[0]);
    close(ends[0]);
    if (remover_ < 0) throw std::runtime_error("cannot start a process");
  }
  ~BenchFolder() {
    close(pipe_);
    waitpid(remover_, nullptr, 0);
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;

  const std::string& path() const { return path_; }

  // Returns the read-ahead of the folder's disk in KiB, or 0 if it is unknown.
  double ReadAheadKib() const {
    struct stat info;
    double kib = 0;
    if (stat(path_.c_str(), &info) != 0) return 0;
    const std::string device = "/sys/dev/block/" + std::to_string(major(info.st_dev)) + ":" +
                               std::to_string(minor(info.st_dev));
    for (const char* queue : {"/queue", "/../queue"}) {  // a partition uses its disk's queue
      if (std::ifstream(device + queue + "/read_ahead_kb") >> kib) return kib;
    }
    return 0;
  }

 private:
  // Runs in the second process. It ignores Ctrl-C and the terminal's end, and closes the files of
  // the first process, among them the pipes of other folders.
  [[noreturn]] void Remove(int end) const {
    setsid();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
    dup2(end, STDIN_FILENO);
    close_range(STDERR_FILENO + 1, ~0u, 0);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) continue;
    execlp("rm", "rm", "-rf", path_.c_str(), nullptr);
    _exit(1);
  }

  std::string path_;
  int pipe_ = -1;
  pid_t remover_ = -1;
};

}  // namespace trainer
