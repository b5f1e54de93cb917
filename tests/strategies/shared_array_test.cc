// An array that ranks of several machines share.

#include "shared_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/thread_window.h"

namespace trainer {
namespace {

// Each of the two ranks is a machine, and rank 0 has the array.
class SharedArrayTest : public testing::Test {
 protected:
  template <class Owner, class Other>
  void Run(int number_of_blocks, const Owner& owner, const Other& other) {
    SharedBlocks blocks(2, 1);
    const auto run = [&](int rank, const auto& body) {
      ThreadWindow window(blocks, rank);
      SharedArray array(window, rank, 0, kSize, number_of_blocks,
                        [](std::span<float> all, std::span<float> values) {
                          for (size_t i = 0; i < all.size(); ++i) all[i] += values[i];
                          std::ranges::copy(all, values.begin());
                        });
      window.EnterAsync(false);
      body(array, window);
      window.EnterAsync(false);  // a barrier: the owner answers until then
    };
    std::thread thread([&] { run(1, other); });
    run(0, owner);
    thread.join();
  }

  static constexpr size_t kSize = 1000;
};

// A block that a rank has only half changed may not be read, not even from another machine.
TEST_F(SharedArrayTest, ReadsNoBlockThatIsBeingChanged) {
  std::atomic<bool> half{false}, whole{false};
  Run(
      1,
      [&](SharedArray& array, SharedWindow& window) {
        const RobustLock lock(array.lock(0), 0, window);
        std::ranges::fill(array.floats().first(kSize / 2), 1.0f);
        half = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        whole = true;
        std::ranges::fill(array.floats(), 1.0f);
        array.NoteUpdate();
      },
      [&](SharedArray& array, SharedWindow&) {
        while (!half) std::this_thread::yield();
        std::vector<float> values(kSize);
        array.Read(values);
        EXPECT_TRUE(whole);
        EXPECT_EQ(std::ranges::count(values, 1.0f), static_cast<std::ptrdiff_t>(kSize));
        EXPECT_EQ(array.version(), 1);
      });
}

TEST_F(SharedArrayTest, MergesWhatRanksOfBothMachinesGive) {
  std::atomic<int> merged{0};
  const auto merge = [&](SharedArray& array, SharedWindow&) {
    std::vector<float> values(kSize, 2.0f);
    array.Merge(values);
    EXPECT_EQ(std::ranges::count(values, values[0]), static_cast<std::ptrdiff_t>(kSize));
    ++merged;
    while (merged < 2) std::this_thread::yield();
    std::vector<float> all(kSize);
    array.Read(all);
    EXPECT_EQ(std::ranges::count(all, 4.0f), static_cast<std::ptrdiff_t>(kSize));
  };
  Run(1, merge, merge);
}

}  // namespace
}  // namespace trainer
