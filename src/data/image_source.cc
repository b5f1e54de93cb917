// ImageData's source of records.

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/text.h"
#include "trainer/config/named_file.h"
#include "trainer/data/image_list.h"

namespace trainer {
namespace {

constexpr char kParam[] = "image_data_param";
constexpr uint32_t kSkipPass = 0xFFFFFFFF;  // epochs take the passes from 1 on

size_t Below(uint32_t word, size_t n) { return static_cast<size_t>(uint64_t{word} * n >> 32); }

// Takes "<word> <number> " off the front.
bool TakeField(std::string_view& text, std::string_view word, uint32_t* number) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  if (error != std::errc() || stop == end || *stop != ' ') return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()) + 1);
  return true;
}

class ImageListSource final : public RecordSource {
 public:
  struct Options {
    ImageReading reading;
    bool shuffle = false;
    size_t skip = 0;  // images of the first epoch
  };

  ImageListSource(std::string list, std::vector<ListedImage> images, Options options,
                  const PhiloxKey& key)
      : list_(std::move(list)),
        images_(std::move(images)),
        options_(std::move(options)),
        key_(key),
        order_(images_.size()) {
    SeekFirst();
  }

  const std::string& path() const override { return list_; }

  std::string Key() const override {
    return Join("epoch ", epoch_, " line ", Current().line, " ", Current().path);
  }

  const DatumView& Read() override {
    ReadListedImage(list_, Current(), options_.reading, &raw_, &image_);
    view_ = ViewOf(image_);
    view_.label = Current().label;
    view_.has_label = true;
    return view_;
  }

  void SeekFirst() override {
    StartEpoch(0);
    at_ = options_.skip;
  }

  bool Next() override {
    if (++at_ < order_.size()) return false;
    StartEpoch(epoch_ + 1);
    return true;
  }

  bool Seek(std::string_view key) override {
    uint32_t epoch = 0, line = 0;
    if (!TakeField(key, "epoch ", &epoch) || !TakeField(key, "line ", &line)) return false;
    const auto listed = std::ranges::find(images_, static_cast<int>(line), &ListedImage::line);
    if (listed == images_.end() || listed->path != key) return false;
    StartEpoch(epoch);
    const auto index = static_cast<uint32_t>(listed - images_.begin());
    at_ = static_cast<size_t>(std::ranges::find(order_, index) - order_.begin());
    return true;
  }

 private:
  const ListedImage& Current() const { return images_[order_[at_]]; }

  void StartEpoch(uint32_t epoch) {
    epoch_ = epoch;
    at_ = 0;
    std::iota(order_.begin(), order_.end(), 0u);
    if (!options_.shuffle) return;
    for (size_t i = order_.size() - 1; i > 0; --i) {
      std::swap(order_[i], order_[Below(PhiloxWord(key_, epoch + 1, i), i + 1)]);
    }
  }

  std::string list_;
  std::vector<ListedImage> images_;
  Options options_;
  PhiloxKey key_;
  std::vector<uint32_t> order_;  // of the epoch: indices into images_
  uint32_t epoch_ = 0;
  size_t at_ = 0;  // in order_
  std::string raw_;
  Image image_;
  DatumView view_;
};

}  // namespace

ImageReading ReadImageReading(const LayerSpec& layer) {
  constexpr uint32_t kMaxSide = 1u << 20;
  const caffe::ImageDataParameter& param = layer.proto().image_data_param();
  if ((param.new_height() == 0) != (param.new_width() == 0)) {
    layer.FailIn(kParam, param.new_height() == 0 ? "new_width" : "new_height",
                 "new_height and new_width belong together; give both or none");
  }
  if (param.short_side() > 0 && param.new_height() > 0) {
    layer.FailIn(kParam, "short_side",
                 "short_side excludes new_height and new_width; remove one or the others");
  }
  for (const auto& [field, side] :
       {std::pair("new_height", param.new_height()), std::pair("new_width", param.new_width()),
        std::pair("short_side", param.short_side())}) {
    if (side > kMaxSide) {
      layer.FailIn(kParam, field, Join(field, " is ", side, "; it must be at most ", kMaxSide));
    }
  }
  ImageReading reading;
  reading.root = param.root_folder();
  reading.colors = param.is_color() ? Colors::kColor : Colors::kGray;
  reading.height = static_cast<int>(param.new_height());
  reading.width = static_cast<int>(param.new_width());
  reading.short_side = static_cast<int>(param.short_side());
  return reading;
}

std::unique_ptr<Prefetcher> MakeImagePrefetcher(const LayerSpec& layer, caffe::Phase phase,
                                                const PhiloxKey& key, const Replica& replica) {
  const caffe::ImageDataParameter& param = layer.proto().image_data_param();
  if (param.source().empty()) layer.FailIn(kParam, "source", "source, the list, is missing");
  const PrefetchOptions prefetch =
      ReadPrefetchOptions(layer, kParam, param.batch_size(), phase, replica);
  ImageListSource::Options options;
  options.reading = ReadImageReading(layer);
  options.shuffle = param.shuffle();
  std::string list;
  std::vector<ListedImage> images =
      ReadNamedFile(layer, kParam, "source", param.source(), [&](const std::string& path) {
        LOG(INFO) << "Opening file " << path;
        list = path;
        return ReadImageList(path);
      });
  LOG_IF(INFO, param.shuffle()) << "Shuffling data";
  LOG(INFO) << "A total of " << images.size() << " images.";
  if (param.rand_skip() > 0) {
    options.skip = Below(PhiloxWord(key, kSkipPass, 0), param.rand_skip());
    if (param.rand_skip() > images.size()) {
      layer.FailIn(kParam, "rand_skip",
                   Join("rand_skip is ", param.rand_skip(), ", but ", list, " has only ",
                        images.size(), " images; it must be at most that"));
    }
    LOG(INFO) << "Skipping first " << options.skip << " data points.";
  }
  auto source = std::make_unique<ImageListSource>(list, std::move(images), std::move(options), key);
  return std::make_unique<Prefetcher>(std::move(source), prefetch, Transform(layer, phase, key));
}

}  // namespace trainer
