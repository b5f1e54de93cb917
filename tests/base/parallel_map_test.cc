#include "trainer/base/thread/parallel_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace trainer {
namespace {

struct Item {
  int number = 0, square = 0;
};

TEST(OrderedWorkTest, GivesItemsInTheOrderOfReadingForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 7}) {
    int read = 0;
    ParallelMap<Item> work(
        threads, [&](Item* item) { return (item->number = read++) < 500; },
        [](Item* item) { item->square = item->number * item->number; });
    for (int i = 0; i < 500; ++i) {
      const Item* const item = work.Next();
      ASSERT_NE(item, nullptr);
      EXPECT_EQ(item->square, i * i);
    }
    EXPECT_EQ(work.Next(), nullptr);
    EXPECT_EQ(work.Next(), nullptr);
  }
}

TEST(OrderedWorkTest, ThrowsWhatWorkThrewInTheItemsPlace) {
  int read = 0;
  ParallelMap<Item> work(
      3, [&](Item* item) { return (item->number = read++) < 100; },
      [](Item* item) {
        if (item->number == 40) throw std::runtime_error("forty");
      });
  for (int i = 0; i < 40; ++i) ASSERT_EQ(work.Next()->number, i);
  EXPECT_THROW(work.Next(), std::runtime_error);
}

TEST(OrderedWorkTest, ThrowsWhatReadingThrewAfterTheItemsBefore) {
  int read = 0;
  std::atomic<int> worked = 0;
  ParallelMap<Item> work(
      3,
      [&](Item* item) {
        if (read == 20) throw std::runtime_error("twenty");
        item->number = read++;
        return true;
      },
      [&](Item*) { ++worked; });
  for (int i = 0; i < 20; ++i) ASSERT_EQ(work.Next()->number, i);
  EXPECT_THROW(work.Next(), std::runtime_error);
  EXPECT_EQ(worked, 20);
}

TEST(OrderedWorkTest, EndsBeforeAllIsTaken) {
  for (int i = 0; i < 50; ++i) {
    ParallelMap<Item> work(
        4, [](Item*) { return true; }, [](Item*) {});
    if (i % 2 == 0) work.Next();
  }
}

TEST(OrderedWorkTest, AnEmptySourceHasNoItem) {
  ParallelMap<Item> work(
      2, [](Item*) { return false; }, [](Item*) {});
  EXPECT_EQ(work.Next(), nullptr);
}

}  // namespace
}  // namespace trainer
