#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "device_flags.h"
#include "shared_flags.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/hdf5/appender.h"
#include "trainer/image/mosaic.h"
#include "trainer/inference/generative/gibbs_sampler.h"
#include "trainer/inference/predict/blob_source.h"

namespace trainer {
namespace {

// One that a pass leaves for the next one.
struct Feed {
  std::string from, to;
};

std::vector<Feed> FeedsOf(const Flags& flags) {
  std::vector<Feed> feeds;
  for (const std::string& item : flags.List("feed")) {
    const size_t colon = item.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == item.size()) {
      throw Error(ErrorCode::kUsage,
                  Join("--feed: '", EscapeControl(item), "' is not of the form OUTPUT:INPUT"));
    }
    feeds.push_back({item.substr(0, colon), item.substr(colon + 1)});
  }
  return feeds;
}

// Where samples come from: a batch at a time.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual void Step() = 0;
  // Of the present state, row-major; dims()[0] of them.
  virtual std::vector<float> Values() = 0;
  virtual std::vector<int64_t> dims() const = 0;
};

// Gibbs steps in the net's last RBM.
class Machines final : public Sampler {
 public:
  Machines(const Flags& flags, Net& net)
      : machines_(FindRbms(net)),
        shape_(net.Input(machines_.front().layer, 0).shape),
        chains_(flags.Text("start") == "data" ? static_cast<int>(shape_[0]) : flags.Whole("count")),
        gibbs_(net.device(), machines_, chains_, static_cast<uint64_t>(flags.Whole("seed"))) {
    if (flags.Text("start") == "random") return;
    std::vector<float> values(static_cast<size_t>(chains_ * machines_.front().units.visible));
    if (flags.Text("start") == "data") {
      net.Forward();
      net.ReadPlain(net.Input(machines_.front().layer, 0), values);
    }
    gibbs_.StartAt(values);
  }

  void Step() override { gibbs_.Step(); }
  std::vector<float> Values() override { return gibbs_.Means(); }
  std::vector<int64_t> dims() const override {
    std::vector<int64_t> dims(shape_.dims().begin(), shape_.dims().end());
    dims[0] = chains_;
    return dims;
  }

 private:
  std::vector<RbmModel> machines_;
  Shape shape_;
  int chains_;
  GibbsSampler gibbs_;
};

// Passes of a net whose outputs become its inputs.
class Passes final : public Sampler {
 public:
  Passes(const Flags& flags, Net& net) : net_(net), blob_(flags.Text("blob")) {
    CheckBlobs(net, "blob", {blob_});
    const std::vector<InputBlob> inputs = InputBlobs(net);
    for (const Feed& feed : FeedsOf(flags)) {
      CheckBlobs(net, "feed", {feed.from});
      const auto input = std::ranges::find(inputs, feed.to, &InputBlob::name);
      if (input == inputs.end()) {
        throw Error(ErrorCode::kUsage,
                    Join("--feed: '", EscapeControl(feed.to), "' is not a top of an Input layer"));
      }
      if (net.Value(feed.from).Count() != input->value.Count()) {
        throw Error(
            ErrorCode::kUsage,
            Join("--feed: '", EscapeControl(feed.from), "' has ", net.Value(feed.from).Count(),
                 " numbers, but '", EscapeControl(feed.to), "' has ", input->value.Count()));
      }
      feeds_.push_back(feed);
    }
    if (flags.Text("start") == "data") {
      throw Error(ErrorCode::kUsage,
                  "--start=data needs a net with RBM layers; for this net use --start=random or "
                  "--start=zeros");
    }
    if (!inputs.empty() && flags.Text("start") == "random") {
      MakeRandomSource(static_cast<uint64_t>(flags.Whole("seed")), 1)->Fill(net);
    }
  }

  void Step() override {
    net_.Forward();
    for (const Feed& feed : feeds_) {
      host_.resize(static_cast<size_t>(net_.Value(feed.from).Count()));
      net_.ReadPlain(net_.Value(feed.from), host_);
      net_.WritePlain(host_, net_.Value(feed.to));
    }
  }
  std::vector<float> Values() override {
    std::vector<float> values(static_cast<size_t>(net_.Value(blob_).Count()));
    net_.ReadPlain(net_.Value(blob_), values);
    return values;
  }
  std::vector<int64_t> dims() const override {
    const Shape& shape = net_.Value(blob_).shape;
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    if (dims.empty()) dims = {1};
    return dims;
  }

 private:
  Net& net_;
  std::string blob_;
  std::vector<Feed> feeds_;
  std::vector<float> host_;
};

// (N, C, H, W) of rows that may be flat: --shape, the rows' own, or squares of grey.
std::vector<int64_t> PictureDims(const Flags& flags, std::vector<int64_t> dims) {
  const int64_t width =
      std::accumulate(dims.begin() + 1, dims.end(), int64_t{1}, std::multiplies<>());
  if (flags.Has("shape")) {
    std::vector<int64_t> shape = {dims[0]};
    for (const std::string& length : flags.List("shape")) {
      shape.push_back(std::strtol(length.c_str(), nullptr, 10));
    }
    const bool fits = shape.size() == 4 && shape[1] > 0 && shape[2] > 0 && shape[3] > 0 &&
                      shape[1] * shape[2] * shape[3] == width;
    if (fits) return shape;
    throw Error(ErrorCode::kUsage,
                Join("--shape=", EscapeControl(flags.Text("shape")),
                     " does not fit a sample: C*H*W must be ", width, " numbers"));
  }
  if (dims.size() == 4) return dims;
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(width))));
  if (side * side == width) return {dims[0], 1, side, side};
  throw Error(ErrorCode::kUsage, Join("a sample has ", width,
                                      " numbers, which is not a square image; give --shape=C,H,W"));
}

// Collects samples up to a number.
struct Collected {
  std::vector<int64_t> dims;  // of a batch
  std::vector<float> values;
  int64_t count = 0;

  void Add(const std::vector<int64_t>& batch_dims, const std::vector<float>& batch, int64_t most) {
    dims = batch_dims;
    const auto each = batch.size() / static_cast<size_t>(dims[0]);
    const int64_t now = std::min(dims[0], most - count);
    values.insert(values.end(), batch.begin(),
                  batch.begin() + static_cast<std::ptrdiff_t>(each * static_cast<size_t>(now)));
    count += now;
    dims[0] = count;
  }
};

class Sample final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kUse,
        .summary = "draw samples from a generative model",
        .usage = "trainer sample --model=FILE --weights=FILES --out=FILE.png [flags]",
        .text =
            "Draws --count samples and writes them as one image, a sheet of at most 256 samples. "
            "--samples also writes all of them to an HDF5 file, as dataset 'samples'.\n"
            "A net with RBM layers runs --count Markov chains with --steps Gibbs steps in the last "
            "RBM layer, then goes down through the other layers, as in a deep belief network. The "
            "images show means. --start=data starts the chains at the records of a batch instead "
            "of noise; --start=zeros starts them at zeros.\n"
            "Any other net runs --steps passes, and the sample is the blob --blob. --feed=OUT:IN "
            "copies blob OUT to the Input layer's blob IN for the next pass. After that, every "
            "--every passes give a batch of samples until there are --count. Noise layers with "
            "in_test draw new numbers in each pass.",
        .examples =
            "trainer sample --model=models/rbm/train_test.prototxt \\\n"
            "    --weights=run/rbm/pcd_iter_60000.caffemodel --out=digits.png\n"
            "trainer sample --model=models/gsn/sample.prototxt \\\n"
            "    --weights=run/gsn/gsn_iter_12000.caffemodel --blob=p \\\n"
            "    --feed=x_next:x,h2_next:h2 --start=zeros --steps=100 --out=digits.png",
        .flags = WithDeviceFlags(
            {{.name = "model", .value = "FILE", .help = "the net", .required = true},
             WeightsFlag(true),
             {.name = "out",
              .value = "FILE",
              .help = "the sheet of samples to write (.png)",
              .required = true},
             {.name = "samples",
              .value = "FILE",
              .help = "also write all samples to this HDF5 file"},
             {.name = "count",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "100",
              .help = "how many samples",
              .min = 1,
              .max = 10000000},
             {.name = "steps",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "1000",
              .help = "Gibbs steps, or passes, before the first sample",
              .min = 1},
             {.name = "every",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "1",
              .help = "steps between batches of samples",
              .min = 1},
             {.name = "start",
              .value = "random|zeros|data",
              .fallback = "random",
              .help = "where the chains start",
              .choices = "random|zeros|data"},
             {.name = "blob",
              .value = "NAME",
              .help = "blob with the samples, for a net without RBM layers"},
             {.name = "feed",
              .value = "LIST",
              .help = "OUT:IN pairs of blobs to copy after each pass, separated by commas"},
             {.name = "shape", .value = "C,H,W", .help = "shape of a sample as an image"},
             {.name = "force",
              .kind = FlagKind::kSwitch,
              .help = "replace files that already exist"},
             SeedFlag("seed of the random numbers"),
             PhaseFlag("TEST"),
             LevelFlag(),
             StageFlag(),
             SetFlag()})};
  }

  int Run(const Flags& flags) override {
    static_cast<void>(ChooseDevice(flags));
    RequireFiles(flags.List("weights"));
    RefuseToReplace(flags);
    if (!LowerCase(flags.Text("out")).ends_with(".png")) {
      throw Error(ErrorCode::kUsage,
                  Join("--out=", EscapeControl(flags.Text("out")),
                       ": the sheet is a PNG file; give a name that ends in .png"));
    }
    const NetSpec spec = ModelOf(flags);
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(flags, spec));
    ParamStore params(*device);
    NetOptions options;
    options.state = NetStateOf(flags, PhaseOf(flags));
    options.memory = MemoryMode::kSeparate;  // nothing overwrites a blob
    options.seed = static_cast<uint64_t>(flags.Whole("seed"));
    options.log = false;
    Net net(spec, options, *device, params);
    Net* const nets[] = {&net};
    LoadWeights(flags, nets);
    const std::unique_ptr<Sampler> sampler = SamplerOf(flags, net);
    PictureDims(flags, sampler->dims());
    Write(flags, Draw(flags, *sampler));
    return 0;
  }

 private:
  static std::unique_ptr<Sampler> SamplerOf(const Flags& flags, Net& net) {
    if (flags.Has("blob")) return std::make_unique<Passes>(flags, net);
    if (FindRbms(net).empty()) {
      throw Error(ErrorCode::kUsage,
                  "the net has no RBM layer; name the blob with the samples: --blob=NAME");
    }
    return std::make_unique<Machines>(flags, net);
  }

  static Collected Draw(const Flags& flags, Sampler& sampler) {
    Collected samples;
    const int count = flags.Whole("count");
    for (int step = 0; step < flags.Whole("steps"); ++step) sampler.Step();
    for (;;) {
      samples.Add(sampler.dims(), sampler.Values(), count);
      if (samples.count >= count) return samples;
      for (int step = 0; step < flags.Whole("every"); ++step) sampler.Step();
    }
  }

  static void Write(const Flags& flags, const Collected& samples) {
    if (flags.Has("samples")) {
      Hdf5Appender file(flags.Text("samples"), "",
                        flags.Switch("force") ? Hdf5Creation::kReplace : Hdf5Creation::kNew);
      file.Append("samples", samples.dims, samples.values);
      file.Close();
    }
    const std::vector<int64_t> dims = PictureDims(flags, samples.dims);
    WriteWhole(flags.Text("out"), EncodeImage(Mosaic(samples.values, dims), "png"));
    LOG(INFO) << EscapeControl(Join("Wrote ", flags.Text("out"), ": ", samples.count, " samples"));
  }
};

const RegisterVerb<Sample> kSample("sample");

}  // namespace
}  // namespace trainer
