#include "trainer/base/file/file_ops.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/file/file_error.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;

// A pipe with these flags on its read end.
class Pipe {
 public:
  explicit Pipe(int flags) {
    EXPECT_EQ(pipe(ends_), 0);
    EXPECT_EQ(fcntl(ends_[0], F_SETFL, flags), 0);
  }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  ssize_t Read() {
    char byte = 0;
    return FileOps::Posix().Read(ends_[0], &byte, 1);
  }
  void Write() const { EXPECT_EQ(write(ends_[1], "x", 1), 1); }

 private:
  int ends_[2] = {-1, -1};
};

TEST(FileOpsTest, ACallThatSignalsInterruptIsRepeated) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = [](int) {};  // SA_RESTART is not set
  ASSERT_EQ(sigaction(SIGALRM, &ignore, &before), 0);
  Pipe pipe(0);
  std::thread other([&pipe, reader = pthread_self()] {
    for (int i = 0; i < 200; ++i) {
      pthread_kill(reader, SIGALRM);
      std::this_thread::sleep_for(milliseconds(1));
    }
    pipe.Write();
  });
  EXPECT_EQ(pipe.Read(), 1);
  other.join();
  sigaction(SIGALRM, &before, nullptr);
}

TEST(FileOpsTest, ACallThatMayBeTriedAgainIsTriedForASecond) {
  Pipe pipe(O_NONBLOCK);
  std::thread other([&pipe] {
    std::this_thread::sleep_for(milliseconds(100));
    pipe.Write();
  });
  EXPECT_EQ(pipe.Read(), 1);
  other.join();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(pipe.Read(), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(1000));
}

TEST(FileOpsTest, AFileThatWasReadAndIsMissingNowIsAnErrorOfTheDisk) {
  const auto fail = [](int error) {
    return ErrorOf([error] {
      OpenAgain([error]() -> int { ThrowFileError(FileUse::kInput, "open", "set", error); });
    });
  };
  EXPECT_EQ(fail(ENOENT),
            std::pair(ErrorCode::kIo, std::string("set: cannot open: No such file or directory")));
  EXPECT_EQ(fail(ESTALE).first, ErrorCode::kIo);
  EXPECT_EQ(fail(EACCES).first, ErrorCode::kNoPermission);
  EXPECT_EQ(OpenAgain([] { return 7; }), 7);
}

}  // namespace
}  // namespace trainer
