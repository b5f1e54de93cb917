// protoc reads the program's files with its schema alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <regex>

#include "in_process.h"
#include "job.h"
#include "support/source_folder.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// Returns the output of `protoc --decode` for a file of `folder`. The test fails if protoc does, or
// if the schema lacks a field of the file (which protoc prints as a number).
std::string Decode(const Job& job, const std::string& message, const std::string& proto,
                   const std::string& file) {
  const std::string folder = SourceFolder() + "/proto";
  const std::string command = "'" TRAINER_PROTOC "' --decode=caffe." + message + " -I'" + folder +
                              "' '" + folder + "/" + proto + "' < '" + (job.folder() / file) +
                              "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> piece;
  while (const size_t bytes = fread(piece.data(), 1, piece.size(), pipe)) {
    text.append(piece.data(), bytes);
  }
  EXPECT_EQ(pclose(pipe), 0) << text;
  EXPECT_FALSE(std::regex_search(text, std::regex(R"((^|\n) *\d+(:| \{))"))) << file;
  return text;
}

TEST(ProtocTest, DecodesEveryFileThatIsWritten) {
  if (!std::ifstream(TRAINER_PROTOC).good()) GTEST_SKIP() << "no protoc";
  Job job;
  job.solver += "snapshot_diff: true\n";
  ASSERT_EQ(job.Train().exit_code, 0);
  const std::string model = Decode(job, "NetParameter", "net.proto", "snap_iter_20.caffemodel");
  EXPECT_THAT(model, HasSubstr("  name: \"ip\"\n"));
  EXPECT_THAT(model, HasSubstr("    diff: "));
  EXPECT_THAT(model, HasSubstr("\ncrc32c: "));
  const std::string state = Decode(job, "SolverState", "state.proto", "snap_iter_20.solverstate");
  EXPECT_THAT(state, HasSubstr("learned_net: \"snap_iter_20.caffemodel\"\n"));
  EXPECT_THAT(state, HasSubstr("history {\n"));
  ASSERT_EQ(
      RunHere({"upgrade", "snap_iter_20.caffemodel", "new.caffemodel"}, job.options()).exit_code,
      0);
  EXPECT_EQ(Decode(job, "NetParameter", "net.proto", "new.caffemodel"), model);
  ASSERT_EQ(RunHere({"dataset", "mean", "data/train_lmdb", "mean"}, job.options()).exit_code, 0);
  EXPECT_THAT(Decode(job, "BlobProto", "datum.proto", "mean"), HasSubstr("\nheight: 28\n"));
}

}  // namespace
}  // namespace trainer
