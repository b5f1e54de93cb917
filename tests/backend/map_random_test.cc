// Tests that a device draws the words of the host's generator: a GPU draws with cuRAND's function.

#include "trainer/backend/loops/map_random.h"

#include <gtest/gtest.h>

#include "support/test_device.h"

namespace trainer {
namespace {

// Returns 16 bits of a word, which a float stores exactly.
struct SixteenBits {
  HD float operator()(uint32_t word, float shift) const {
    return static_cast<float>((word >> static_cast<unsigned>(shift)) & 0xffff);
  }
};

// 5003 elements are whole blocks of words and a rest, on every device.
TEST(MapRandomTest, DrawsTheWordsOfTheHost) {
  const auto device = MakeTestDevice();
  constexpr size_t kCount = 5003;
  constexpr uint32_t kPass = 0xfedcba98;
  const PhiloxKey key{0x123456789abcdef0, 0xcafe0007};
  const OnDevice<uint32_t> pass(*device, std::vector<uint32_t>{kPass});
  for (const uint32_t shift : {0u, 16u}) {
    const OnDevice<float> values(*device, std::vector<float>(kCount, static_cast<float>(shift)));
    const Tensor tensor{values.data(), {int64_t{kCount}}, DType::kF32};
    MapRandom(*device, key, pass.data(), SixteenBits{}, tensor, ConstTensor(tensor));
    const std::vector<float> drawn = values.Read();
    for (size_t i = 0; i < kCount; ++i) {
      const uint32_t want = PhiloxWord(key, kPass, i) >> shift & 0xffff;
      ASSERT_EQ(drawn[i], static_cast<float>(want)) << i << ", from bit " << shift;
    }
  }
}

}  // namespace
}  // namespace trainer
