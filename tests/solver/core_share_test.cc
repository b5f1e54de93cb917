#include "core_share.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <chrono>

#include "support/in_child.h"
#include "trainer/base/thread/spin.h"
#include "trainer/base/thread/thread_team.h"

namespace trainer {
namespace {

TEST(CoreShareTest, SaysNothingOfARunThatHasItsCores) {
  CoreShare share;
  EXPECT_EQ(share.Note(0.5), "");
  EXPECT_EQ(share.Note(1e9), "");
}

// Returns the note of a run with four threads on one core: each thread lacks a core for three
// quarters of its time.
std::string NoteOfACrowdedCore() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof one, &one);
  SetTeamSize(4);
  CoreShare share;
  std::string note;
  for (int round = 0; round < 100 && note.empty(); ++round) {
    const auto begin = std::chrono::steady_clock::now();
    RunTogether(
        4,
        [](void*) {
          volatile double sum = 0;
          for (int i = 0; i < 20'000'000; ++i) sum = sum + i;
        },
        nullptr);
    note =
        share.Note(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return note;
}

TEST(CoreShareTest, SaysWhenThreadsHadNoCore) {
  if (SecondsWithoutCore() < 0) GTEST_SKIP() << "this system does not tell";
  EXPECT_EQ(InChild([] {
              const std::string note = NoteOfACrowdedCore();
              return note.starts_with(
                         "Other programs use this run's cores: its 4 threads were "
                         "ready to run but without a core for ") &&
                             note.find("OMP_NUM_THREADS") != std::string::npos
                         ? 0
                         : 1;
            }),
            0);
}

}  // namespace
}  // namespace trainer
