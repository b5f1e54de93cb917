#pragma once
// A job that is checked in the test's process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/current_folder.h"
#include "support/digits_job.h"
#include "support/test_device.h"
#include "trainer/monitor/observer.h"
#include "trainer/run/preflight/preflight.h"
#include "trainer/solver/solver.h"

namespace trainer {

// The result of a check.
struct CheckOutcome {
  int exit_code = 0;
  std::string out;

  // Returns the lines that begin with `start`, without it.
  std::vector<std::string> Lines(const std::string& start) const {
    std::vector<std::string> lines;
    std::istringstream text(out);
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with(start)) lines.push_back(line.substr(start.size()));
    }
    return lines;
  }
  std::vector<std::string> Errors() const { return Lines("error: "); }
  std::vector<std::string> Warnings() const { return Lines("warning: "); }
};

// A test of the run is one pass over its data.
class PreflightJob : public DigitsJob {
 public:
  explicit PreflightJob(const std::string& backend = "LMDB") : DigitsJob(backend) {
    solver = Edited(solver, "test_iter: 3", "test_iter: 0");
    request.solver.file = "solver.prototxt";
  }

  CheckOutcome Check() const {
    Write();
    return CheckRequest(request);
  }
  CheckOutcome Check(const NetRequest& net_request) const {
    Write();
    return CheckRequest(net_request);
  }
  // Expects a single error, and that nothing was written.
  void ExpectOne(int code, const std::string& part) const {
    const CheckOutcome outcome = Check();
    EXPECT_EQ(outcome.exit_code, code) << outcome.out;
    EXPECT_THAT(outcome.Errors(), testing::ElementsAre(testing::HasSubstr(part))) << outcome.out;
    EXPECT_THAT(outcome.out, testing::HasSubstr("\ncheck: 1 error, "));
    EXPECT_THAT(Files("."), testing::IsEmpty());
    EXPECT_THAT(Files("snap"), testing::IsEmpty());
  }
  // Trains to the end and leaves snapshots.
  void Train() const {
    Write();
    const CurrentFolder here(folder().path());
    const SolverSpec spec = LoadSolver("solver.prototxt");
    const std::unique_ptr<Device> device = MakeTestDevice(1);
    ObserverList observers;
    Solver(spec, {}, *device, observers).Solve();
  }
  // Returns every file in the folder with its size.
  std::map<std::string, uintmax_t> Everything() const {
    std::map<std::string, uintmax_t> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder().path())) {
      if (entry.is_regular_file()) files[entry.path().string()] = entry.file_size();
    }
    return files;
  }

  TrainRequest request;

 private:
  template <class Request>
  CheckOutcome CheckRequest(const Request& checked) const {
    const CurrentFolder here(folder().path());
    const PreflightReport report = Preflight(checked);
    return {report.diagnostics.ExitCode(), ToText(report)};
  }
};

}  // namespace trainer
