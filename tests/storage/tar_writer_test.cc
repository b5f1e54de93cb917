#include "tar/tar_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "storage/test_data.h"
#include "trainer/base/process/command.h"

namespace trainer {
namespace {

using testing::HasSubstr;

class TarWriterTest : public testing::Test {
 protected:
  void Write(const std::vector<std::pair<std::string, std::string>>& members) {
    TarWriter tar(path_);
    for (const auto& [name, content] : members) tar.Add(name, content);
    tar.Finish();
    tar.Place();
  }
  CommandResult Tar(const std::string& how, const std::string& member = "") {
    std::vector<std::string> words{"tar", how, path_};
    if (!member.empty()) words.push_back(member);
    return RunCommand(words, std::chrono::minutes(4));
  }

  TempFolder folder_;
  std::string path_ = folder_ / "a.tar";
};

TEST_F(TarWriterTest, GnuTarReadsNamesAndContentsOfEveryLength) {
  const std::string deep = std::string(90, 'd') + "/" + std::string(99, 'f');
  const std::string longest = std::string(250, 'x') + ".jpg";
  std::vector<std::pair<std::string, std::string>> members{{"empty", ""},
                                                           {"one", "1"},
                                                           {"block", std::string(512, 'b')},
                                                           {"more", std::string(513, 'm')},
                                                           {std::string(100, 'n'), "hundred"},
                                                           {deep, "prefix"},
                                                           {longest, "pax"},
                                                           {"last", "z"}};
  Write(members);
  const CommandResult listed = Tar("tf");
  ASSERT_EQ(listed.exit_code, 0) << listed.problem;
  std::string names;
  for (const auto& member : members) names += member.first + "\n";
  EXPECT_EQ(listed.out, names);
  for (const auto& [name, content] : members) EXPECT_EQ(Tar("xOf", name).out, content);
}

TEST_F(TarWriterTest, TheSameMembersGiveTheSameBytesInWholeRecords) {
  Write({{"a", "1"}, {"b", std::string(9000, 'b')}});
  const std::string first = ReadBytes(path_);
  EXPECT_EQ(first.size() % 10240, 0u);
  std::filesystem::remove(path_);
  Write({{"a", "1"}, {"b", std::string(9000, 'b')}});
  EXPECT_EQ(ReadBytes(path_), first);
}

TEST_F(TarWriterTest, RefusesNamesThatNoFileHas) {
  TarWriter tar(path_);
  EXPECT_THAT(Catch([&] { tar.Add("", "x"); }),
              Refuses(ErrorCode::kData, "cannot be stored in a tar file"));
  EXPECT_THAT(Catch([&] { tar.Add(std::string("a\0b", 3), "x"); }),
              Refuses(ErrorCode::kData, "'a\\x00b' (1 bytes)"));
}

TEST_F(TarWriterTest, IsNotThereUntilItIsPlaced) {
  {
    TarWriter tar(path_);
    tar.Add("a", "1");
    tar.Finish();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / ""));
}

}  // namespace
}  // namespace trainer
