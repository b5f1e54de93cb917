#include "trainer/checkpoint/snapshot_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SnapshotWriterTest : public testing::Test {
 protected:
  SnapshotWriterTest() { pauses_.waited_for = milliseconds(5); }

  SnapshotWriter Writer() {
    return {folder_ / "later/s", SnapshotFormat::kBinary, pauses_,
            [this](const SnapshotNames& names) { written_.push_back(names.iter); }};
  }
  static void Start(SnapshotWriter& writer, int iter) {
    SnapshotContent& content = writer.Next();
    content.iter = iter;
    content.model.set_name("net");
    content.state.Clear();
    content.state.set_current_step(3);
    writer.Start();
  }
  void MakeFolder() const { std::filesystem::create_directory(folder_ / "later"); }
  std::vector<int> Found() const {
    std::vector<int> iters;
    for (const SnapshotNames& names : FindSnapshots(folder_ / "later/s")) {
      iters.push_back(names.iter);
    }
    return iters;
  }
  static void AwaitIdle(const SnapshotWriter& writer) {
    while (writer.busy()) std::this_thread::sleep_for(milliseconds(10));
  }

  TempFolder folder_;
  SnapshotWriter::RetryPolicy pauses_;
  std::vector<int> written_;  // written by the writing thread, read after it has ended
};

TEST_F(SnapshotWriterTest, WritesWhatItIsGiven) {
  MakeFolder();
  SnapshotWriter writer = Writer();
  Start(writer, 1);
  writer.Wait();
  Start(writer, 2);
  writer.Wait();
  EXPECT_EQ(writer.count(), 2);
  EXPECT_THAT(written_, ElementsAre(1, 2));
  EXPECT_THAT(Found(), ElementsAre(2, 1));
  EXPECT_EQ(ReadState(folder_ / "later/s_iter_2.solverstate").state.current_step(), 3);
}

TEST_F(SnapshotWriterTest, TriesAgainWhileNobodyWaits) {
  pauses_.first = pauses_.longest = milliseconds(20);
  SnapshotWriter writer = Writer();
  Start(writer, 1);
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_TRUE(writer.busy());
  writer.ThrowFailure();  // no failure so far
  MakeFolder();
  AwaitIdle(writer);
  EXPECT_THAT(Found(), ElementsAre(1));
}

TEST_F(SnapshotWriterTest, TheNextSnapshotTakesThePlaceOfOneThatFailed) {
  pauses_.first = std::chrono::hours(1);
  SnapshotWriter writer = Writer();
  Start(writer, 1);
  writer.WaitIdle();
  MakeFolder();
  Start(writer, 2);
  writer.Wait();
  EXPECT_THAT(Found(), ElementsAre(2));
  EXPECT_EQ(writer.count(), 1);
}

TEST_F(SnapshotWriterTest, WhoeverWaitsHasItTriedAtOnce) {
  pauses_.first = std::chrono::hours(1);
  SnapshotWriter writer = Writer();
  Start(writer, 1);
  writer.WaitIdle();
  MakeFolder();
  writer.Wait();
  EXPECT_THAT(Found(), ElementsAre(1));
}

TEST_F(SnapshotWriterTest, WhoeverWaitsGetsTheErrorAfterThreeTries) {
  pauses_.first = std::chrono::hours(1);
  SnapshotWriter writer = Writer();
  Start(writer, 1);
  EXPECT_EQ(ErrorOf([&] { writer.Wait(); }).first, ErrorCode::kCannotCreate);
  EXPECT_FALSE(writer.busy());
  MakeFolder();
  Start(writer, 2);  // the writer is usable afterwards
  writer.Wait();
  EXPECT_THAT(Found(), ElementsAre(2));
}

TEST_F(SnapshotWriterTest, TheLastOneIsTriedUntilItsTimeIsOver) {
  SnapshotWriter::LastTries last;
  last.until = std::chrono::steady_clock::now() + std::chrono::hours(1);
  SnapshotWriter writer = Writer();
  Start(writer, 1);
  writer.SetLast(last);
  while (!writer.WaitFor(milliseconds(100)) && !writer.refused()) {
  }
  EXPECT_FALSE(writer.WaitFor(milliseconds(50))) << "three tries are not the end of it";
  MakeFolder();
  writer.Wait();
  EXPECT_THAT(Found(), ElementsAre(1));
}

TEST_F(SnapshotWriterTest, TheLastOneGoesToTheFirstRescueFolderThatTakesIt) {
  SnapshotWriter::LastTries last;
  last.rescue_folders = {folder_ / "none", folder_.path()};
  last.resume_command = [](const std::string& state) { return "resume " + state; };
  last.was_writable = true;
  SnapshotWriter writer = Writer();
  Start(writer, 7);
  writer.SetLast(last);
  const auto [code, message] = ErrorOf([&] { writer.Wait(); });
  EXPECT_EQ(code, ErrorCode::kIo);
  EXPECT_THAT(message, HasSubstr("the last snapshot, of iteration 7, could not be written"));
  const size_t at = message.rfind("resume with: resume ");
  ASSERT_NE(at, std::string::npos) << message;
  EXPECT_EQ(ReadState(message.substr(at + 20)).state.iter(), 7);
  EXPECT_THAT(written_, IsEmpty()) << "it is none of the run's snapshots, which are pruned";
  const std::string prefix = folder_ / "later/s";
  EXPECT_EQ(NewestRescued(prefix, {folder_.path()})->state.iter(), 7);
  EXPECT_FALSE(NewestRescued(folder_ / "other/s", {folder_.path()}))
      << "another run, whose snapshots have the same name";
  const std::string rescue_folder = FolderOf(message.substr(at + 20));
  std::filesystem::permissions(rescue_folder, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  EXPECT_FALSE(NewestRescued(prefix, {folder_.path()})) << "other users may have written it";
}

TEST_F(SnapshotWriterTest, TheLastOneWithoutARescueFolderKeepsTheCodeOfRights) {
  SnapshotWriter writer = Writer();
  Start(writer, 7);
  writer.SetLast({});
  const auto [code, message] = ErrorOf([&] { writer.Wait(); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(message, HasSubstr("No other folder was tried (--rescue_dir, "));
}

TEST_F(SnapshotWriterTest, WhoeverWaitsInTurnsGetsNoMoreTries) {
  pauses_.first = std::chrono::hours(1);
  SnapshotWriter writer = Writer();
  Start(writer, 1);
  while (!writer.WaitFor(milliseconds(1))) {
  }
  EXPECT_FALSE(writer.busy());
  EXPECT_EQ(ErrorOf([&] { writer.Wait(); }).first, ErrorCode::kCannotCreate);
}

// A run with a time limit needs the estimate, so that it starts its last snapshot early enough.
TEST_F(SnapshotWriterTest, ExpectsThreeTriesOfTheLastOneWhereTheDiskRefused) {
  pauses_.first = std::chrono::hours(1);
  SnapshotWriter writer = Writer();
  EXPECT_EQ(writer.AttemptsLeft(), 1);
  Start(writer, 1);
  writer.WaitIdle();
  EXPECT_EQ(writer.AttemptsLeft(), 3);
  EXPECT_EQ(writer.PausesAhead(), milliseconds(10));
  MakeFolder();
  Start(writer, 2);
  writer.Wait();
  EXPECT_EQ(writer.AttemptsLeft(), 1);
  EXPECT_EQ(writer.PausesAhead(), milliseconds(0));
}

TEST_F(SnapshotWriterTest, OtherFailuresAreThrownByTheNextCall) {
  MakeFolder();
  std::promise<void> failed;
  SnapshotWriter writer(folder_ / "later/s", SnapshotFormat::kBinary, pauses_,
                        [&](const SnapshotNames&) {
                          failed.set_value();
                          throw std::bad_alloc();
                        });
  Start(writer, 1);
  failed.get_future().wait();
  writer.WaitIdle();
  EXPECT_THROW(writer.Next(), std::bad_alloc);
}

TEST_F(SnapshotWriterTest, ItsEndWaitsForAWriteAndForNoRetry) {
  pauses_.first = std::chrono::hours(1);
  {
    SnapshotWriter writer = Writer();
    Start(writer, 1);
    writer.WaitIdle();
  }
  EXPECT_THAT(Found(), IsEmpty());
  MakeFolder();
  {
    SnapshotWriter writer = Writer();
    Start(writer, 2);
  }
  EXPECT_THAT(Found(), ElementsAre(2));
}

}  // namespace
}  // namespace trainer
