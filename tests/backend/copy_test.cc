// Tests copies between arrays with different strides, and between storage types.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "backend/plan_testing.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/primitives/strided_copy.h"

namespace trainer {
namespace {

using testing::ElementsAre;

// Copies one element after the other, by the definition.
void PlainCopy(const CopyDesc& desc, const std::byte* from, std::byte* to) {
  for (int64_t i = 0; i < desc.Count(); ++i) {
    int64_t rest = i, source = 0, target = 0;
    for (int a = desc.axes - 1; a >= 0; --a) {
      source += rest % desc.length[a] * desc.from_step[a];
      target += rest % desc.length[a] * desc.to_step[a];
      rest /= desc.length[a];
    }
    const auto size = static_cast<int64_t>(desc.element_bytes);
    std::memcpy(to + target * size, from + source * size, desc.element_bytes);
  }
}

class CopyTest : public testing::Test {
 protected:
  void ExpectLikePlain(const CopyDesc& desc, size_t elements) {
    std::vector<std::byte> from(elements * desc.element_bytes), to(from.size()), want(from.size());
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(1 + i % 251);
    PlainCopy(desc, from.data(), want.data());
    const OnDevice<std::byte> source(device_, from), target(device_, to);
    device_.Copy(desc, source.data(), target.data());
    EXPECT_TRUE(target.Read() == want)
        << desc.axes << " axes of elements of " << desc.element_bytes;
  }
  const Device& device_ = MetaDevice();
};

TEST_F(CopyTest, LaysBlocksSideBySide) {
  const OnDevice<float> a(device_, std::vector<float>{1, 2, 3, 4});
  const OnDevice<float> b(device_, std::vector<float>{10, 20}), joined(device_, 6);
  device_.Copy(BlockCopy(sizeof(float), 2, 2, 2, 3), a.data(), joined.data());
  device_.Copy(BlockCopy(sizeof(float), 2, 1, 1, 3), b.data(), joined.data() + 2);
  EXPECT_THAT(joined.Read(), ElementsAre(1, 2, 10, 3, 4, 20));
}

TEST_F(CopyTest, TransposesAMatrix) {
  const OnDevice<float> a(device_, std::vector<float>{1, 2, 3, 4, 5, 6});  // 2 x 3
  const OnDevice<float> turned(device_, 6);
  device_.Copy(CopyDesc().Axis(3, 1, 2).Axis(2, 3, 1), a.data(), turned.data());
  EXPECT_THAT(turned.Read(), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(CopyTest, RepeatsWhatHasAStepOfZero) {
  const OnDevice<float> a(device_, std::vector<float>{1, 2}), tiles(device_, 6);
  device_.Copy(CopyDesc().Axis(3, 0, 2).Axis(2, 1, 1), a.data(), tiles.data());
  EXPECT_THAT(tiles.Read(), ElementsAre(1, 2, 1, 2, 1, 2));
}

TEST_F(CopyTest, MergesAxesThatContinueEachOther) {
  EXPECT_EQ(CopyDesc().Axis(5, 12, 12).Axis(3, 4, 4).Axis(4, 1, 1).axes, 1);
  EXPECT_EQ(CopyDesc().Axis(5, 12, 24).Axis(3, 4, 4).Axis(1, 9, 9).Axis(4, 1, 1).axes, 2);
  EXPECT_EQ(CopyDesc().Axis(5, 12, 12).Axis(3, 4, 4).Axis(4, 1, 1).Count(), 60);
}

TEST_F(CopyTest, EveryFormEqualsTheDefinitionForElementsOfAnySize) {
  for (const size_t size : {1, 2, 4, 8}) {
    ExpectLikePlain(CopyDesc(size), 1);
    ExpectLikePlain(BlockCopy(size, 1, 40001, 0, 0), 40001);
    ExpectLikePlain(BlockCopy(size, 700, 64, 64, 96), 700 * 96);
    ExpectLikePlain(BlockCopy(size, 40001, 1, 2, 1), 80002);
    ExpectLikePlain(BlockCopy(size, 0, 5, 5, 5), 5);
    // These copy images to row-major order and back, a window, and axes in reverse.
    ExpectLikePlain(CopyDesc(size).Axis(7, 630, 630).Axis(9, 1, 70).Axis(70, 9, 1), 7 * 630);
    ExpectLikePlain(CopyDesc(size).Axis(7, 630, 630).Axis(70, 1, 9).Axis(9, 70, 1), 7 * 630);
    ExpectLikePlain(CopyDesc(size).Axis(4, 600, 24).Axis(2, 60, 12).Axis(3, 4, 4).Axis(4, 1, 1),
                    2400);
    ExpectLikePlain(CopyDesc(size).Axis(6, 1, 60).Axis(5, 6, 12).Axis(4, 30, 3).Axis(3, 120, 1),
                    360);
  }
}

TEST_F(CopyTest, WhatIsWrittenPastTheCachesIsTheSame) {
  for (const int64_t block : {int64_t{16}, int64_t{4096}, int64_t{4} << 20}) {
    CopyDesc desc = BlockCopy(sizeof(float), (int64_t{4} << 20) / block, block, block, block);
    desc.written_bytes = int64_t{1} << 30;
    ExpectLikePlain(desc, size_t{4} << 20);
  }
}

TEST_F(CopyTest, ConvertsBetweenStorageTypes) {
  const Values x = Values::Random({40001}, DType::kF32, 1);
  for (const DType type : StoredTypes()) {
    const Values narrow = Values::Unset(Shape{40001}, type), back = Values::Unset({40001});
    device_.Convert(x, narrow);
    device_.Convert(narrow, back);
    DispatchDtype(type, [&](auto tag) {
      for (int64_t i = 0; i < x.size(); ++i) {
        typename decltype(tag)::Type rounded;
        Store(rounded, x[i]);
        ASSERT_EQ(narrow[i], Load(rounded));
        ASSERT_EQ(back[i], narrow[i]);
      }
    });
  }
}

}  // namespace
}  // namespace trainer
