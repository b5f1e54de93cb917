#pragma once
// A folder with a small data set, a net of one inner product, and a solver: what the tests of the
// program change and run.

#include <string>
#include <vector>

#include "program.h"
#include "support/temp_folder.h"

namespace trainer {

// Replaces the first `from`; the test fails when there is none.
std::string Edited(const std::string& text, const std::string& from, const std::string& to);

class Job {
 public:
  // Copies 100 digits to `folder`/data/train_lmdb (or _leveldb) and 40 to test_lmdb.
  explicit Job(const std::string& backend = "LMDB");

  // Files net.prototxt and solver.prototxt of the folder.
  std::string net, solver;
  std::vector<std::string> environment;  // "NAME=value", of what is started
  void Write() const;

  // `trainer train --solver=solver.prototxt <more>` in the folder.
  std::vector<std::string> TrainCommand(const std::vector<std::string>& more = {}) const;
  Outcome Train(const std::vector<std::string>& more = {}) const;
  RunOptions options() const;
  // For runs that may write where permissions allow it, while root may everywhere: as nobody, to
  // whom the folder and all that is in it now is given. Exit code 126 where nobody may not start
  // it.
  RunOptions OptionsWithoutRoot() const;

  const TempFolder& folder() const { return folder_; }
  // Names that begin with `prefix`, sorted.
  std::vector<std::string> Files(const std::string& prefix) const;

 private:
  TempFolder folder_;
};

// The run of a job ended with `code`, one error line that begins with `start` and holds `part`, no
// sign of a crash and no temporary file.
void ExpectRefused(const Job& job, const Outcome& outcome, int code, const std::string& start,
                   const std::string& part = "");

// The text after the log prefix of every line from the first that contains `from`, with times and
// rates masked and without what other threads log and what the machine's load decides.
std::vector<std::string> LogFrom(const Outcome& outcome, const std::string& from);

}  // namespace trainer
