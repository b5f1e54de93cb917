// ImageData: image files that a list names.

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "balanced_sampler.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/input/image_decoder.h"
#include "trainer/input/image_list.h"
#include "trainer/input/source.h"
#include "trainer/storage/path_redirects.h"

namespace trainer {
namespace {

constexpr char kImageListSourceParam[] = "image_data_param";
constexpr uint32_t kSkipPass = 0xFFFFFFFF;  // epochs take the passes from 1 on

class FileLoader final : public ImageLoader {
 public:
  FileLoader(const ImageList& list, const ImageFileOptions& options, BitDepth depth)
      : list_(list), options_(options) {
    options_.depth = depth;
  }

  const DatumView& Load(const Record& record, const CropChooser* wanted) override {
    const ListedImage& listed = list_.images[record.index];
    DecodedRegion held;
    LoadListedImage(list_.path, listed, options_, &file_, &image_, wanted, &held);
    view_ = ViewOf(image_, held);
    view_.label = listed.label;
    view_.labels = list_.LabelsOf(listed);
    view_.has_label = true;
    return view_;
  }

 private:
  const ImageList& list_;
  ImageFileOptions options_;
  std::string file_;
  Image image_;
  DatumView view_;
};

// The entries of the list, in file order or in another order each epoch.
class ListSampler final : public RecordSampler {
 public:
  // `skip`: images of the first epoch that are skipped.
  ListSampler(ImageList list, bool shuffle, size_t skip, const PhiloxKey& key)
      : list_(std::move(list)), shuffle_(shuffle), skip_(skip), order_key_(key) {
    SeekFirst();
  }

  const std::string& path() const override { return list_.path; }
  const ImageList& list() const { return list_; }

  std::string Key() const override {
    return Join("epoch ", epoch_, " line ", Current().line, " ", Current().path);
  }

  void Get(Record* record) override {
    key_ = Key();
    record->key = key_;
    record->index = order_[at_];
  }

  uint64_t Skip(uint64_t count) override {
    const uint64_t at = at_ + count, ended = at / order_.size();
    if (ended > 0) StartEpoch(static_cast<uint32_t>(epoch_ + ended));
    at_ = static_cast<size_t>(at % order_.size());
    return ended;
  }

  int64_t CountRecords(bool) override { return static_cast<int64_t>(order_.size()); }

  void Seek(const Position& position) override {
    if (position.key.empty()) return SeekFirst();
    std::string_view rest = position.key;
    uint32_t epoch = 0, line = 0;
    if (!TakeNumber(&rest, "epoch ", &epoch) || !TakeNumber(&rest, " line ", &line) ||
        !rest.starts_with(' ')) {
      FailSeek(position);
    }
    const std::vector<ListedImage>& images = list_.images;
    const auto listed = std::ranges::find_if(images, [&](const ListedImage& image) {
      return image.line == static_cast<int>(line) && image.path == rest.substr(1);
    });
    if (listed == images.end()) FailSeek(position);
    StartEpoch(epoch);
    const auto index = static_cast<uint32_t>(listed - images.begin());
    at_ = static_cast<size_t>(std::ranges::find(order_, index) - order_.begin());
  }

 private:
  const ListedImage& Current() const { return list_.images[order_[at_]]; }

  void SeekFirst() {
    StartEpoch(0);
    at_ = skip_;
  }

  void StartEpoch(uint32_t epoch) {
    epoch_ = epoch;
    at_ = 0;
    if (shuffle_) return Permute(order_key_, epoch + 1, 0, list_.images.size(), &order_);
    order_.resize(list_.images.size());
    std::iota(order_.begin(), order_.end(), 0u);
  }

  const ImageList list_;
  const bool shuffle_;
  const size_t skip_;
  PhiloxKey order_key_;
  std::vector<uint32_t> order_;  // of the epoch: indices of images
  uint32_t epoch_ = 0;
  size_t at_ = 0;    // in order_
  std::string key_;  // of the last record
};

// The entries of the list in a BalancedOrder.
class BalancedListSampler final : public BalancedSampler {
 public:
  BalancedListSampler(ImageList list, BalancedOrder order, size_t skip)
      : BalancedSampler(std::move(order), skip, list.path), list_(std::move(list)) {}

  const std::string& path() const override { return list_.path; }
  const ImageList& list() const { return list_; }

  void Get(Record* record) override {
    record->index = Current();
    key_ = NameOf(static_cast<uint32_t>(record->index));
    record->key = key_;
  }

 private:
  std::string NameOf(uint32_t record) const override {
    const ListedImage& image = list_.images[record];
    return Join("line ", image.line, " ", QuoteKey(image.path));
  }

  const ImageList list_;
  std::string key_;  // of the last record
};

// A sampler and the list that it owns.
struct ListSource {
  std::unique_ptr<RecordSampler> sampler;
  const ImageList* list;
};

template <class Sampler, class... Args>
ListSource MakeListSource(Args&&... args) {
  auto sampler = std::make_unique<Sampler>(std::forward<Args>(args)...);
  const ImageList* const list = &sampler->list();
  return {std::move(sampler), list};
}

// Makes the sampler that the layer asks for.
ListSource MakeListSource(const caffe::ImageDataParameter& param, ImageList list, size_t skip,
                          const PhiloxKey& key) {
  if (param.sampling() != caffe::BALANCED) {
    return MakeListSource<ListSampler>(std::move(list), param.shuffle(), skip, key);
  }
  std::vector<int32_t> labels;
  for (const ListedImage& image : list.images) labels.push_back(image.label);
  return MakeListSource<BalancedListSampler>(std::move(list), BalancedOrder(labels, key), skip);
}

// Logs "2 classes in photos/train: 0 cat, 1 dog", and where the names can be used.
void LogClasses(const ImageList& list) {
  constexpr size_t kMost = 20;
  if (list.classes.empty()) return;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kMost, list.classes.size()); ++i) {
    names.push_back(Join(i, " ", list.classes[i]));
  }
  if (list.classes.size() > kMost) names.emplace_back("...");
  LOG(INFO) << EscapeControl(Join(list.classes.size(), " classes in ", list.path, ": ",
                                  JoinList(names), "; --labels=", list.path,
                                  " gives 'predict' their names"));
}

}  // namespace

std::unique_ptr<BatchQueue> OpenImageList(const LayerSpec& layer, const InputEnv& env) {
  const caffe::ImageDataParameter& param = layer.proto().image_data_param();
  if (param.source().empty())
    layer.FailIn(kImageListSourceParam, "source",
                 "source is missing; give the path of the list of images, or of a folder with a "
                 "subfolder for each class");
  const BatchQueueOptions options =
      QueueOptionsOf(layer, kImageListSourceParam, param.batch_size(), env);
  RequireSampling(layer, kImageListSourceParam, param.sampling(), env.phase);
  ImageFileOptions file_options;
  ImageList list = ReadNamedFile(layer, kImageListSourceParam, "source", param.source(),
                                 [&](const std::string& path) {
                                   file_options = ReadImageFileOptions(layer, path);
                                   LOG(INFO) << "Opening file " << path;
                                   return ReadImages(path);
                                 });
  LogClasses(list);
  if (param.sampling() == caffe::BALANCED && !list.labels.empty()) {
    layer.FailIn(kImageListSourceParam, "sampling",
                 Join("sampling is BALANCED, which draws classes, but the images of ", list.path,
                      " have several labels or labels that are not integers; remove the field"));
  }
  const FilePack* const pack = FilePackOf(list.path, file_options.root);
  if (pack != nullptr && pack->size() == list.images.size()) file_options.pack = pack;
  const size_t limit = layer.proto().data_param().limit();
  if (limit > 0 && limit < list.images.size()) list.images.resize(limit);
  const size_t count = list.images.size();
  LOG_IF(INFO, param.shuffle()) << "Shuffling data";
  LOG(INFO) << "A total of " << count << " images.";
  size_t skip = 0;
  if (param.rand_skip() > 0) {
    skip = UniformBelow(PhiloxWord(env.key, kSkipPass, 0), size_t{param.rand_skip()});
    if (param.rand_skip() > count) {
      layer.FailIn(kImageListSourceParam, "rand_skip",
                   Join("rand_skip is ", param.rand_skip(), ", but ", list.path, " has only ",
                        count, " images; it must be at most that"));
    }
    LOG(INFO) << "Skipping first " << skip << " data points.";
  }
  ListSource source = MakeListSource(param, std::move(list), skip, env.key);
  auto decoders = std::make_unique<ImageDecoderFactory>(
      Transform(layer, env.phase, env.key), [&owned = *source.list, file_options](BitDepth depth) {
        return std::make_unique<FileLoader>(owned, file_options, depth);
      });
  return std::make_unique<BatchQueue>(RecordSource{std::move(source.sampler), std::move(decoders)},
                                      options);
}

}  // namespace trainer
