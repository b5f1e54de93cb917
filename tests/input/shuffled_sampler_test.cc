#include "shuffled_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace trainer {
namespace {

constexpr size_t kShuffledSamplerRecords = 100, kBytes = 256 << 10;  // an extent holds four records

// Holds numbered records of 256 KiB in one block of memory, and stores the hints that it gets.
class MemoryCursor final : public Cursor {
 public:
  struct Told {
    size_t record;
    uint64_t bytes;
  };

  explicit MemoryCursor(std::vector<Told>* told)
      : Cursor("memory"), told_(*told), bytes_(kShuffledSamplerRecords * kBytes, '\0') {
    for (size_t i = 0; i < kShuffledSamplerRecords; ++i) bytes_[i * kBytes] = static_cast<char>(i);
  }

  std::string_view Key() const override { return {bytes_.data() + at_ * kBytes, 1}; }
  std::string_view Value() const override { return {bytes_.data() + at_ * kBytes, kBytes}; }
  bool stable() const override { return true; }
  void SeekFirst() override { at_ = 0; }
  void SeekLast() override { at_ = kShuffledSamplerRecords - 1; }
  bool Next() override {
    at_ = (at_ + 1) % kShuffledSamplerRecords;
    return at_ == 0;
  }
  bool Seek(std::string_view key) override {
    at_ = static_cast<size_t>(key[0]);
    return true;
  }
  bool SeekAtLeast(std::string_view key) override { return Seek(key); }
  int64_t Count() const override { return kShuffledSamplerRecords; }
  void WillNeed(std::string_view value, uint64_t bytes) override {
    told_.push_back({static_cast<size_t>(value[0]), bytes});
  }

 private:
  std::vector<Told>& told_;
  std::string bytes_;
  size_t at_ = 0;
};

TEST(ShuffledSamplerTest, EachExtentOfAnEpochIsAnnouncedOnceBeforeItsRecords) {
  std::vector<MemoryCursor::Told> told;
  ShuffledSampler sampler(std::make_unique<MemoryCursor>(&told), 64, {1, 2}, nullptr);
  sampler.SetStride(1);
  ASSERT_EQ(sampler.layout().extent, 4u);
  Record of_place;
  std::set<size_t> announced;
  for (uint64_t place = 0; place < kShuffledSamplerRecords; ++place) {
    sampler.Get(&of_place);
    sampler.Skip(1);
    const size_t record = static_cast<size_t>(of_place.value[0]);
    for (const MemoryCursor::Told& one : told) announced.insert(one.record);
    EXPECT_TRUE(announced.contains(record / 4 * 4)) << record;
  }
  const auto in_epoch = std::ranges::count_if(
      told, [](const MemoryCursor::Told& one) { return one.bytes == 4 * kBytes; });
  EXPECT_EQ(announced.size(), kShuffledSamplerRecords / 4);
  EXPECT_GE(in_epoch, 25);
  EXPECT_LE(told.size(), 25u + 16u + 4u) << "and those of the next window, and four ahead of it";
}

}  // namespace
}  // namespace trainer
