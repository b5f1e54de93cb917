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

  std::vector<std::string> environment;  // "NAME=value", of what is started

  // Writes the files and runs `trainer train --solver=solver.prototxt <more>` in the folder: Train
  // in the test's process, as RunHere; TrainAsProcess in a process of its own, as RunProgram.
  Outcome Train(const std::vector<std::string>& more = {}) const;
  Outcome TrainAsProcess(const std::vector<std::string>& more = {}) const;
  std::vector<std::string> TrainCommand(const std::vector<std::string>& more = {}) const;
  RunOptions options() const;
  // For runs that may write where permissions allow it, while root may everywhere: as nobody, to
  // whom the folder and all that is in it now is given. Exit code 126 where nobody may not start
  // it.
  RunOptions OptionsWithoutRoot() const;
};

// The run of a job ended with `code`, one error line that begins with `start` and holds `part`, no
// sign of a crash and no temporary file.
void ExpectRefused(const Job& job, const Outcome& outcome, int code, const std::string& start,
                   const std::string& part = "");

// The text after the log prefix of every line from the first that contains `from`, with times and
// rates masked and without what other threads log and what the machine's load decides.
std::vector<std::string> LogFrom(const Outcome& outcome, const std::string& from);

}  // namespace trainer
