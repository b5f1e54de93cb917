#pragma once
// A folder with a small data set, a net of one inner product, and its solver.

#include <string>
#include <vector>

#include "support/edited.h"
#include "support/temp_folder.h"

namespace trainer {

class DigitsJob {
 public:
  // Copies 100 digits to `folder`/data/train_lmdb (or _leveldb) and 40 to test_lmdb.
  explicit DigitsJob(const std::string& backend = "LMDB");

  // The texts of net.prototxt and solver.prototxt. Write writes the files.
  std::string net, solver;
  void Write() const;

  const TempFolder& folder() const { return folder_; }
  // Returns the names of files that begin with `prefix`, sorted.
  std::vector<std::string> Files(const std::string& prefix) const;

 private:
  TempFolder folder_;
};

// Gives the job every mistake that a lint finds.
void AddSlips(DigitsJob& job);

}  // namespace trainer
