// Tests the fields of data_param that limit the records of a run or disable random changes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "input/every_source.h"
#include "trainer/storage/checksums.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::Not;

std::vector<std::string> LimitedKinds() {
  std::vector<std::string> kinds = EverySource::Kinds();
  kinds.emplace_back("memory");
  return kinds;
}

std::unique_ptr<BatchQueue> OpenLimited(EverySource& sources, const std::string& kind, int batch,
                                        const std::string& fields, Rank rank = {},
                                        const std::string& transform = "") {
  sources.data_fields = fields;
  InputEnv env{caffe::TRAIN, {1, 2}, rank, 1};
  return sources.Make(kind, batch, transform, env);
}

// Runs a test on every source, with 20 records.
class LimitTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<BatchQueue> Open(int batch, const std::string& fields, Rank rank = {}) {
    return OpenLimited(sources_, GetParam(), batch, fields, rank);
  }
  bool is_random() const { return GetParam().find("random") != std::string::npos; }

  EverySource sources_{20};
};
INSTANTIATE_TEST_SUITE_P(Of, LimitTest, testing::ValuesIn(LimitedKinds()), [](const auto& one) {
  std::string name = one.param;
  std::ranges::replace(name, ' ', '_');
  return name;
});

TEST_P(LimitTest, ReadsTheFirstRecordsEpochAfterEpoch) {
  const auto source = Open(7, "limit: 7");
  EXPECT_EQ(source->CountRecords(true), 7);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> numbers = EverySource::Records(*source, 1);
    if (is_random()) std::ranges::sort(numbers);
    EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4, 5, 6)) << "epoch " << epoch;
  }
  EXPECT_EQ(source->position().epoch, 3u);
}

TEST_P(LimitTest, WithoutALimitOrWithALargeOneReadsAll) {
  const std::vector<int> all = EverySource::Records(*Open(20, ""), 2);
  EXPECT_EQ(EverySource::Records(*Open(20, "limit: 0"), 2), all);
  EXPECT_EQ(EverySource::Records(*Open(20, "limit: 20"), 2), all);
  EXPECT_EQ(EverySource::Records(*Open(20, "limit: 21"), 2), all);
}

TEST_P(LimitTest, ResumesInTheMiddleOfAnEpoch) {
  const auto whole = Open(2, "limit: 5");
  EverySource::Records(*whole, 3);  // the second epoch has begun
  const Position position = whole->position();
  const std::vector<int> rest = EverySource::Records(*whole, 5);
  const auto resumed = Open(2, "limit: 5");
  resumed->Restore(position);
  EXPECT_EQ(EverySource::Records(*resumed, 5), rest);
}

TEST_P(LimitTest, RanksDivideWhatTheLimitLeaves) {
  if (GetParam() == "memory") GTEST_SKIP() << "covered by the others";
  std::vector<int> alone = EverySource::Records(*Open(8, "limit: 6"), 1);
  std::vector<int> together(8);
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<int> own = EverySource::Records(*Open(2, "limit: 6", {rank, 4}), 1);
    for (size_t i = 0; i < 2; ++i) together[i * 4 + static_cast<size_t>(rank)] = own[i];
  }
  EXPECT_EQ(together, alone);
}

TEST(LimitedDatabaseTest, ChecksumsStayWithTheirRecords) {
  const TempFolder folder;
  WriteDb("LMDB", folder / "db", NumberedRecords(9));
  const auto open = [&] {
    return OpenDatabase(KeptLayer("name: 'd' type: 'Data' top: 'x' top: 'y' data_param { backend: "
                                  "LMDB batch_size: 2 limit: 3 source: '" +
                                  (folder / "db") + "' }"),
                        {caffe::TRAIN, {1, 2}, {}, 1});
  };
  std::vector<uint32_t> sums;
  for (const auto& [key, value] : NumberedRecords(9)) sums.push_back(RecordCrc(key, value));
  WriteChecksums(ChecksumPath(folder / "db"), sums);
  EXPECT_THAT(EverySource::Records(*open(), 4), ElementsAre(0, 1, 2, 0, 1, 2, 0, 1));
}

TEST(LimitedWindowsTest, AreRefused) {
  EverySource sources(4);
  EXPECT_THAT(Catch([&] {
                OpenLimited(sources, "windows", 2, "limit: 2", {}, "crop_size: 3 mirror: true");
              }),
              Refuses(ErrorCode::kConfig,
                      "net.prototxt:1:61: layer 'd' (WindowData): a WindowData layer draws its "
                      "windows at random from the whole list, so limit (--limit, --overfit) does "
                      "not apply to it; shorten the list instead"));
}

TEST(WindowsTest, RefuseChangesOfWholeImages) {
  EverySource sources(4);
  for (const std::string field :
       {"cutmix: 1 mixup_classes: 3", "vflip: 1", "auto_augment: TRIVIAL",
        "random_affine_param { degrees: 9 }", "gaussian_blur_param { }"}) {
    EXPECT_THAT(
        Catch([&] {
          sources.Make("windows", 2, "crop_size: 3 " + field, {caffe::TRAIN, {1, 2}, {}, 1});
        }),
        Refuses(ErrorCode::kConfig, "a WindowData layer does not support this field; remove it"))
        << field;
  }
}

constexpr char kRandomChanges[] =
    "mirror: true crop_size: 3 mixup: 0.5 cutmix: 1 mixup_classes: 20 vflip: 0.5 auto_augment: "
    "RANDAUGMENT random_affine_param { degrees: 90 } gaussian_blur_param { } "
    "random_erasing_param { probability: 1 }";

TEST(NoAugmentTest, ARecordIsTheSameInEveryEpochAndInTest) {
  EverySource sources(4);
  for (const std::string kind : {"LMDB", "images", "memory"}) {
    const auto train = OpenLimited(sources, kind, 4, "augment: false", {}, kRandomChanges);
    const std::vector<float> first = Numbers(train->Next().output(0));
    for (int epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(Numbers(train->Next().output(0)), first) << kind;
    }
    const auto test = sources.Make(kind, 4, "crop_size: 3", {caffe::TEST, {1, 2}, {}, 1});
    EXPECT_EQ(Numbers(test->Next().output(0)), first) << kind << ": the middle, not mirrored";
    EXPECT_THAT(Numbers(train->Next().output(1)), ElementsAre(0, 1, 2, 3)) << "labels, not shares";
    const auto changed = OpenLimited(sources, kind, 4, "", {}, kRandomChanges);
    EXPECT_THAT(Numbers(changed->Next().output(0)), Not(testing::Eq(first))) << kind;
  }
}

TEST(NoAugmentTest, RandomSizesAreTheSameInEveryEpoch) {
  EverySource sources(4, 8, 9);
  for (const std::string transform :
       {"crop_size: 4 random_resize_param { min_size: 4 max_size: 8 }",
        "crop_size: 4 random_aspect_ratio_param { }",
        "crop_size: 4 random_resized_crop_param { }"}) {
    const auto train = OpenLimited(sources, "LMDB", 4, "augment: false", {}, transform);
    const std::vector<float> first = Numbers(train->Next().output(0));
    for (int epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(Numbers(train->Next().output(0)), first) << transform;
    }
  }
}

}  // namespace
}  // namespace trainer
