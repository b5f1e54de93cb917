#include "trainer/base/own_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/in_child.h"
#include "support/temp_folder.h"
#include "trainer/base/atomic_file.h"
#include "trainer/base/file.h"

namespace trainer {
namespace {

using testing::ElementsAre;

class OwnFileTest : public testing::Test {
 protected:
  void TearDown() override { RemoveOwnFiles(); }

  std::string Made(const std::string& name, const std::string& content) {
    WriteWhole(folder_ / name, content);
    return folder_ / name;
  }

  TempFolder folder_;
};

TEST_F(OwnFileTest, AllThatAreRememberedGo) {
  RememberOwnFile(Made("lock", "mine"), "mine");
  RememberOwnFile(Made("part", "half a"));
  RememberOwnFile(Made("kept", "whole"));
  ForgetOwnFile(folder_ / "kept");
  RemoveOwnFiles();
  EXPECT_THAT(folder_.Names(), ElementsAre("kept"));
}

TEST_F(OwnFileTest, WhatAnotherProcessHasMadeItsOwnStays) {
  RememberOwnFile(Made("lock", "mine"), "mine");
  Made("lock", "another's");
  RemoveOwnFiles();
  EXPECT_THAT(folder_.Names(), ElementsAre("lock"));
}

TEST_F(OwnFileTest, AForkedChildLeavesItsParentsFiles) {
  RememberOwnFile(Made("part", "half a"));
  ASSERT_EQ(InChild([] {
              RemoveOwnFiles();
              return 0;
            }),
            0);
  EXPECT_THAT(folder_.Names(), ElementsAre("part"));
}

TEST_F(OwnFileTest, MoreThanTheTableHoldsStay) {
  for (int i = 0; i < 40; ++i) RememberOwnFile(Made(std::to_string(i), "x"));
  RemoveOwnFiles();
  EXPECT_EQ(folder_.Names().size(), 24);
}

// A database that was shortened while a snapshot was written left half of the snapshot behind.
TEST_F(OwnFileTest, AFileThatIsBeingWrittenGoes) {
  AtomicFile done(folder_ / "done"), begun(folder_ / "begun");
  done.Commit();
  begun.Append("half", 4);
  RemoveOwnFiles();
  EXPECT_THAT(folder_.Names(), ElementsAre("done"));
}

}  // namespace
}  // namespace trainer
