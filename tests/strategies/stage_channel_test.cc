// Messages of a pipeline that arrive out of order at a rank on another machine.

#include "stage_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "support/thread_window.h"

namespace trainer {
namespace {

constexpr int kSlots = 2;
using Message = std::array<std::byte, 8>;

Message MessageOf(int value) {
  Message message{};
  message[0] = static_cast<std::byte>(value);
  return message;
}

// The receiver's side of a channel from rank 1.
class StageChannelTest : public testing::Test {
 protected:
  bool Deliver(int number) { return channel_.Deliver(number, MessageOf(number + 1)); }
  int Receive() {
    int value = 0;
    channel_.Receive([&](const std::byte* place) { value = static_cast<int>(place[0]); });
    return value;
  }

 private:
  SharedBlocks blocks_{1};
  ThreadWindow window_{blocks_, 0};
  StageChannel channel_{window_.Allocate(StageChannel::Bytes(sizeof(Message), kSlots)),
                        sizeof(Message),
                        kSlots,
                        1,
                        0,
                        window_,
                        {}};
};

TEST_F(StageChannelTest, DeliversInTheOrderOfTheNumbersWhateverArrivesFirst) {
  EXPECT_FALSE(Deliver(1));
  EXPECT_TRUE(Deliver(0));
  EXPECT_TRUE(Deliver(1));
  EXPECT_EQ(Receive(), 1);
  EXPECT_EQ(Receive(), 2);
}

TEST_F(StageChannelTest, RefusesAMessageWithoutAFreeSlot) {
  EXPECT_TRUE(Deliver(0));
  EXPECT_TRUE(Deliver(1));
  EXPECT_FALSE(Deliver(2));
  EXPECT_EQ(Receive(), 1);
  EXPECT_TRUE(Deliver(2));
  EXPECT_EQ(Receive(), 2);
  EXPECT_EQ(Receive(), 3);
}

TEST_F(StageChannelTest, DeliversNoMessageTwice) {
  EXPECT_TRUE(Deliver(0));
  EXPECT_FALSE(Deliver(0));
}

}  // namespace
}  // namespace trainer
