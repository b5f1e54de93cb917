#include "trainer/base/io_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/temp_folder.h"
#include "trainer/base/steady_file.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class IoWaitTest : public testing::Test {
 protected:
  ~IoWaitTest() override {
    SetIoTimeout(kDefaultIoTimeout);
    EndIoWaitsWhen(nullptr);
  }

  // Fails so often with this number, then gives 7.
  int Read(int times, int errno_value, FileWas was = FileWas::kUnknown) {
    return ReadPatiently(was, [&] {
      if (tries_++ < times) ThrowFileError(FileUse::kInput, "read", "set", errno_value);
      return 7;
    });
  }

  LogCollector log_;
  int tries_ = 0;
};

TEST_F(IoWaitTest, AReadThatSucceedsSaysNothing) {
  EXPECT_EQ(Read(0, EIO), 7);
  EXPECT_EQ(tries_, 1);
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(IoWaitTest, AReadThatFailsIsTriedAgainWithOneWarningAndALineWhenItGoesOn) {
  EXPECT_EQ(Read(3, ESTALE), 7);
  EXPECT_EQ(tries_, 4);
  EXPECT_THAT(log_.lines,
              ElementsAre("set: cannot read: Stale file handle; reading is tried again for up to "
                          "300 s (--io_timeout)",
                          StartsWith("Reading goes on after ")));
}

TEST_F(IoWaitTest, WhatTimeDoesNotMendIsThrownAtOnce) {
  EXPECT_EQ(ErrorOf([&] { Read(1, EACCES, FileWas::kThere); }).first, ErrorCode::kNoPermission);
  EXPECT_EQ(tries_, 1);
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(IoWaitTest, AMissingFileIsWaitedForWhereItWasThere) {
  EXPECT_EQ(ErrorOf([&] { Read(1, ENOENT); }).first, ErrorCode::kNoInput);
  tries_ = 0;
  EXPECT_EQ(Read(1, ENOENT, FileWas::kThere), 7);
}

TEST_F(IoWaitTest, WhenTheTimeIsOverTheErrorSaysSo) {
  SetIoTimeout(milliseconds(1));
  const auto [code, message] = ErrorOf([&] { Read(1000, ENOENT, FileWas::kThere); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_EQ(message,
            "set: cannot read: No such file or directory; it was tried again for 0.001 s "
            "(--io_timeout)");
  EXPECT_GE(tries_, 2);
}

TEST_F(IoWaitTest, WithoutTimeNothingIsTriedAgain) {
  SetIoTimeout(milliseconds(0));
  EXPECT_EQ(ErrorOf([&] { Read(1, EIO); }),
            std::pair(ErrorCode::kIo, std::string("set: cannot read: Input/output error")));
  EXPECT_EQ(tries_, 1);
}

TEST_F(IoWaitTest, ARequestToStopEndsTheWait) {
  std::stop_source stop;
  const std::stop_token token = stop.get_token();
  stop.request_stop();
  {
    const IoStopScope scope(token);
    EXPECT_THAT(ErrorOf([&] { Read(1, EIO); }).second,
                HasSubstr(" s, until the program was asked to end"));
  }
  tries_ = 0;
  EXPECT_EQ(Read(1, EIO), 7);
  tries_ = 0;
  EndIoWaitsWhen([] { return true; });
  EXPECT_EQ(ErrorOf([&] { Read(1, EIO); }).first, ErrorCode::kIo);
}

// The next reads, so many, fail.
class FaultyReads : public PlaceOps {
 public:
  int times = 0, errno_value = EIO;
  std::vector<std::string> calls;

  int Open(const std::string& path, int flags, mode_t mode) override {
    calls.emplace_back("open");
    return PlaceOps::Open(path, flags, mode);
  }
  ssize_t ReadAt(int fd, void* to, size_t bytes, uint64_t at) override {
    calls.emplace_back("pread");
    if (times-- <= 0) return PlaceOps::ReadAt(fd, to, bytes, at);
    errno = errno_value;
    return -1;
  }
};

class SteadyFileTest : public IoWaitTest {
 protected:
  SteadyFileTest() { WriteText(path_, "0123456789"); }

  std::string Read(const SteadyFile& file, uint64_t at, uint64_t count) {
    std::string text(count, '\0');
    text.resize(file.Read(at, count, text.data()));
    return text;
  }

  TempFolder folder_;
  std::string path_ = folder_ / "file";
  FaultyReads ops_;
};

TEST_F(SteadyFileTest, ReadsAtAnyPlaceAndNoFurtherThanItsEnd) {
  const SteadyFile file(path_);
  EXPECT_EQ(file.bytes(), 10u);
  EXPECT_EQ(Read(file, 3, 4), "3456");
  EXPECT_EQ(Read(file, 8, 4), "89");
  EXPECT_EQ(Read(file, 20, 4), "");
}

TEST_F(SteadyFileTest, AReadThatFailsIsRepeatedByANewHandle) {
  const SteadyFile file(path_, ops_);
  const int fd = file.fd();
  ops_.times = 1;
  ops_.errno_value = ESTALE;
  ops_.calls.clear();
  EXPECT_EQ(Read(file, 0, 10), "0123456789");
  EXPECT_THAT(ops_.calls, ElementsAre("pread", "open", "pread"));
  EXPECT_EQ(file.fd(), fd);
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("Stale file handle"), HasSubstr("goes on")));
}

TEST_F(SteadyFileTest, AnotherFileInItsPlaceIsRefused) {
  const SteadyFile file(path_, ops_);
  WriteText(folder_ / "other", "abcdefghijklm");
  std::filesystem::rename(folder_ / "other", path_);
  ops_.times = 1;
  const auto [code, message] = ErrorOf([&] { Read(file, 0, 10); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("the file was changed while it could not be read"));
}

TEST_F(SteadyFileTest, OneThatDoesNotComeBackIsAnErrorOfTheDisk) {
  const SteadyFile file(path_, ops_);
  SetIoTimeout(milliseconds(1));
  ops_.times = 1000;
  const auto [code, message] = ErrorOf([&] { Read(file, 0, 10); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_THAT(message, AllOf(HasSubstr(path_), HasSubstr("Input/output error"),
                             HasSubstr("(--io_timeout)")));
}

}  // namespace
}  // namespace trainer
