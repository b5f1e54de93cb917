#include "job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "in_process.h"

namespace trainer {

RunOptions Job::options() const {
  RunOptions run = {.folder = folder().path()};
  run.env.insert(run.env.end(), environment.begin(), environment.end());
  return run;
}

RunOptions Job::OptionsWithoutRoot() const {
  RunOptions run = options();
  run.as_nobody = geteuid() == 0;
  if (!run.as_nobody) return run;
  const auto give = [](const std::string& path) {
    EXPECT_EQ(lchown(path.c_str(), kNobody, kNobody), 0) << path;
  };
  give(folder().path());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder().path())) {
    give(entry.path().string());
  }
  return run;
}

std::vector<std::string> Job::TrainCommand(const std::vector<std::string>& more) const {
  std::vector<std::string> command = {"train", "--solver=solver.prototxt"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

Outcome Job::Train(const std::vector<std::string>& more) const {
  Write();
  return RunHere(TrainCommand(more), options());
}

Outcome Job::TrainAsProcess(const std::vector<std::string>& more) const {
  Write();
  return RunProgram(TrainCommand(more), options());
}

void ExpectRefused(const Job& job, const Outcome& outcome, int code, const std::string& start,
                   const std::string& part) {
  EXPECT_EQ(outcome.exit_code, code) << outcome.err;
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_THAT(outcome.Errors(), testing::ElementsAre(testing::StartsWith(start)));
  EXPECT_THAT(outcome.Errors(), testing::ElementsAre(testing::HasSubstr(part)));
  EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("terminate called")));
  EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("stack trace")));
  EXPECT_THAT(job.Files("."), testing::IsEmpty());
  EXPECT_EQ(outcome.out, "");
}

std::vector<std::string> LogFrom(const Outcome& outcome, const std::string& from) {
  static const std::regex prefix(R"(^[IWEF]\d{4} \S+ +\d+ \S+\] )");
  static const std::regex rate(R"( \(\S+ iter/s, \S+s/\d+ iters\))");
  std::vector<std::string> lines;
  bool begun = false;
  for (const std::string& line : outcome.ErrLines()) {
    begun = begun || line.find(from) != std::string::npos;
    const bool from_reader = line.find("prefetch") != std::string::npos;
    const bool waiting = line.find("Waiting for data") != std::string::npos;
    const bool crowded = line.find("Other programs use") != std::string::npos;
    if (!begun || from_reader || waiting || crowded) continue;
    lines.push_back(std::regex_replace(std::regex_replace(line, prefix, ""), rate, ""));
  }
  return lines;
}

}  // namespace trainer
