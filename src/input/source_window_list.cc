// WindowData: windows of images, drawn with replacement.

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/input/image_decoder.h"
#include "trainer/input/mean_image.h"
#include "trainer/input/source.h"
#include "trainer/input/window_list.h"

namespace trainer {
namespace {

constexpr char kWindowSourceParam[] = "window_data_param";
constexpr int kChannels = 3;  // Caffe reads every picture in colour here

struct WindowOptions {
  std::string list, root;
  WindowCrop crop;
  bool mirror = false;
  float scale = 1;
  int64_t batch_size = 0, foreground = 0;  // per batch; the background comes first
  MeanImage mean;
  int mean_offset = 0;  // from the mean's corner to the crop's, both ways
  std::vector<float> mean_values;
  PhiloxKey key;
};

// The list and the options that all loaders share.
struct WindowSet {
  WindowOptions options;
  WindowList list;
  std::vector<size_t> foreground, background;  // indices into list.windows
};

// Draws a window by the record's number and its row of the batch, and crops it.
class WindowLoader final : public ImageLoader {
 public:
  explicit WindowLoader(const WindowSet& set)
      : set_(set),
        options_(set.options),
        reading_{.root = options_.root, .depth = BitDepth::kBytes},
        values_(kChannels * static_cast<size_t>(options_.crop.size * options_.crop.size)) {}

  const DatumView& Load(const Record& record, const CropChooser*) override {
    const Philox4 random = PhiloxBlock(options_.key, 0, record.number);
    const int64_t row = record.batch_index % options_.batch_size;  // of one rank's batch
    const bool is_foreground = row >= options_.batch_size - options_.foreground;
    const std::vector<size_t>& from = is_foreground ? set_.foreground : set_.background;
    const uint64_t word = uint64_t{random.x[1]} << 32 | random.x[0];
    const Window& window = set_.list.windows[from[word % from.size()]];
    Fill(window, options_.mirror && (random.x[2] >> 31) != 0);
    view_ = DatumView{};
    view_.channels = kChannels;
    view_.height = view_.width = options_.crop.size;
    view_.floats = values_;
    view_.label = is_foreground ? window.label : 0;
    view_.has_label = true;
    return view_;
  }

 private:
  void Fill(const Window& window, bool mirror) {
    const ListedImage& listed = set_.list.images[window.image];
    DecodedRegion held;
    const auto inside = [](const Rect& box, int height, int width) {
      return box.left >= 0 && box.top >= 0 && box.width >= 1 && box.height >= 1 &&
             box.left + box.width <= width && box.top + box.height <= height;
    };
    const CropChooser choose = [&](int height, int width) {
      const Rect box = FitWindow(window, height, width, options_.crop, mirror).from;
      return CropRequest{inside(box, height, width) ? box : Rect{0, 0, width, height}};
    };
    LoadListedImage(options_.list, listed, reading_, &raw_, &image_, &choose, &held);
    const int height = held.picture_height, width = held.picture_width;
    const WindowRegion region = FitWindow(window, height, width, options_.crop, mirror);
    Rect from = region.from;
    if (!inside(from, height, width)) {
      throw Error(ErrorCode::kData, {options_.list, window.line},
                  Join("the window ", window.BoxText(), " reaches outside '",
                       EscapeControl(listed.path), "', which has ", width, "x", height, " pixels"));
    }
    from.left -= held.left;
    from.top -= held.top;
    std::ranges::fill(values_, 0.f);
    if (region.width < 1 || region.height < 1) return;  // a sliver that rounding took away
    ResizeImage(image_, from, region.height, region.width, &part_);
    const uint8_t* pixel = part_.pixels.data();
    for (int c = 0; c < kChannels; ++c) {
      for (int y = 0; y < region.height; ++y) {
        for (int x = 0; x < region.width; ++x) {
          const int column = region.left + (mirror ? region.width - 1 - x : x);
          Put(c, region.top + y, column, *pixel++);
        }
      }
    }
  }

  void Put(int c, int row, int column, uint8_t pixel) {
    float mean = 0;
    if (!options_.mean.values.empty()) {
      const int64_t mean_row = c * options_.mean.shape.height + row + options_.mean_offset;
      const int64_t at = mean_row * options_.mean.shape.width + column + options_.mean_offset;
      mean = options_.mean.values[static_cast<size_t>(at)];
    } else if (!options_.mean_values.empty()) {
      mean = options_.mean_values[options_.mean_values.size() > 1 ? static_cast<size_t>(c) : 0];
    }
    const int size = options_.crop.size;
    values_[static_cast<size_t>((c * size + row) * size + column)] =
        PixelNumber(pixel, mean, options_.scale);
  }

  const WindowSet& set_;
  const WindowOptions& options_;
  const ImageFileOptions reading_;
  std::string raw_;
  Image image_, part_;
  std::vector<float> values_;  // (C, H, W)
  DatumView view_;
};

// Counts records; the loader draws their windows.
class WindowSampler final : public RecordSampler {
 public:
  explicit WindowSampler(WindowSet set) : set_(std::move(set)) {}

  const std::string& path() const override { return set_.options.list; }
  const WindowSet& set() const { return set_; }
  std::string Key() const override { return Join(kKeyHead, number_); }

  void Get(Record* record) override {
    key_ = Key();
    record->key = key_;
  }
  uint64_t Skip(uint64_t count) override {
    number_ += count;
    return 0;  // there are no epochs
  }

  void Seek(const Position& position) override {
    if (!position.key.empty() && position.key != Join(kKeyHead, position.record)) {
      FailSeek(position);
    }
    number_ = position.record;
  }

 private:
  static constexpr std::string_view kKeyHead = "window ";

  const WindowSet set_;
  uint64_t number_ = 0;  // of the record, since training began
  std::string key_;      // of the last record
};

void ReadCrop(const LayerSpec& layer, WindowOptions* options) {
  constexpr uint32_t kMaxSize = 1u << 14;
  const caffe::WindowDataParameter& param = layer.proto().window_data_param();
  const uint32_t size = layer.proto().transform_param().crop_size();
  if (size < 1 || size > kMaxSize) {
    layer.FailIn("transform_param", "crop_size",
                 Join("crop_size is ", size, "; it must be 1 to ", kMaxSize,
                      ", the side in pixels of each scaled window"));
  }
  if (param.context_pad() >= (size + 1) / 2) {
    layer.FailIn(kWindowSourceParam, "context_pad",
                 Join("context_pad is ", param.context_pad(), " on both sides of a crop of ", size,
                      " pixels; it must be below half of that"));
  }
  if (param.crop_mode() != "warp" && param.crop_mode() != "square") {
    layer.FailIn(
        kWindowSourceParam, "crop_mode",
        Join("crop_mode is '", EscapeControl(param.crop_mode()), "'; it must be warp or square"));
  }
  options->crop = {static_cast<int>(size), static_cast<int>(param.context_pad()),
                   param.crop_mode() == "square"};
}

void ReadMean(const LayerSpec& layer, WindowOptions* options) {
  const caffe::TransformationParameter& transform = layer.proto().transform_param();
  options->mean_values.assign(transform.mean_value().begin(), transform.mean_value().end());
  if (transform.mean_value_size() > 1 && transform.mean_value_size() != kChannels) {
    layer.FailIn("transform_param", "mean_value",
                 Join(transform.mean_value_size(), " mean values for 3 channels; give one, or 3"));
  }
  options->mean = ReadMeanImage(layer);
  if (options->mean.values.empty()) return;
  const ImageShape& shape = options->mean.shape;
  const int64_t size = options->crop.size, offset = (shape.width - size) / 2;
  if (shape.channels != kChannels || shape.width < size || shape.height < offset + size) {
    layer.FailIn("transform_param", "mean_file",
                 Join("the mean in ", options->mean.path, " is ", shape.ToString(),
                      "; a crop of 3x", size, "x", size, " must fit into its middle"));
  }
  options->mean_offset = static_cast<int>(offset);
}

// Caffe reads window_data_param's scale alone, although its upgrade of old nets moves it away.
float ReadScale(const LayerSpec& layer) {
  const caffe::TransformationParameter& transform = layer.proto().transform_param();
  const caffe::WindowDataParameter& param = layer.proto().window_data_param();
  if (param.has_scale() || !transform.has_scale()) return param.scale();
  LOG(WARNING) << layer.Where().ToString() << ": layer '" << layer.name()
               << "': windows are scaled by transform_param's " << transform.scale()
               << ", which Caffe ignores; use the scale of window_data_param instead";
  return transform.scale();
}

float ReadThreshold(const LayerSpec& layer, const char* field, float value) {
  if (!(value >= 0 && value <= 1)) {
    layer.FailIn(kWindowSourceParam, field, Join(field, " is ", value, "; it must be 0 to 1"));
  }
  return value;
}

WindowOptions ReadOptions(const LayerSpec& layer, const BatchQueueOptions& queue) {
  const caffe::WindowDataParameter& param = layer.proto().window_data_param();
  WindowOptions options;
  options.list = FindNamedFile(layer, kWindowSourceParam, "source", param.source());
  options.root = param.root_folder();
  ReadCrop(layer, &options);
  ReadMean(layer, &options);
  options.mirror = layer.proto().transform_param().mirror();
  options.scale = ReadScale(layer);
  options.batch_size = queue.batch_size;
  const float fraction = ReadThreshold(layer, "fg_fraction", param.fg_fraction());
  options.foreground = static_cast<int64_t>(static_cast<float>(options.batch_size) * fraction);
  return options;
}

// A batch must find what it asks for.
void CheckEnough(const std::string& list, const char* kind, size_t have, int64_t wanted,
                 const char* field, float threshold) {
  if (wanted == 0 || have > 0) return;
  throw Error(
      ErrorCode::kData, {list},
      Join("there are no ", kind, " windows, but each batch needs ", wanted,
           ": none has an overlap ", field, " = ", threshold, "; change that, or fg_fraction"));
}

}  // namespace

std::unique_ptr<BatchQueue> OpenWindowList(const LayerSpec& layer, const InputEnv& env) {
  const caffe::WindowDataParameter& param = layer.proto().window_data_param();
  if (param.source().empty())
    layer.FailIn(kWindowSourceParam, "source",
                 "source is missing; give the path of the list of windows");
  if (layer.proto().data_param().limit() > 0) {
    layer.FailIn("data_param", "limit",
                 "a WindowData layer draws its windows at random from the whole list, so limit "
                 "(--limit, --overfit) does not apply to it; shorten the list instead");
  }
  const BatchQueueOptions options =
      QueueOptionsOf(layer, kWindowSourceParam, param.batch_size(), env);
  const Transform checked(layer, env.phase, env.key);  // refuses what transform_param may not hold
  for (const char* field :
       {"random_resize_param", "random_aspect_ratio_param", "random_resized_crop_param",
        "color_jitter_param", "lighting", "random_erasing_param", "mixup", "cutmix", "auto_augment",
        "vflip", "random_affine_param", "gaussian_blur_param", "test_crops"}) {
    const auto& transform = layer.proto().transform_param();
    const auto* known = caffe::TransformationParameter::descriptor()->FindFieldByName(field);
    if (!transform.GetReflection()->HasField(transform, known)) continue;
    layer.FailIn("transform_param", field,
                 "a WindowData layer does not support this field; remove it");
  }
  WindowSet set;
  set.options = ReadOptions(layer, options);
  set.options.key = env.key;
  const int64_t seed = layer.proto().transform_param().random_seed();
  if (seed >= 0) set.options.key.seed = static_cast<uint64_t>(seed);
  const float fg = ReadThreshold(layer, "fg_threshold", param.fg_threshold());
  const float bg = ReadThreshold(layer, "bg_threshold", param.bg_threshold());
  set.list = ReadNamedFile(layer, kWindowSourceParam, "source", param.source(), ReadWindowList);
  for (size_t i = 0; i < set.list.windows.size(); ++i) {
    const Window& window = set.list.windows[i];
    if (window.overlap < fg) {
      if (window.overlap < bg) set.background.push_back(i);
      continue;
    }
    if (window.label < 1) {
      throw Error(ErrorCode::kData, {set.options.list, window.line},
                  Join("a foreground window (overlap ", window.overlap, ") of class ", window.label,
                       "; 0 is the background, so its class must be above 0"));
    }
    set.foreground.push_back(i);
  }
  LOG(INFO) << "Number of images: " << set.list.images.size();
  CheckEnough(set.options.list, "foreground", set.foreground.size(), set.options.foreground,
              "of at least fg_threshold", fg);
  CheckEnough(set.options.list, "background", set.background.size(),
              set.options.batch_size - set.options.foreground, "below bg_threshold", bg);
  LayerSpec untransformed = layer;  // the loader does all of transform_param itself
  untransformed.mutable_proto().clear_transform_param();
  auto sampler = std::make_unique<WindowSampler>(std::move(set));
  auto decoders = std::make_unique<ImageDecoderFactory>(
      Transform(untransformed, env.phase, env.key),
      [&owned = sampler->set()](BitDepth) { return std::make_unique<WindowLoader>(owned); });
  return std::make_unique<BatchQueue>(RecordSource{std::move(sampler), std::move(decoders)},
                                      options);
}

}  // namespace trainer
