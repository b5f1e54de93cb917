#include "trainer/base/log/log.h"

#include <glog/logging.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>

#include "trainer/base/error/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// glog is initialised once per process, so each test runs it in its own child.
void LogInChild(const std::function<void()>& body) {
  InitLogging("log_test_program");
  body();
  google::FlushLogFiles(google::INFO);
  _exit(0);
}

// Returns whether a line begins as parse_log.py expects: severity, month and day, without the year.
bool HasCaffesPrefix(const std::string& line) {
  static const std::regex kPrefix(
      "^[IWEF](0[1-9]|1[0-2])[0-3][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} +[0-9]+ "
      "log_test\\.cc:[0-9]+\\] .*");
  return std::regex_match(line, kPrefix);
}

size_t CountFiles(const std::string& folder) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    count += entry.path().filename().string().find("log_test_program") == 0;
  }
  return count;
}

TEST(LogDeathTest, WritesCaffesPrefixWithoutYearToStderr) {
  EXPECT_EXIT(LogInChild([] { LOG(INFO) << "hello"; }), testing::ExitedWithCode(0),
              "^I[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} +[0-9]+ log_test\\.cc:[0-9]+\\] "
              "hello");
}

TEST(LogDeathTest, WritesNoFileUnlessAFolderIsNamed) {
  const size_t before = CountFiles("/tmp");
  EXPECT_EXIT(LogInChild([] { LOG(WARNING) << "hello"; }), testing::ExitedWithCode(0), "hello");
  EXPECT_EQ(CountFiles("/tmp"), before);
}

TEST(LogDeathTest, WritesToBothWhenAFolderIsNamed) {
  std::string folder = testing::TempDir() + "logs_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_EXIT(
      {
        FLAGS_log_dir = folder;
        LogInChild([] { LOG(INFO) << "hello"; });
      },
      testing::ExitedWithCode(0), "hello");
  EXPECT_GE(CountFiles(folder), 1u);
  fs::remove_all(folder);
}

TEST(LogDeathTest, AQuietLogTakesWarningsAndErrorsAlone) {
  EXPECT_EXIT(LogInChild([] {
                LOG(INFO) << "first";
                LogWarningsOnly();
                LOG(INFO) << "second";
                LOG(WARNING) << "third";
              }),
              testing::ExitedWithCode(0), "first\n(W.*third)");
}

TEST(LogDeathTest, ALogInAFileOfItsOwnHasAllLinesAndStderrTheWarnings) {
  std::string folder = testing::TempDir() + "logs_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/rank.log";
  for (int i = 0; i < 2; ++i) {  // the second run appends to the first
    EXPECT_EXIT(LogInChild([&] {
                  LogWarningsOnly();
                  LogToFile(path);
                  LOG(INFO) << "second";
                  LOG(WARNING) << "third";
                }),
                testing::ExitedWithCode(0), "^W.*third\n$");
  }
  std::ifstream file(path);
  std::string lines;
  for (std::string line; std::getline(file, line);) {
    EXPECT_TRUE(HasCaffesPrefix(line)) << line;
    lines += line.substr(line.find("] ") + 2) + " ";
  }
  EXPECT_EQ(lines, "second third second third ");
  fs::remove_all(folder);
}

TEST(LogDeathTest, AFileBesideStderrHasTheSameLines) {
  std::string folder = testing::TempDir() + "logs_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/train.log";
  EXPECT_EXIT(LogInChild([&] {
                EXPECT_EQ(AlsoLogToFile(path), "");
                LOG(INFO) << "Iteration 5, lr = 0.01";
              }),
              testing::ExitedWithCode(0), "Iteration 5, lr = 0\\.01");
  std::ifstream file(path);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_TRUE(HasCaffesPrefix(line)) << line;
  EXPECT_TRUE(line.ends_with("] Iteration 5, lr = 0.01")) << line;
  fs::remove_all(folder);
}

TEST(LogDeathTest, ALogWhoseFolderIsMissingIsRefused) {
  EXPECT_THROW(LogToFile("/no/such/folder/rank.log"), Error);
}

TEST(LogDeathTest, AQuietLogStaysAsQuietAsTheUserAskedFor) {
  EXPECT_EXIT(LogInChild([] {
                FLAGS_minloglevel = google::ERROR;
                LogWarningsOnly();
                LOG(WARNING) << "third";
                LOG(ERROR) << "fourth";
              }),
              testing::ExitedWithCode(0), "^E.*fourth");
}

TEST(LogDeathTest, KeepsTheLevelThatTheUserAskedFor) {
  EXPECT_EXIT(
      {
        FLAGS_minloglevel = google::WARNING;
        LogInChild([] {
          LOG(INFO) << "hidden";
          LOG(WARNING) << "seen";
        });
      },
      testing::ExitedWithCode(0), "^W[^\n]* seen");
}

TEST(LogDeathTest, MayBeCalledTwiceAndIgnoresSignalsOfFailedWrites) {
  EXPECT_EXIT(LogInChild([] {
                InitLogging("another_name");
                std::raise(SIGPIPE);
                std::raise(SIGXFSZ);
                LOG(INFO) << "alive";
              }),
              testing::ExitedWithCode(0), "alive");
}

}  // namespace
}  // namespace trainer
