// ImageData's source of records.

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/input/image_list.h"
#include "trainer/input/image_source.h"
#include "trainer/input/source.h"
#include "trainer/storage/path_redirects.h"

namespace trainer {
namespace {

constexpr char kImageListSourceParam[] = "image_data_param";
constexpr uint32_t kSkipPass = 0xFFFFFFFF;  // epochs take the passes from 1 on

// Takes "<word> <number> " off the front.
bool TakePathField(std::string_view& text, std::string_view word, uint32_t* number) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  if (error != std::errc() || stop == end || *stop != ' ') return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()) + 1);
  return true;
}

struct ListOptions {
  ImageFileOptions reading;
  bool shuffle = false;
  size_t skip = 0;  // images of the first epoch
};

// Reads and decodes the files that the records' indices name.
class ListedImageParser final : public RecordParser {
 public:
  ListedImageParser(const std::string& list, const std::vector<ListedImage>& images,
                    const ImageFileOptions& reading, BitDepth depth)
      : list_(list), images_(images), reading_(reading) {
    reading_.depth = depth;
  }

  const DatumView& Parse(const Record& record) override {
    LoadListedImage(list_, images_[record.index], reading_, &raw_, &image_);
    return Labelled(ViewOf(image_), record);
  }

  const DatumView& ParsePart(const Record& record, const CropChooser& choose) override {
    if (reading_.Resizes()) return Parse(record);
    DecodedRegion held;
    LoadListedRegion(list_, images_[record.index], reading_, choose, &raw_, &image_, &held);
    return Labelled(ViewOf(image_, held), record);
  }

 private:
  const DatumView& Labelled(const DatumView& view, const Record& record) {
    view_ = view;
    view_.label = images_[record.index].label;
    view_.has_label = true;
    return view_;
  }

  const std::string& list_;
  const std::vector<ListedImage>& images_;
  ImageFileOptions reading_;
  std::string raw_;
  Image image_;
  DatumView view_;
};

class ImageListSource final : public ImageSource {
 public:
  ImageListSource(std::string list, std::vector<ListedImage> images, ListOptions options,
                  const PhiloxKey& key, Transform transform)
      : ImageSource(std::move(transform)),
        list_(std::move(list)),
        images_(std::move(images)),
        options_(std::move(options)),
        order_key_(key) {
    SeekFirst();
  }

  const std::string& path() const override { return list_; }

  std::string Key() const override {
    return Join("epoch ", epoch_, " line ", Current().line, " ", Current().path);
  }

  void Fetch(Record* record) override {
    key_ = Key();
    record->key = key_;
    record->index = order_[at_];
  }

  uint64_t Advance(uint64_t count) override {
    const uint64_t at = at_ + count, ended = at / order_.size();
    if (ended > 0) StartEpoch(static_cast<uint32_t>(epoch_ + ended));
    at_ = static_cast<size_t>(at % order_.size());
    return ended;
  }

  int64_t CountRecords(bool) override { return static_cast<int64_t>(images_.size()); }

  void Seek(const Position& position) override {
    if (position.key.empty()) return SeekFirst();
    std::string_view rest = position.key;
    uint32_t epoch = 0, line = 0;
    if (!TakePathField(rest, "epoch ", &epoch) || !TakePathField(rest, "line ", &line))
      FailSeek(position);
    const auto listed = std::ranges::find(images_, static_cast<int>(line), &ListedImage::line);
    if (listed == images_.end() || listed->path != rest) FailSeek(position);
    StartEpoch(epoch);
    const auto index = static_cast<uint32_t>(listed - images_.begin());
    at_ = static_cast<size_t>(std::ranges::find(order_, index) - order_.begin());
  }

 private:
  std::unique_ptr<RecordParser> MakeParser() const override {
    return std::make_unique<ListedImageParser>(list_, images_, options_.reading, depth());
  }

  const ListedImage& Current() const { return images_[order_[at_]]; }

  void SeekFirst() {
    StartEpoch(0);
    at_ = options_.skip;
  }

  void StartEpoch(uint32_t epoch) {
    epoch_ = epoch;
    at_ = 0;
    if (options_.shuffle) return Permute(order_key_, epoch + 1, 0, images_.size(), &order_);
    order_.resize(images_.size());
    std::iota(order_.begin(), order_.end(), 0u);
  }

  const std::string list_;
  const std::vector<ListedImage> images_;
  ListOptions options_;
  PhiloxKey order_key_;
  std::vector<uint32_t> order_;  // of the epoch: indices into images_
  uint32_t epoch_ = 0;
  size_t at_ = 0;    // in order_
  std::string key_;  // of the record fetched last
};

}  // namespace

std::unique_ptr<BatchQueue> OpenImageList(const LayerSpec& layer, const InputEnv& env) {
  const caffe::ImageDataParameter& param = layer.proto().image_data_param();
  if (param.source().empty())
    layer.FailIn(kImageListSourceParam, "source",
                 "source is missing; give the path of the list of images");
  const BatchQueueOptions prefetch =
      QueueOptionsOf(layer, kImageListSourceParam, param.batch_size(), env);
  ListOptions options;
  options.reading = ReadImageFileOptions(layer);
  options.shuffle = param.shuffle();
  std::string list;
  std::vector<ListedImage> images = ReadNamedFile(layer, kImageListSourceParam, "source",
                                                  param.source(), [&](const std::string& path) {
                                                    LOG(INFO) << "Opening file " << path;
                                                    list = path;
                                                    return ReadImageList(path);
                                                  });
  const FilePack* const pack = FilePackOf(list, options.reading.root);
  if (pack != nullptr && pack->size() == images.size()) options.reading.pack = pack;
  LOG_IF(INFO, param.shuffle()) << "Shuffling data";
  LOG(INFO) << "A total of " << images.size() << " images.";
  if (param.rand_skip() > 0) {
    options.skip = UniformBelow(PhiloxWord(env.key, kSkipPass, 0), size_t{param.rand_skip()});
    if (param.rand_skip() > images.size()) {
      layer.FailIn(kImageListSourceParam, "rand_skip",
                   Join("rand_skip is ", param.rand_skip(), ", but ", list, " has only ",
                        images.size(), " images; it must be at most that"));
    }
    LOG(INFO) << "Skipping first " << options.skip << " data points.";
  }
  auto source = std::make_unique<ImageListSource>(list, std::move(images), std::move(options),
                                                  env.key, Transform(layer, env.phase, env.key));
  return std::make_unique<BatchQueue>(std::move(source), prefetch);
}

}  // namespace trainer
