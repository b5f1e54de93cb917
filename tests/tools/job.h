#pragma once
// Runs of the program on a DigitsJob.

#include <string>
#include <vector>

#include "program.h"
#include "support/digits_job.h"
#include "support/temp_folder.h"

namespace trainer {

class Job : public DigitsJob {
 public:
  using DigitsJob::DigitsJob;

  std::vector<std::string> environment;  // "NAME=value", for the started program

  // Writes the files and runs `trainer train --solver=solver.prototxt <more>` in the folder. Train
  // runs it in the test's process (RunHere), TrainAsProcess in a new one (RunProgram).
  Outcome Train(const std::vector<std::string>& more = {}) const;
  Outcome TrainAsProcess(const std::vector<std::string>& more = {}) const;
  std::vector<std::string> TrainCommand(const std::vector<std::string>& more = {}) const;
  RunOptions options() const;
  // Returns options for runs that must respect permissions, which root ignores: user nobody runs
  // them instead of root, and owns the folder and all files in it now. The exit code is 126 if
  // nobody may not start the program.
  RunOptions OptionsWithoutRoot() const;
};

// Expects that the run ended with `code`, without a crash or temporary files, and with one error
// line that begins with `start` and contains `part`.
void ExpectRefused(const Job& job, const Outcome& outcome, int code, const std::string& start,
                   const std::string& part = "");

// Returns the text after the log prefix of every line from the first that contains `from`. Times
// and rates are masked, and lines of other threads or about the machine's load are left out.
std::vector<std::string> LogFrom(const Outcome& outcome, const std::string& from);

}  // namespace trainer
