#include "trainer/inference/predictor.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/memory_file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/inference/predict/image_preprocessor.h"
#include "trainer/inference/predict/prediction_target.h"

namespace trainer {
namespace {

// Calls f and converts any exception to a PredictorError.
template <class F>
auto Guarded(const F& f) {
  const auto fail = [](ErrorCode code, const std::string& message) -> PredictorError {
    return {static_cast<int>(code), message};
  };
  try {
    return f();
  } catch (const Error& error) {
    throw fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    throw fail(ErrorCode::kResource, "out of memory: lower the batch");
  } catch (const std::exception& error) {
    throw fail(ErrorCode::kInternal, Join("internal error, please report it: ", error.what()));
  }
}

PredictionTarget FindTarget(const PredictorOptions& options) {
  if (options.model.empty() && options.run.empty()) {
    throw Error(ErrorCode::kUsage, "PredictorOptions names neither a model nor a run");
  }
  if (!options.model.empty() && !options.run.empty()) {
    throw Error(ErrorCode::kUsage,
                "PredictorOptions names both a model and a run; leave one of them empty");
  }
  if (options.run.empty() && options.weights.empty() && !IsPack(options.model)) {
    throw Error(
        ErrorCode::kUsage, {options.model},
        "PredictorOptions names no weights for this net; set `weights`, or set `model` to a "
        "file of 'trainer pack', which contains them");
  }
  if (options.batch < 1) {
    throw Error(ErrorCode::kUsage, Join("batch is ", options.batch, "; it must be at least 1"));
  }
  PredictionTargetOptions target;
  target.model.file = options.model;
  target.weights = options.weights;
  target.run = options.run;
  target.batch = options.batch;
  return ResolvePredictionTarget(target);
}

std::unique_ptr<Device> MakePredictorDevice(int gpu) {
  if (gpu < 0) return MakeCpuDevice();
  return MakeGpuDevice({.id = gpu});
}

// Throws kConfig for a detector if the caller could not tell which rows belong to which image. A
// detector's output has one row per detection.
void CheckDynamicOutput(const Net& net, const std::string& output, int64_t images, int crops) {
  const Graph& graph = net.graph();
  const bool is_dynamic = graph.values[graph.latest_by_name.at(output)].is_dynamic;
  if (!is_dynamic || (images == 1 && crops == 1)) return;
  throw Error(ErrorCode::kConfig,
              Join("output '", output,
                   "' has another number of rows for each image; set PredictorOptions::batch to 1, "
                   "and leave --oversample out of the comment in the net's file"));
}

// Returns the shape of an item of a batch.
std::vector<int64_t> ItemShape(const Shape& batch) {
  return {batch.dims().begin() + 1, batch.dims().end()};
}

// Converts an image to the 1 or 3 channels that the net reads: gray, or blue, green, red.
Image ConvertImage(const PredictorImage& from, int64_t channels) {
  const bool has_size =
      from.height > 0 && from.width > 0 && from.height <= kMaxPixels / std::max(from.width, 1);
  if (!has_size || (from.channels != 1 && from.channels != 3)) {
    throw Error(ErrorCode::kUsage,
                Join("the image has ", from.height, "x", from.width, " pixels and ", from.channels,
                     " channels; it must have 1 to ", kMaxPixels, " pixels and 1 or 3 channels"));
  }
  if (from.pixels == nullptr) {
    throw Error(ErrorCode::kUsage, "the image has a size, but `pixels` of PredictorImage is null");
  }
  const size_t row = static_cast<size_t>(from.width) * static_cast<size_t>(from.channels);
  if (from.row_bytes != 0 && from.row_bytes < row) {
    throw Error(ErrorCode::kUsage, Join("row_bytes is ", from.row_bytes, ", but a row has ", row));
  }
  const size_t step = from.row_bytes == 0 ? row : from.row_bytes;
  std::vector<uint8_t> bytes;
  for (size_t y = 0; y < static_cast<size_t>(from.height); ++y) {
    bytes.insert(bytes.end(), from.pixels + y * step, from.pixels + y * step + row);
  }
  if (from.channels == 3 && from.order == PredictorImage::Order::kRgb) {
    for (size_t at = 0; at < bytes.size(); at += 3) std::swap(bytes[at], bytes[at + 2]);
  }
  Image image;
  FromInterleaved(bytes.data(), from.channels, from.height, from.width,
                  channels == 1 ? ColorMode::kGray : ColorMode::kColor, &image);
  return image;
}

}  // namespace

struct Predictor::Loaded {
  explicit Loaded(const PredictorOptions& options)
      : target(FindTarget(options)),
        device(MakePredictorDevice(options.gpu)),
        net(target.net, *device, {.state = target.state}),
        input(ImageInput(net.net()).value),
        output(ChooseScores(net.net(), options.output)),
        input_shape(ItemShape(input.shape)),
        output_shape(ItemShape(output.value.shape)),
        labels(ReadClassNamesOfRun(target.class_names, output.value.shape.Count(1))) {
    net.LoadAllWeights(target.weights);
    try {
      preprocess = ResolvePreprocessOptions({}, target.net);
    } catch (const Error& error) {
      bad_comment = error;  // kept for later, because Run does not need it
    }
    CheckDynamicOutput(net.net(), output.name, input.shape[0], preprocess.oversample ? 10 : 1);
    // Reads the mean file now, because the files of a pack are removed from memory after the
    // constructor.
    if (IsMemoryFile(preprocess.mean_file)) preprocessor.emplace(input.shape, preprocess);
  }

  // Returns the preprocessor. Throws as ImagePreprocessor does if the net reads no images, and as
  // ResolvePreprocessOptions does.
  ImagePreprocessor& Preprocessor() {
    if (bad_comment) throw Error(*bad_comment);
    if (!preprocessor) preprocessor.emplace(input.shape, preprocess);
    return *preprocessor;
  }

  std::vector<float> Run(const float* values, size_t items) {
    const auto batch = static_cast<size_t>(input.shape[0]);
    const auto in = static_cast<size_t>(input.shape.Count(1));
    std::vector<float> filled(batch * in), computed, result;
    for (size_t done = 0; done < items; done += batch) {
      const size_t count = std::min(batch, items - done);
      std::ranges::fill(std::copy_n(values + done * in, count * in, filled.begin()), filled.end(),
                        0.0f);
      net.net().WriteNchw(filled, input);
      net.net().Forward();
      const Tensor now = OutputOfLastPass();
      computed.resize(static_cast<size_t>(now.Count()));
      net.net().ReadNchw(now, computed);
      result.insert(
          result.end(), computed.begin(),
          computed.begin() + static_cast<std::ptrdiff_t>(computed.size() / batch * count));
    }
    return result;
  }

  // Returns the output with the shape of the last pass. The shape differs from `output` if a
  // detector has found fewer boxes.
  Tensor OutputOfLastPass() {
    return std::ranges::find(net.net().outputs(), output.name, &NetOutput::name)->value;
  }

  // Returns the mean of the outputs for the crops of one image.
  std::vector<float> RunCrops(const std::vector<float>& crops) {
    const auto count = crops.size() / static_cast<size_t>(input.shape.Count(1));
    std::vector<float> rows = Run(crops.data(), count);
    if (count == 1) return rows;
    const size_t row = rows.size() / count;
    for (size_t i = row; i < rows.size(); ++i) rows[i % row] += rows[i];
    rows.resize(row);
    for (float& value : rows) value /= static_cast<float>(count);
    return rows;
  }

  PredictionTarget target;
  std::unique_ptr<Device> device;
  InferenceNet net;
  Tensor input;
  NetOutput output;
  std::vector<int64_t> input_shape, output_shape;
  std::vector<std::string> labels;
  PreprocessOptions preprocess;
  std::optional<Error> bad_comment;  // why the comment in the net's file cannot be used
  std::optional<ImagePreprocessor> preprocessor;
};

Predictor::Predictor(const PredictorOptions& options) {
  // The constructors run one at a time, because NoLog changes a setting of the process, and all
  // packs share one list of files in memory.
  static std::mutex one_at_a_time;
  loaded_ = Guarded([&] {
    const std::lock_guard lock(one_at_a_time);
    const NoLog no_log;
    const MemoryFilesScope pack;
    return std::make_unique<Loaded>(options);
  });
}

Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

const std::vector<int64_t>& Predictor::input_shape() const { return loaded_->input_shape; }
const std::vector<int64_t>& Predictor::output_shape() const { return loaded_->output_shape; }
const std::vector<std::string>& Predictor::labels() const { return loaded_->labels; }

std::vector<float> Predictor::Predict(const PredictorImage& image) {
  return Guarded([&] {
    std::vector<float> crops;
    ImagePreprocessor& preprocessor = loaded_->Preprocessor();
    preprocessor.Prepare(ConvertImage(image, loaded_->input.shape[1]), &crops);
    return loaded_->RunCrops(crops);
  });
}

std::vector<float> Predictor::PredictFile(const std::string& path) {
  return Guarded([&] {
    std::vector<float> crops;
    loaded_->Preprocessor().Read(path, &crops);
    return loaded_->RunCrops(crops);
  });
}

std::vector<float> Predictor::Run(const float* values, std::size_t items) {
  return Guarded([&] { return loaded_->Run(values, items); });
}

}  // namespace trainer
