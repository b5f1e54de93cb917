#include "trainer/input/image_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "storage/test_data.h"
#include "trainer/base/text/text.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageListTest : public testing::Test {
 protected:
  std::string List(const std::string& text) {
    WriteBytes(list_, text);
    return list_;
  }
  // Writes a list of `count` grey 1x1 pictures; pixel and label are the number.
  void NumberedImages(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      const std::string name = "p" + std::to_string(i) + ".pgm";
      WriteBytes(folder_ / name, "P5 1 1 255\n" + std::string(1, static_cast<char>(i)));
      text += name + " " + std::to_string(i) + "\n";
    }
    List(text);
  }
  std::unique_ptr<BatchQueue> Make(const std::string& fields, const std::string& more = "",
                                   Rank rank = {}, caffe::Phase phase = caffe::TRAIN) {
    const std::string text = "name: \"d\"\ntype: \"ImageData\" top: \"x\" top: \"y\"\n" +
                             ("image_data_param { source: \"" + list_) + "\" root_folder: \"" +
                             (folder_ / "") + "\"\n" + fields + " }\n" + more;
    return OpenImageList(KeptLayer(text), {phase, PhiloxKey{1, 2}, rank});
  }
  Thrown Refusal(const std::string& fields, const std::string& more = "") {
    return Catch([&] { Make(fields, more)->Next(); });
  }
  static std::vector<int> Labels(BatchQueue& source, int batches) {
    std::vector<int> labels;
    for (int i = 0; i < batches; ++i) {
      for (const float label : source.Next().output(1)) labels.push_back(static_cast<int>(label));
    }
    return labels;
  }

  TempFolder folder_;
  std::string list_ = folder_ / "list.txt";
};

// The first value of gray16.png is 0x6586.
TEST_F(ImageListTest, A16BitPngKeepsItsLowerBitsWhereNothingNeedsBytes) {
  WriteBytes(folder_ / "16.png", Picture("gray16.png"));
  WriteBytes(folder_ / "8.png", Picture("gray.png"));
  const auto first = [&](const std::string& list, const std::string& fields,
                         const std::string& more = "") {
    List(list);
    const std::unique_ptr<BatchQueue> source = Make("is_color: false " + fields, more);
    const auto images = source->Next().output(0);
    return std::pair(images.front(), images[images.size() / 2]);
  };
  const std::string deep = "16.png 0\n", both = "batch_size: 2";
  EXPECT_FLOAT_EQ(first(deep, "batch_size: 1").first, 0x6586 / 257.f);
  EXPECT_FLOAT_EQ(first(deep, "batch_size: 1", "transform_param { scale: 2 }").first,
                  2 * 0x6586 / 257.f);
  EXPECT_FLOAT_EQ(first(deep + "8.png 1\n", both).first, 0x6586 / 257.f);
  // The first picture decides the bit depth of all.
  EXPECT_EQ(first("8.png 0\n" + deep, both).second, 0x65);
  // Resizing and cropping keep the lower bits. gray16.png is 11 wide and 7 high.
  EXPECT_FLOAT_EQ(first(deep, "batch_size: 1 new_height: 7 new_width: 11").first, 0x6586 / 257.f);
  EXPECT_NEAR(first(deep, "batch_size: 1 new_height: 21 new_width: 33").first, 0x6586 / 257.f,
              1e-3f);
  const float cropped =
      first(deep, "batch_size: 1",
            "transform_param { random_resized_crop_param { min_area_ratio: 1 } crop_size: 5 }")
          .first;
  EXPECT_NE(cropped, std::floor(cropped));
  // Random colour changes convert the image to bytes.
  const float changed =
      first(deep, "batch_size: 1", "transform_param { color_jitter_param { brightness: 0.1 } }")
          .first;
  EXPECT_EQ(changed, std::floor(changed));
}

TEST_F(ImageListTest, SeveralLabelsAreRowsOfTheSecondTop) {
  NumberedImages(3);
  List("p0.pgm 0 3 7\np1.pgm 1 -2 0.5\np2.pgm 4 5 6e2\n");
  const auto source = Make("batch_size: 2 is_color: false");
  EXPECT_EQ(source->shape(1), (Shape{2, 3}));
  EXPECT_THAT(Numbers(source->Next().output(1)), ElementsAre(0, 3, 7, 1, -2, 0.5f));
  EXPECT_THAT(Numbers(source->Next().output(1)), ElementsAre(4, 5, 600, 0, 3, 7));
}

TEST_F(ImageListTest, ALabelMayBeANumberThatIsNotAnInteger) {
  NumberedImages(2);
  List("p0.pgm 0.13\np1.pgm 2\n");
  const auto source = Make("batch_size: 2 is_color: false");
  EXPECT_EQ(source->shape(1), (Shape{2}));
  EXPECT_THAT(Numbers(source->Next().output(1)), ElementsAre(0.13f, 2));
}

TEST_F(ImageListTest, LabelsStayWithTheirImagesInEveryOrder) {
  NumberedImages(9);
  std::string text;
  for (int i = 0; i < 9; ++i) text += Join("p", i, ".pgm ", i, " ", i * 10, "\n");
  List(text);
  const auto source = Make("batch_size: 9 shuffle: true is_color: false");
  const Batch& batch = source->Next();
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(batch.output(1)[2 * i], batch.output(0)[i]);
    EXPECT_EQ(batch.output(1)[2 * i + 1], 10 * batch.output(0)[i]);
  }
}

// One rank with a batch of 8 reads what four ranks with batches of 2 read together.
TEST_F(ImageListTest, RanksDivideSeveralLabels) {
  NumberedImages(8);
  std::string text;
  for (int i = 0; i < 8; ++i) text += Join("p", i, ".pgm ", i, " ", i + 0.5, "\n");
  List(text);
  const auto all = Make("batch_size: 8 is_color: false");
  const std::vector<float> labels = Numbers(all->Next().output(1));
  for (int rank = 0; rank < 4; ++rank) {
    const auto one = Make("batch_size: 2 is_color: false", "", Rank{rank, 4});
    const std::vector<float> own = Numbers(one->Next().output(1));
    for (size_t i = 0; i < 2; ++i) {
      const size_t row = i * 4 + static_cast<size_t>(rank);
      EXPECT_EQ(own[2 * i], labels[2 * row]);
      EXPECT_EQ(own[2 * i + 1], labels[2 * row + 1]);
    }
  }
}

TEST_F(ImageListTest, MixupAndCutMixRefuseSeveralLabels) {
  NumberedImages(2);
  List("p0.pgm 0 1\np1.pgm 1 0\n");
  for (const std::string field : {"mixup", "cutmix"}) {
    EXPECT_THAT(Refusal("batch_size: 2 is_color: false",
                        "transform_param { " + field + ": 1 mixup_classes: 2 }"),
                Refuses(ErrorCode::kData, "has 2 labels, but " + field +
                                              " mixes one class per record; remove " + field));
  }
}

TEST_F(ImageListTest, SplitsAtTheLastBlank) {
  const auto images = ReadImageList(List("a.jpg 3\r\n\r\nmy cat.png   -1 \r\nsub/b\t7")).images;
  ASSERT_EQ(images.size(), 3u);
  EXPECT_EQ(images[0].path, "a.jpg");
  EXPECT_EQ(images[0].label, 3);
  EXPECT_EQ(images[1].path, "my cat.png");
  EXPECT_EQ(images[1].label, -1);
  EXPECT_EQ(images[1].line, 3);
  EXPECT_EQ(images[2].path, "sub/b");
  EXPECT_EQ(images[2].label, 7);
}

TEST_F(ImageListTest, AByteOrderMarkIsNoPartOfTheFirstName) {
  const auto images = ReadImageList(List("\xEF\xBB\xBF"
                                         "a.jpg 3\r\nb.jpg 4\r\n"))
                          .images;
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[0].path, "a.jpg");
}

TEST_F(ImageListTest, RefusesBadListsWithTheLine) {
  const auto refusal = [&](const std::string& text) {
    return Catch([&] { ReadImageList(List(text)); });
  };
  EXPECT_THAT(Catch([&] { ReadImageList(folder_ / "none.txt"); }).code, 66);
  EXPECT_THAT(refusal(""), Refuses(ErrorCode::kData, "list.txt: the list has no images"));
  EXPECT_THAT(refusal("\r\n \n"), Refuses(ErrorCode::kData, "the list has no images"));
  EXPECT_THAT(refusal("a 1\nb.jpg\n"),
              Refuses(ErrorCode::kData, "list.txt:2: no label in 'b.jpg'; "));
  for (const char* label : {"cat", "99999999999", "0x1", "1,2", "nan", "1e99"}) {
    EXPECT_THAT(refusal(std::string("a ") + label),
                Refuses(ErrorCode::kData,
                        "list.txt:1: the label is not a 32-bit integer and not "
                        "a finite number in 'a "));
  }
  EXPECT_THAT(refusal("a.jpg 1 2\nb c.jpg 3\n"),
              Refuses(ErrorCode::kData,
                      "list.txt:2: 'b c.jpg' has 1 label, but 'a.jpg' has 2 labels (line 1); all "
                      "lines must have the same number of labels"));
}

TEST_F(ImageListTest, GivesPicturesInOrderAndWraps) {
  NumberedImages(3);
  const auto source = Make("batch_size: 2 is_color: false");
  EXPECT_EQ(source->shape(), (Shape{2, 1, 1, 1}));
  const Batch& batch = source->Next();
  EXPECT_EQ(Numbers(batch.output(0)), Numbers(batch.output(1)));
  EXPECT_THAT(Labels(*source, 2), ElementsAre(2, 0, 1, 2));
}

TEST_F(ImageListTest, ResizesAndMakesColour) {
  WriteBytes(folder_ / "a.jpg", Picture("gray.jpg"));
  WriteBytes(folder_ / "b.png", Picture("rgb.png"));
  List("a.jpg 1\nb.png 2\n");
  EXPECT_EQ(Make("batch_size: 2")->shape(), (Shape{2, 3, 7, 11}));
  EXPECT_EQ(Make("batch_size: 2 new_height: 4 new_width: 5")->shape(), (Shape{2, 3, 4, 5}));
  EXPECT_EQ(Make("batch_size: 2 short_side: 14")->shape(), (Shape{2, 3, 14, 22}));
  EXPECT_EQ(Make("batch_size: 2", "transform_param { crop_size: 6 }")->shape(),
            (Shape{2, 3, 6, 6}));
}

TEST_F(ImageListTest, EachEpochHasAnOrderOfItsOwn) {
  NumberedImages(20);
  const auto source = Make("batch_size: 20 shuffle: true is_color: false");
  std::set<std::vector<int>> orders;
  for (int epoch = 0; epoch < 5; ++epoch) {
    std::vector<int> labels = Labels(*source, 1);
    orders.insert(labels);
    std::ranges::sort(labels);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(labels[static_cast<size_t>(i)], i);
  }
  EXPECT_EQ(orders.size(), 5u);
}

// permutation() in scripts/golden/philox.py computed the orders.
TEST_F(ImageListTest, GoldenOrdersOfTheEpochs) {
  NumberedImages(5);
  const auto source = Make("batch_size: 5 shuffle: true is_color: false");
  EXPECT_THAT(Labels(*source, 1), ElementsAre(0, 4, 1, 2, 3));
  EXPECT_THAT(Labels(*source, 1), ElementsAre(0, 3, 2, 4, 1));
  EXPECT_THAT(Labels(*source, 1), ElementsAre(1, 2, 4, 0, 3));
}

TEST_F(ImageListTest, GoesOnBitForBitFromEverySavedPosition) {
  NumberedImages(5);
  const char* fields = "batch_size: 3 shuffle: true is_color: false rand_skip: 4";
  const char* transform = "transform_param { mirror: true scale: 0.5 }";
  std::vector<std::vector<float>> labels;
  std::vector<std::string> positions;
  const auto whole = Make(fields, transform);
  for (int i = 0; i < 12; ++i) {
    positions.push_back(whole->position().Encode());
    labels.push_back(Numbers(whole->Next().output(1)));
  }
  for (size_t from = 0; from < 12; ++from) {
    const auto source = Make(fields, transform);
    source->Restore(Position::Decode(positions[from]));
    for (size_t i = from; i < 12; ++i) {
      EXPECT_EQ(source->position().Encode(), positions[i]);
      ASSERT_EQ(Numbers(source->Next().output(1)), labels[i]) << from << " " << i;
    }
  }
}

TEST_F(ImageListTest, RefusesThePositionOfAnotherList) {
  NumberedImages(2);
  for (const char* key :
       {"epoch 0 line 9 p1.pgm", "epoch 0 line 1 p1.pgm", "00000001", "epoch 0"}) {
    EXPECT_THAT(Catch([&] {
                  Make("is_color: false")->Restore({1, 0, key});
                }),
                Refuses(ErrorCode::kBadSnapshot, "which is not in this data set"));
  }
}

TEST_F(ImageListTest, ReplicasShareAnEpoch) {
  NumberedImages(6);
  std::vector<int> all;
  for (int rank = 0; rank < 2; ++rank) {
    const auto source = Make("batch_size: 3 shuffle: true is_color: false", "", Rank{rank, 2});
    const std::vector<int> labels = Labels(*source, 1);
    all.insert(all.end(), labels.begin(), labels.end());
  }
  std::ranges::sort(all);
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(ImageListTest, SkipsOnlyInTheFirstEpoch) {
  NumberedImages(4);
  const auto source = Make("rand_skip: 4 is_color: false");
  const std::vector<int> labels = Labels(*source, 12);
  EXPECT_LT(labels[0], 4);
  for (size_t i = 1; i < labels.size(); ++i) EXPECT_EQ(labels[i], (labels[i - 1] + 1) % 4);
  EXPECT_THAT(Refusal("rand_skip: 5"),
              Refuses(ErrorCode::kConfig, "has only 4 images; it must be at most that"));
}

TEST_F(ImageListTest, LogsAsCaffeDoes) {
  NumberedImages(2);
  const LogLines log;
  Make("shuffle: true is_color: false rand_skip: 1");
  EXPECT_THAT(log.Get(), ElementsAre("Opening file " + list_, "Shuffling data",
                                     "A total of 2 images.", "Skipping first 0 data points."));
}

TEST_F(ImageListTest, NamesTheLineOfABadImage) {
  WriteBytes(folder_ / "good.png", Picture("gray.png"));
  WriteBytes(folder_ / "bad.png", Picture("gray.png").substr(0, 99));
  List("good.png 0\nnone.png 1\n");
  EXPECT_THAT(Refusal("batch_size: 2"),
              Refuses(ErrorCode::kNoInput, "list.txt:2: cannot read the image: "));
  List("good.png 0\n\nbad.png 1\n");
  const std::string want = "list.txt:3: image '" + (folder_ / "bad.png") + "' is a damaged PNG";
  EXPECT_THAT(Refusal("batch_size: 2"), Refuses(ErrorCode::kData, want.c_str()));
  WriteBytes(folder_ / "bad.png", Picture("turned5.jpg"));
  EXPECT_THAT(Refusal("batch_size: 2"),
              Refuses(ErrorCode::kData,
                      "record 'epoch 0 line 3 bad.png' gives a 3x11x7 image, but "
                      "record 'epoch 0 line 1 good.png' gave 3x7x11"));
}

TEST_F(ImageListTest, RefusesBadFields) {
  NumberedImages(1);
  EXPECT_THAT(Refusal("new_height: 3"),
              Refuses(ErrorCode::kConfig,
                      "net.prototxt:4:1: layer 'd' (ImageData): new_height and new_width need "
                      "each other"));
  EXPECT_THAT(Refusal("short_side: 3 new_height: 3 new_width: 3"),
              Refuses(ErrorCode::kConfig,
                      "short_side cannot be combined with new_height and "
                      "new_width"));
  EXPECT_THAT(Refusal("new_height: 3000000000 new_width: 1"),
              Refuses(ErrorCode::kConfig, "new_height is 3000000000; it must be at most 1048576"));
  EXPECT_THAT(
      Refusal("new_height: 1000000 new_width: 1000000"),
      Refuses(ErrorCode::kData, "and would become 1000000x1000000; the limit is 134217728"));
  EXPECT_THAT(Refusal("batch_size: 0"), Refuses(ErrorCode::kConfig, "batch_size is 0"));
  list_.clear();
  EXPECT_THAT(Refusal(""), Refuses(ErrorCode::kConfig,
                                   "source is missing; give the path of the "
                                   "list of images"));
}

}  // namespace
}  // namespace trainer
