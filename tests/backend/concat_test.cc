#include "trainer/backend/memory/concat.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backend/plan_testing.h"

namespace trainer {
namespace {

// Concatenates and splits `blocks` blocks with parts of these lengths, counted in elements of
// `type`. If `leaves_out`, part 1 is a null pointer.
void ExpectJoinedAndCut(int64_t blocks, const std::vector<int64_t>& lengths, DType type,
                        bool leaves_out = false) {
  const ConcatDesc desc = {SizeOf(type), blocks, lengths};
  const int64_t step = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  EXPECT_EQ(desc.Length(), step);
  const Values whole = Values::Of({blocks * step}, std::vector<float>(blocks * step, 7), type);
  std::vector<Values> parts, cut;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (size_t k = 0; k < lengths.size(); ++k) {
    const Shape shape = {blocks * lengths[k]};
    const bool is_null = leaves_out && k == 1;
    parts.push_back(Values::Random(shape, type, static_cast<uint32_t>(k)));
    cut.push_back(Values::Of(shape, std::vector<float>(shape.Count(), 5), type));
    from.push_back(is_null ? nullptr : ConstTensor(parts[k]).As<std::byte>());
    to.push_back(is_null ? nullptr : Tensor(cut[k]).As<std::byte>());
  }
  ConcatTensors(MetaDevice(), desc, from, Tensor(whole).As<std::byte>());
  SplitTensors(MetaDevice(), desc, ConstTensor(whole).As<std::byte>(), to);
  int64_t start = 0;
  for (size_t k = 0; k < lengths.size(); ++k) {
    const bool is_null = leaves_out && k == 1;
    for (int64_t i = 0; i < blocks * lengths[k]; ++i) {
      const int64_t at = i / lengths[k] * step + start + i % lengths[k];
      ASSERT_EQ(whole[at], is_null ? 7 : parts[k][i]) << "part " << k << " number " << i;
      ASSERT_EQ(cut[k][i], is_null ? 5 : parts[k][i]) << "part " << k << " number " << i;
    }
    start += lengths[k];
  }
}

TEST(JoinPartsTest, BlocksComeInTurn) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    ExpectJoinedAndCut(6, {64, 128, 32, 32}, type);  // in elements of 16 bytes
    ExpectJoinedAndCut(5, {6, 10, 2}, type);
    ExpectJoinedAndCut(7, {3, 1, 5}, type);
    ExpectJoinedAndCut(1, {4, 4}, type);
    ExpectJoinedAndCut(3, {4}, type);
  }
}

TEST(JoinPartsTest, MoreThanOneKernelTakes) {
  ExpectJoinedAndCut(4, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, DType::kF32);
}

TEST(JoinPartsTest, PartsMayBeEmptyOrLeftOut) {
  ExpectJoinedAndCut(4, {8, 4, 0, 12}, DType::kF32, true);
}

TEST(JoinPartsTest, NothingIsNothing) { ExpectJoinedAndCut(0, {8, 4}, DType::kF32); }

}  // namespace
}  // namespace trainer
