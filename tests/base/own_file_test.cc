#include "trainer/base/file/own_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support/in_child.h"
#include "support/temp_folder.h"
#include "trainer/base/file/atomic_file.h"

namespace trainer {
namespace {

using testing::ElementsAre;

class OwnFileTest : public testing::Test {
 protected:
  std::string Made(const std::string& name, const std::string& content) {
    WriteWhole(folder_ / name, content);
    return folder_ / name;
  }
  // Returns the files that remain after a process did `work` and a signal handler ended it.
  template <class Work>
  std::vector<std::string> LeftAfter(const Work& work) {
    EXPECT_EQ(InChild([&] {
                work();
                RemoveOwnFiles();
                return 0;
              }),
              0);
    return folder_.Names();
  }

  TempFolder folder_;
};

TEST_F(OwnFileTest, AllThatAreRememberedGo) {
  EXPECT_THAT(LeftAfter([&] {
                RememberOwnFile(Made("lock", "mine"), "mine");
                RememberOwnFile(Made("part", "half a"));
                RememberOwnFile(Made("kept", "whole"));
                ForgetOwnFile(folder_ / "kept");
              }),
              ElementsAre("kept"));
}

TEST_F(OwnFileTest, WhatAnotherProcessHasMadeItsOwnStays) {
  EXPECT_THAT(LeftAfter([&] {
                RememberOwnFile(Made("lock", "mine"), "mine");
                Made("lock", "another's");
              }),
              ElementsAre("lock"));
}

TEST_F(OwnFileTest, AForkedChildLeavesItsParentsFiles) {
  RememberOwnFile(Made("part", "half a"));
  EXPECT_THAT(LeftAfter([] {}), ElementsAre("part"));
  ForgetOwnFile(folder_ / "part");
}

TEST_F(OwnFileTest, WhatTheTableDoesNotHoldStays) {
  const auto left = LeftAfter([&] {
    for (int i = 0; i < 40; ++i) RememberOwnFile(Made(std::to_string(i), "x"));
  });
  EXPECT_EQ(left.size(), 24);
}

// A run that ended because its database was truncated during a snapshot left half a snapshot.
TEST_F(OwnFileTest, AFileThatIsBeingWrittenGoes) {
  EXPECT_THAT(LeftAfter([&] {
                WriteWhole(folder_ / "done", "whole");
                auto* const begun =
                    new AtomicFile(folder_ / "begun");  // a handler runs no destructors
                begun->Append("half", 4);
              }),
              ElementsAre("done"));
}

TEST_F(OwnFileTest, NoneIsCreatedBesideTheEnd) {
  for (int i = 0; i < 20; ++i) {
    const auto left = LeftAfter([&] {
      static std::atomic<int> begun = 0;  // static, because the threads outlive this frame
      for (int t = 0; t < 3; ++t) {
        std::thread([this, t] {
          for (;; ++begun) {
            const std::string path = folder_ / std::to_string(t);
            {
              const OwnFileCreation creation(path);
              close(open(path.c_str(), O_WRONLY | O_CREAT, 0666));
            }
            unlink(path.c_str());
            ForgetOwnFile(path);
          }
        }).detach();
      }
      while (begun < 10) std::this_thread::yield();
    });
    ASSERT_THAT(left, testing::IsEmpty()) << i;
  }
}

}  // namespace
}  // namespace trainer
