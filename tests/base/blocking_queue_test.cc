#include "trainer/base/thread/blocking_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

namespace trainer {
namespace {

TEST(BlockingQueueTest, KeepsTheOrder) {
  BlockingQueue<int> channel(3);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 3; ++i) channel.Push(10 * round + i);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(channel.Pop(), 10 * round + i);
  }
}

TEST(BlockingQueueTest, CarriesValuesThatCanOnlyBeMoved) {
  BlockingQueue<std::unique_ptr<int>> channel(1);
  channel.Push(std::make_unique<int>(7));
  EXPECT_EQ(*channel.Pop(), 7);
}

TEST(BlockingQueueTest, CarriesAllValuesBetweenThreads) {
  constexpr int kCount = 20000;
  BlockingQueue<int> channel(4);
  const std::jthread producer([&] {
    for (int i = 0; i < kCount; ++i) channel.Push(i);
  });
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(channel.Pop(), i);
}

TEST(BlockingQueueTest, NeverHoldsMoreThanItsCapacity) {
  constexpr int kCount = 5000, kCapacity = 3;
  BlockingQueue<int> channel(kCapacity);
  std::atomic<int> pushed = 0;
  const std::jthread producer([&] {
    for (int i = 0; i < kCount; ++i) {
      channel.Push(i);
      pushed = i + 1;
    }
  });
  for (int popped = 0; popped < kCount; ++popped) {
    EXPECT_LE(pushed, popped + kCapacity + 1);
    channel.Pop();
  }
}

TEST(BlockingQueueTest, ThrowsTheProducersExceptionAfterTheValuesBeforeIt) {
  BlockingQueue<int> channel(2);
  std::jthread producer([&] {
    channel.Push(1);
    channel.Fail(std::make_exception_ptr(std::runtime_error("broken record")));
  });
  EXPECT_EQ(channel.Pop(), 1);
  for (int i = 0; i < 2; ++i) {
    try {
      channel.Pop();
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "broken record");
    }
  }
}

TEST(BlockingQueueTest, WakesAWaitingConsumerWithTheException) {
  BlockingQueue<int> channel(1);
  std::jthread consumer([&] { EXPECT_THROW(channel.Pop(), std::runtime_error); });
  channel.Fail(std::make_exception_ptr(std::runtime_error("late")));
}

TEST(BlockingQueueTest, AStopRequestEndsAWaitForRoom) {
  BlockingQueue<int> channel(1);
  channel.Push(1);
  std::atomic<bool> closed = false;
  std::jthread producer([&](const std::stop_token& stop) {
    try {
      channel.Push(2, stop);
    } catch (const QueueStopped&) {
      closed = true;
    }
  });
  producer.request_stop();
  producer.join();
  EXPECT_TRUE(closed);
  EXPECT_EQ(channel.Pop(), 1);
  EXPECT_TRUE(channel.WouldWait());
}

TEST(BlockingQueueTest, AStopRequestEndsAWaitForAValue) {
  BlockingQueue<int> channel(1);
  std::atomic<bool> closed = false;
  std::jthread consumer([&](const std::stop_token& stop) {
    try {
      channel.Pop(stop);
    } catch (const QueueStopped&) {
      closed = true;
    }
  });
  consumer.request_stop();
  consumer.join();
  EXPECT_TRUE(closed);
}

TEST(BlockingQueueTest, SaysWhetherAPopWouldWait) {
  BlockingQueue<int> channel(1);
  EXPECT_TRUE(channel.WouldWait());
  channel.Push(1);
  EXPECT_FALSE(channel.WouldWait());
  channel.Pop();
  EXPECT_TRUE(channel.WouldWait());
  channel.Fail(std::make_exception_ptr(std::runtime_error("end")));
  EXPECT_FALSE(channel.WouldWait());
}

}  // namespace
}  // namespace trainer
