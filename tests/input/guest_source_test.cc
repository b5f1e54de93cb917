// Adds a kind of source in one file, from public headers only: an archive that, like a tar file, is
// read from front to end and can only be reopened. Four threads decode its images.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/image/image.h"
#include "trainer/input/batch_queue.h"
#include "trainer/input/image_decoder.h"

namespace trainer {
namespace {

// Reads members in order: a header "<name> <label> <bytes>\n", then the bytes of a picture.
class ArchiveSampler final : public RecordSampler {
 public:
  ArchiveSampler(std::string path, std::string archive)
      : path_(std::move(path)), archive_(std::move(archive)) {
    ReadHead();
  }

  const std::string& path() const override { return path_; }

  void Get(Record* record) override {
    record->key = name_;
    buffer_ = archive_.substr(at_, bytes_);  // the next record overwrites it
    record->value = buffer_;
    record->index = static_cast<uint64_t>(label_);
  }

  uint64_t Skip(uint64_t count) override {
    uint64_t epochs = 0;
    for (; count > 0; --count) {
      at_ += bytes_;
      if (at_ == archive_.size()) {
        at_ = 0;
        ++epochs;
      }
      ReadHead();
    }
    return epochs;
  }

  std::string Key() const override { return name_; }

  void Seek(const Position& position) override {
    const size_t was = head_;
    for (at_ = 0;; at_ += bytes_) {
      const bool end = at_ == archive_.size();
      if (end) at_ = was;
      ReadHead();
      if (end) FailSeek(position);
      if (position.key.empty() || position.key == name_) return;
    }
  }

 private:
  void ReadHead() {
    head_ = at_;
    const size_t end = archive_.find('\n', at_);
    const std::string head = archive_.substr(at_, end - at_);
    const size_t first = head.find(' '), second = head.find(' ', first + 1);
    name_ = head.substr(0, first);
    std::from_chars(head.data() + first + 1, head.data() + second, label_);
    std::from_chars(head.data() + second + 1, head.data() + head.size(), bytes_);
    at_ = end + 1;
  }

  std::string path_, archive_, name_, buffer_;
  size_t head_ = 0, at_ = 0, bytes_ = 0;  // at_ is the offset of the picture
  int label_ = 0;
};

class ArchiveLoader final : public ImageLoader {
 public:
  const DatumView& Load(const Record& record, const CropChooser*) override {
    DecodeImage(record.value, ColorMode::kColor, {"archive"}, std::string(record.key), &image_);
    view_ = ViewOf(image_);
    view_.label = static_cast<int32_t>(record.index);
    view_.has_label = true;
    return view_;
  }

 private:
  Image image_;
  DatumView view_;
};

class GuestSourceTest : public testing::Test {
 protected:
  GuestSourceTest() {
    for (int i = 0; i < 11; ++i) {
      std::string picture = "P5 4 3 255\n";
      for (int p = 0; p < 12; ++p) picture += static_cast<char>(20 * i + p);
      archive_ += Join("m", i, ".pgm ", i, " ", picture.size(), "\n", picture);
    }
  }
  std::unique_ptr<BatchQueue> Make(int threads, Rank rank = {}) const {
    caffe::LayerParameter layer;
    layer.mutable_transform_param()->set_mirror(true);
    layer.mutable_transform_param()->set_crop_size(2);
    Transform transform(LayerSpec(layer, SourceRef{"net.prototxt", 1, 1}), caffe::TRAIN, {5, 6});
    BatchQueueOptions options;
    options.batch_size = 8;
    options.rank = rank;
    options.decode_threads = threads;
    RecordSource source;
    source.sampler = std::make_unique<ArchiveSampler>("guest.archive", archive_);
    source.decoders = std::make_unique<ImageDecoderFactory>(
        std::move(transform), [](BitDepth) { return std::make_unique<ArchiveLoader>(); });
    return std::make_unique<BatchQueue>(std::move(source), options);
  }
  static std::vector<float> Read(BatchQueue& source, int batches) {
    std::vector<float> numbers;
    for (int i = 0; i < batches; ++i) {
      const Batch& batch = source.Next();
      for (int k = 0; k < batch.num_outputs(); ++k) {
        numbers.insert(numbers.end(), batch.output(k).begin(), batch.output(k).end());
      }
    }
    return numbers;
  }

  std::string archive_;
};

TEST_F(GuestSourceTest, AnArchiveReadForwardIsDecodedByFourThreads) {
  const auto alone = Make(1), four = Make(4);
  EXPECT_EQ(four->shape(), (Shape{8, 3, 2, 2}));
  EXPECT_EQ(Read(*four, 10), Read(*alone, 10));
  EXPECT_EQ(four->position(), (Position{80, 7, "m3.pgm"}));
  EXPECT_EQ(four->position(), alone->position());
}

TEST_F(GuestSourceTest, ItsLabelsComeInTheOrderOfTheArchive) {
  const auto four = Make(4);
  four->Next();
  EXPECT_THAT(four->Next().output(1)[0], 8);
  EXPECT_THAT(four->Next().output(1)[7], 23 % 11);
}

TEST_F(GuestSourceTest, AResumedRunAndRanksGoOnFromItsPosition) {
  const auto whole = Make(4, {1, 3});
  Read(*whole, 3);
  const auto resumed = Make(4, {1, 3});
  resumed->Restore(Position::Decode(whole->position().Encode()));
  EXPECT_EQ(Read(*resumed, 3), Read(*whole, 3));
  EXPECT_THROW(Make(4)->Restore({1, 0, "m11.pgm"}), Error);
}

TEST_F(GuestSourceTest, ItsItemsHaveNames) {
  const auto four = Make(4);
  Read(*four, 2);
  EXPECT_EQ(four->RecordName(4), "record 'm1.pgm' of guest.archive");
}

}  // namespace
}  // namespace trainer
