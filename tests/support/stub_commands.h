#pragma once
// Commands of a batch system, as scripts that record their arguments.

#include <filesystem>
#include <string>
#include <vector>

#include "support/temp_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {

// Commands as scripts in the folder `bin` of `folder`.
class StubCommands {
 public:
  explicit StubCommands(const TempFolder& folder) : folder_(folder.path()) {
    std::filesystem::create_directory(folder_ + "/bin");
  }

  // Adds a command that records its arguments and then runs `lines`.
  void Add(const std::string& name, const std::string& lines) const {
    const std::string path = Join(folder_, "/bin/", name);
    WriteText(path,
              Join("#!/bin/sh\necho \"$@\" >> '", folder_, "/", name, ".asked'\n", lines, "\n"));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  // Returns the arguments of each call.
  std::vector<std::string> Asked(const std::string& name) const {
    const std::string path = Join(folder_, "/", name, ".asked");
    return std::filesystem::exists(path) ? SplitList(ReadText(path), '\n')
                                         : std::vector<std::string>();
  }
  // Returns the assignment of PATH for the environment of a process that calls the commands.
  std::string Path() const { return Join("PATH=", folder_, "/bin:/usr/bin:/bin"); }

 private:
  const std::string folder_;
};

// Returns the environment of a Slurm job without a time limit, whose processes are killed right
// after SIGTERM: a run in it tries its last snapshot only for a moment. Only --rescue_dir can then
// rescue it.
inline std::vector<std::string> HastySlurmJob(const TempFolder& folder) {
  const StubCommands commands(folder);
  commands.Add("scontrol", "echo 'KillWait                = 1 sec'");
  commands.Add("squeue", "echo UNLIMITED");
  return {commands.Path(), "SLURM_JOB_ID=7", "TMPDIR="};
}

}  // namespace trainer
