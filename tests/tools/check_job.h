#pragma once
// Helpers for the tests of `trainer check`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "in_process.h"
#include "job.h"

namespace trainer {

// Returns the lines of stdout that begin with `start`, without `start`.
inline std::vector<std::string> Lines(const Outcome& outcome, const std::string& start) {
  std::vector<std::string> lines;
  std::istringstream text(outcome.out);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(start)) lines.push_back(line.substr(start.size()));
  }
  return lines;
}

// A test of the run is one pass over its data.
struct CheckJob : Job {
  explicit CheckJob(const std::string& backend = "LMDB") : Job(backend) {
    solver = Edited(solver, "test_iter: 3", "test_iter: 0");
  }

  Outcome Check(std::vector<std::string> more = {}) const {
    Write();
    more.insert(more.begin(), {"check", "--solver=solver.prototxt"});
    return RunHere(more, options());
  }
  // Expects a single error, and that `train` ends with the same code.
  void ExpectOne(int code, const std::string& part,
                 const std::vector<std::string>& more = {}) const {
    const Outcome outcome = Check(more);
    EXPECT_EQ(outcome.exit_code, code) << outcome.out << outcome.err;
    EXPECT_THAT(Lines(outcome, "error: "), testing::ElementsAre(testing::HasSubstr(part)))
        << outcome.out;
    EXPECT_THAT(outcome.out, testing::HasSubstr("\ncheck: 1 error, "));
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(Files("."), testing::IsEmpty());
    EXPECT_THAT(Files("snap"), testing::IsEmpty());
    std::vector<std::string> train = {"train", "--solver=solver.prototxt"};
    train.insert(train.end(), more.begin(), more.end());
    EXPECT_EQ(RunHere(train, options()).exit_code, code) << "train";
  }
  // Returns every file below the folder with its size.
  std::map<std::string, uintmax_t> Everything() const {
    std::map<std::string, uintmax_t> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder().path())) {
      if (entry.is_regular_file()) files[entry.path().string()] = entry.file_size();
    }
    return files;
  }
};

}  // namespace trainer
