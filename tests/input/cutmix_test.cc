// Tests CutMix, alone and with mixup: each image gets a rectangle of the next one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "mixup.h"
#include "storage/test_data.h"
#include "support/golden.h"
#include "trainer/base/text/text.h"
#include "trainer/input/batch_queue.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr PhiloxKey kCutMixKey{1, 2};
constexpr int kCutRecords = 7, kCutBatch = 3, kCutHeight = 5, kCutWidth = 6;
constexpr int64_t kCutCount = 2 * kCutHeight * kCutWidth;  // values of an image of 2 channels

std::vector<ImageMix> CutMixes(const MixOptions& options, int count, int64_t height = 10,
                               int64_t width = 10) {
  std::vector<uint64_t> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(static_cast<uint64_t>(i));
  return DrawMixes(kCutMixKey, options, numbers, height, width);
}

TEST(CutMixTest, GoldenValuesOfTorchvisionsBoxes) {
  for (const GoldenCase& golden : ReadGolden("images/augment_ops.txt")) {
    if (golden.name != "boxes") continue;
    const std::vector<float>& rows = golden.Tensor("boxes").values;
    ASSERT_EQ(rows.size(), 400u);
    for (size_t at = 0; at < rows.size(); at += 10) {
      const auto number = [&](size_t i) { return std::lround(rows[at + i]); };
      const CutBox box =
          BoxAround(1 - static_cast<double>(rows[at]), number(1), number(2), number(3), number(4));
      EXPECT_EQ(box.top, number(5)) << at / 10;
      EXPECT_EQ(box.left, number(6)) << at / 10;
      EXPECT_EQ(box.bottom, number(7)) << at / 10;
      EXPECT_EQ(box.right, number(8)) << at / 10;
      const double kept = 1 - static_cast<double>((box.bottom - box.top) * (box.right - box.left)) /
                                  static_cast<double>(number(3) * number(4));
      EXPECT_NEAR(kept, rows[at + 9], 1e-5) << at / 10;
    }
    return;
  }
  ADD_FAILURE() << "no boxes";
}

TEST(CutMixTest, LabelsGetTheAreaThatIsLeft) {
  for (const ImageMix& mix : CutMixes({.cutmix = 1}, 200)) {
    const int area = (mix.box.bottom - mix.box.top) * (mix.box.right - mix.box.left);
    EXPECT_FLOAT_EQ(mix.label_weight, 1 - static_cast<float>(area) / 100);
    EXPECT_EQ(mix.pixel_weight, 1.0f);
  }
}

TEST(CutMixTest, BoxesAreUniformAndAreasFollowTheBetaDistribution) {
  constexpr int kDraws = 4000, kSide = 1000;
  double x = 0, y = 0, cut = 0;
  int whole = 0;  // boxes that no border clips
  for (const ImageMix& mix : CutMixes({.cutmix = 1}, kDraws, kSide, kSide)) {
    x += (mix.box.left + mix.box.right) / 2.0 / kSide;
    y += (mix.box.top + mix.box.bottom) / 2.0 / kSide;
    if (mix.box.left == 0 || mix.box.top == 0 || mix.box.right == kSide ||
        mix.box.bottom == kSide) {
      continue;
    }
    ++whole;
    cut += 1 - mix.label_weight;
  }
  EXPECT_NEAR(x / kDraws, 0.5, 0.02);
  EXPECT_NEAR(y / kDraws, 0.5, 0.02);
  // With a uniform share a, a box is inside with probability (1 - sqrt a)^2, which is 1 / 6 on
  // average. These boxes have a mean share of 1 / 5.
  EXPECT_NEAR(whole, kDraws / 6, 120);
  EXPECT_NEAR(cut / whole, 0.2, 0.04);
}

TEST(CutMixTest, SwitchProbIsTheShareOfCutMix) {
  const auto cut = [](double switch_prob) {
    int boxes = 0;
    for (const ImageMix& mix : CutMixes({0.4, 8, switch_prob}, 1000)) boxes += !mix.box.IsEmpty();
    return boxes;
  };
  EXPECT_EQ(cut(0), 0);
  EXPECT_NEAR(cut(0.3), 300, 50);
  EXPECT_GT(cut(1), 990);
}

TEST(CutMixTest, MixupKeepsItsDraws) {
  const std::vector<ImageMix> mixes = CutMixes({.mixup = 0.4, .cutmix = 0}, 20);
  for (uint64_t number = 0; number < mixes.size(); ++number) {
    EXPECT_EQ(mixes[number].pixel_weight,
              static_cast<float>(DrawMixWeight(kCutMixKey, number, 0.4)));
    EXPECT_EQ(mixes[number].label_weight, mixes[number].pixel_weight);
    EXPECT_TRUE(mixes[number].box.IsEmpty());
  }
}

class CutMixBatchTest : public testing::Test {
 protected:
  CutMixBatchTest() {
    Records records;
    for (int i = 0; i < kCutRecords; ++i) {
      std::string pixels;
      for (int p = 0; p < kCutCount; ++p) pixels.push_back(static_cast<char>(30 * i + p % 29));
      records.emplace_back(Key8(i),
                           MakeDatum(2, kCutHeight, kCutWidth, pixels, i).SerializeAsString());
    }
    WriteDb("LMDB", folder_ / "db", records);
  }

  std::unique_ptr<BatchQueue> Open(const std::string& transform, int threads = 1, int parts = 1,
                                   bool bytes = false, Rank rank = {},
                                   caffe::Phase phase = caffe::TRAIN) const {
    InputEnv env{phase, kCutMixKey, rank.size > 1 ? rank : Rank{0, parts}, threads};
    env.virtual_ranks = parts;
    env.bytes = bytes;
    return OpenDatabase(
        KeptLayer(Join("name: 'd' type: 'Data' top: 'x' top: 'y' data_param { backend: LMDB "
                       "batch_size: ",
                       kCutBatch, " source: '", folder_ / "db", "' } transform_param { ", transform,
                       " }")),
        env);
  }

  TempFolder folder_;
};

TEST_F(CutMixBatchTest, ImagesGetABoxOfTheNextOneAndLabelsItsShare) {
  for (const int threads : {1, 3}) {
    const auto mixed = Open("scale: 0.5 cutmix: 1 mixup_classes: 7", threads);
    EXPECT_EQ(mixed->shape(1), (Shape{kCutBatch, 7}));
    for (uint64_t batch = 0; batch < 6; ++batch) {
      const auto fresh = Open("scale: 0.5");
      for (uint64_t i = 0; i < batch; ++i) fresh->Next();
      const Batch &was = fresh->Next(), &is = mixed->Next();
      const std::vector<uint64_t> numbers{batch * 3, batch * 3 + 1, batch * 3 + 2};
      const auto mixes = DrawMixes(kCutMixKey, {.cutmix = 1}, numbers, kCutHeight, kCutWidth);
      for (size_t i = 0; i < kCutBatch; ++i) {
        const size_t next = (i + 1) % kCutBatch;
        for (int64_t p = 0; p < kCutCount; ++p) {
          const int64_t h = p / (2 * kCutWidth), w = p / 2 % kCutWidth;
          const size_t from = mixes[i].box.Holds(h, w) ? next : i;
          EXPECT_EQ(is.output(0)[i * kCutCount + static_cast<size_t>(p)],
                    was.output(0)[from * kCutCount + static_cast<size_t>(p)]);
        }
        std::vector<float> want(7, 0.0f);
        want[static_cast<size_t>(was.output(1)[i])] += mixes[i].label_weight;
        want[static_cast<size_t>(was.output(1)[next])] += 1 - mixes[i].label_weight;
        for (size_t c = 0; c < 7; ++c) EXPECT_FLOAT_EQ(is.output(1)[i * 7 + c], want[c]);
      }
    }
  }
}

TEST_F(CutMixBatchTest, BatchesOfBytesHaveTheBoxes) {
  EXPECT_FALSE(Open("mixup: 1 mixup_classes: 7", 1, 1, true)->normalization()->cut);
  for (const std::string transform :
       {"cutmix: 1 mixup_classes: 7", "cutmix: 1 mixup: 0.2 mixup_classes: 7"}) {
    for (const int threads : {1, 3}) {
      const auto plain = Open("", threads, 1, true), bytes = Open(transform, threads, 1, true);
      const auto floats = Open(transform, threads);
      EXPECT_TRUE(bytes->normalization()->mixed && bytes->normalization()->cut);
      int cut = 0;
      for (uint64_t batch = 0; batch < 5; ++batch) {
        const Batch &was = plain->Next(), &is = bytes->Next();
        EXPECT_THAT(is.pixels(), ElementsAreArray(was.pixels()));
        EXPECT_THAT(is.output(1), ElementsAreArray(floats->Next().output(1)));
        for (const CutBox& box : is.cut_boxes()) cut += !box.IsEmpty();
      }
      EXPECT_GT(cut, 0);
    }
  }
}

TEST_F(CutMixBatchTest, VirtualRanksHaveTheBatchesOfRanks) {
  const std::string transform = "cutmix: 1 mixup: 0.2 mixup_classes: 7";
  const auto four = Open(transform, 2, 4);
  std::vector<std::unique_ptr<BatchQueue>> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.push_back(Open(transform, 1, 1, false, {rank, 4}));
  for (int batch = 0; batch < 4; ++batch) {
    const Batch& all = four->Next();
    std::vector<float> images, labels;
    for (const auto& rank : ranks) {
      const Batch& own = rank->Next();
      images.insert(images.end(), own.output(0).begin(), own.output(0).end());
      labels.insert(labels.end(), own.output(1).begin(), own.output(1).end());
    }
    EXPECT_THAT(all.output(0), ElementsAreArray(images));
    EXPECT_THAT(all.output(1), ElementsAreArray(labels));
  }
}

TEST_F(CutMixBatchTest, ResumesBitForBit) {
  const std::string transform = "cutmix: 1 mixup_classes: 7 mirror: true";
  const auto whole = Open(transform), resumed = Open(transform);
  for (int i = 0; i < 4; ++i) whole->Next();
  resumed->Restore(whole->position());
  for (int i = 0; i < 3; ++i) {
    const Batch &a = whole->Next(), &b = resumed->Next();
    EXPECT_THAT(b.output(0), ElementsAreArray(a.output(0)));
    EXPECT_THAT(b.output(1), ElementsAreArray(a.output(1)));
  }
}

TEST_F(CutMixBatchTest, TestsAreNotMixed) {
  const auto test = Open("cutmix: 1 mixup_classes: 7", 1, 1, false, {}, caffe::TEST);
  EXPECT_EQ(test->shape(1), (Shape{kCutBatch}));
}

TEST_F(CutMixBatchTest, RefusesWhatMakesNoSense) {
  const auto refusal = [&](const std::string& fields) {
    const Thrown thrown = Catch([&] { Open(fields); });
    EXPECT_EQ(thrown.code, static_cast<int>(ErrorCode::kConfig)) << thrown.text;
    EXPECT_THAT(thrown.text, HasSubstr("net.prototxt:1:"));
    return thrown.text;
  };
  EXPECT_THAT(refusal("cutmix: -1 mixup_classes: 7"),
              HasSubstr("cutmix is -1; it must be 0 to 100, e.g. 1"));
  EXPECT_THAT(refusal("cutmix: 1"),
              HasSubstr("cutmix needs mixup_classes, the number of classes; it is 0. Each label"));
  EXPECT_THAT(refusal("switch_prob: 2"),
              HasSubstr("switch_prob is 2; it must be 0 (only mixup) to 1 (only cutmix)"));
  const auto few = Open("cutmix: 1 mixup_classes: 4");
  few->Next();
  EXPECT_THAT(Catch([&] { few->Next(); }),
              Refuses(ErrorCode::kData, "has label 4, but mixup_classes is 4, so labels must be"));
}

}  // namespace
}  // namespace trainer
