#include "trainer/storage/sealed_tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/tar_text.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::HasSubstr;

class SealedTarTest : public testing::Test {
 protected:
  std::string Write(const std::string& name) const {
    const std::vector<TarMember> members = {{"card.json", "{}\n"},
                                            {"weights", std::string(700, 'w')}};
    WriteSealedTar(folder_ / name, members);
    return folder_ / name;
  }
  ErrorCode CodeFor(const std::string& bytes) const {
    return ErrorOf([&] { ReadSealedTar(folder_.Write("changed", bytes)); }).first;
  }

  TempFolder folder_;
};

TEST_F(SealedTarTest, ReadsBackWhatItWrites) {
  const std::vector<TarMember> members = ReadSealedTar(Write("a"));
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].name, "card.json");
  EXPECT_EQ(members[0].content, "{}\n");
  EXPECT_EQ(members[1].content, std::string(700, 'w'));
  EXPECT_EQ(ReadText(folder_ / "a"), ReadText(Write("b")));
}

TEST_F(SealedTarTest, TellsByTheFirstMember) {
  EXPECT_TRUE(IsTarThatBeginsWith(Write("a"), "card.json"));
  EXPECT_FALSE(IsTarThatBeginsWith(folder_ / "a", "card"));
  EXPECT_FALSE(IsTarThatBeginsWith(folder_.Write("text", "name: \"LeNet\"\n"), "card.json"));
  EXPECT_EQ(ErrorOf([&] { IsTarThatBeginsWith(folder_ / "none", "a"); }).first,
            ErrorCode::kNoInput);
}

TEST_F(SealedTarTest, RefusesEachChangedByteAndEachShorterFile) {
  const std::string bytes = ReadText(Write("a"));
  for (size_t i = 0; i < bytes.size(); i += 7) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(CodeFor(changed), ErrorCode::kData) << "byte " << i;
  }
  for (size_t length = 0; length < bytes.size(); length += 97) {
    EXPECT_EQ(CodeFor(bytes.substr(0, length)), ErrorCode::kData) << length << " bytes";
  }
  EXPECT_EQ(CodeFor(bytes + std::string(10240, '\0')), ErrorCode::kData);
}

TEST_F(SealedTarTest, RefusesMembersOfOtherPrograms) {
  const auto error = [&](const std::string& bytes) {
    return ErrorOf([&] { ReadSealedTar(folder_.Write("other", bytes)); }).second;
  };
  EXPECT_THAT(error(TarEntryText("a", "1") + TarEnd()),
              HasSubstr("other: its last member is not 'checksum'; copy the file again"));
  EXPECT_THAT(error(TarEntryText("a", "1") + TarEntryText("a", "2") + TarEnd()),
              HasSubstr("it has a member 'a' that this program does not write"));
  EXPECT_THAT(error(TarEntryText("../a", "", '2') + TarEnd()), HasSubstr("it has a member '../a'"));
}

}  // namespace
}  // namespace trainer
