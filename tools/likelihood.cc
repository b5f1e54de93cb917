#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <optional>
#include <utility>

#include "device_flags.h"
#include "shared_flags.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/hdf5/reader.h"
#include "trainer/inference/generative/ais_partition.h"
#include "trainer/inference/generative/exact_partition.h"
#include "trainer/inference/generative/free_energy.h"
#include "trainer/inference/generative/parzen_window.h"

namespace trainer {
namespace {

// "-86.34": two digits after the point are what such estimates hold.
std::string Nats(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", value);
  return text;
}

std::optional<double> NumberIn(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

class Likelihood final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kUse,
        .summary = "estimate the likelihood of data under a generative model",
        .usage = "trainer likelihood --model=FILE --weights=FILES [flags]",
        .text =
            "Prints the mean log-likelihood, in nats per record, of the input of an RBM layer over "
            "--iterations test batches. It is the negative free energy minus log Z, where Z is the "
            "partition function. Annealed importance sampling estimates log Z with --chains chains "
            "over --steps distributions (Salakhutdinov and Murray, 2008). The output also has its "
            "standard error and its bounds at three standard errors. --iterations sets only the "
            "number of test batches. Fewer --steps are faster and less exact. --exact sums over "
            "all states of a small RBM.\n"
            "--samples=FILE is for a model that can only be sampled. It makes a Parzen window "
            "(Breuleux, Bengio and Vincent, 2011): a normal distribution around each sample in the "
            "file, which 'trainer sample --samples=FILE' wrote. Their width is --sigma, or else "
            "the best width for the first --validation batches of --blob. The likelihood is the "
            "mean over the other batches.",
        .examples =
            "trainer likelihood --model=models/rbm/train_test.prototxt \\\n"
            "    --weights=run/rbm/pcd_iter_60000.caffemodel --iterations=100\n"
            "trainer likelihood --model=data.prototxt --blob=data \\\n"
            "    --samples=samples.h5 --iterations=100",
        .flags = WithDeviceFlags(
            {{.name = "model", .value = "FILE", .help = "the net, with its data", .required = true},
             WeightsFlag(),
             {.name = "layer", .value = "NAME", .help = "which RBM layer, if the net has several"},
             IterationsFlag(),
             {.name = "chains",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "100",
              .help = "number of chains of annealed importance sampling",
              .min = 2,
              .max = 1000000},
             {.name = "steps",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "14500",
              .help = "number of distributions between the base and the model; fewer are faster "
                      "and less exact",
              .min = 1,
              .max = 100000000},
             {.name = "exact",
              .kind = FlagKind::kSwitch,
              .help = "compute log Z as the sum over all states; for at most 22 units"},
             {.name = "samples",
              .value = "FILE",
              .help = "HDF5 file of samples for a Parzen window"},
             {.name = "blob",
              .value = "NAME",
              .help = "blob with the data to compare with --samples"},
             {.name = "sigma", .value = "X", .help = "width of the Parzen window"},
             {.name = "validation",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "10",
              .help = "number of batches that choose the width",
              .min = 1},
             SeedFlag("seed of the random numbers"),
             JsonFlag(),
             PhaseFlag("TEST"),
             LevelFlag(),
             StageFlag(),
             SetFlag()})};
  }

  int Run(const Flags& flags) override {
    static_cast<void>(ChooseDevice(flags));
    const bool parzen = flags.Has("samples");
    if (!parzen && !flags.Has("weights")) {
      throw Error(ErrorCode::kUsage,
                  "--weights is missing: give the weights of the RBM layer, or --samples for a "
                  "Parzen window");
    }
    RequireFiles(flags.List("weights"));
    const NetSpec spec = ModelOf(flags);
    const std::unique_ptr<Device> device = MakeDevice(ChooseDevice(flags, spec));
    ParamStore params(*device);
    NetOptions options;
    options.state = NetStateOf(flags, PhaseOf(flags));
    options.memory = MemoryMode::kSeparate;  // layers' inputs are read after a pass
    options.seed = static_cast<uint64_t>(flags.Whole("seed"));
    options.log = false;
    Net net(spec, options, *device, params);
    Net* const nets[] = {&net};
    if (flags.Has("weights")) LoadWeights(flags, nets);
    return parzen ? RunParzen(flags, net) : RunMachine(flags, net);
  }

 private:
  static int RunMachine(const Flags& flags, Net& net) {
    const std::vector<RbmModel> machines = FindRbms(net);
    const RbmModel& machine = SelectRbm(machines, flags.Text("layer"));
    const FreeEnergy data = MeasureFreeEnergy(net, machine, flags.Whole("iterations"));
    PartitionEstimate z;
    if (flags.Switch("exact")) {
      z.log_z = z.low = z.high = ExactPartition(net.device(), machine);
    } else {
      AisOptions options;
      options.chains = flags.Whole("chains");
      options.steps = flags.Whole("steps");
      options.seed = static_cast<uint64_t>(flags.Whole("seed"));
      const int tenth = std::max(1, options.steps / 10);
      LOG(INFO) << "Estimating log Z with " << options.chains << " chains over " << options.steps
                << " distributions (--chains, --steps); --iterations=" << flags.Whole("iterations")
                << " sets only the number of test batches";
      Progress progress("Annealing", "distributions", options.steps, Progress::InLog::kNothing);
      int counted = 0;
      options.progress = [&](int done) {
        progress.Add(done - std::exchange(counted, done));
        if (done % tenth == 0) LOG(INFO) << done << " of " << options.steps << " distributions";
      };
      z = EstimatePartitionAis(net.device(), machine, data.means, options);
    }
    Print(flags, machine, data, z);
    return 0;
  }

  static void Print(const Flags& flags, const RbmModel& machine, const FreeEnergy& data,
                    const PartitionEstimate& z) {
    const bool exact = flags.Switch("exact");
    const double likelihood = -data.free_energy - z.log_z;
    if (flags.Switch("json")) {
      std::cout << Json::Object()
                       .Set("layer", machine.name)
                       .Set("visible", machine.units.visible)
                       .Set("hidden", machine.units.hidden)
                       .Set("records", data.records)
                       .Set("free_energy", data.free_energy)
                       .Set("log_z", z.log_z)
                       .Set("log_z_error", z.error)
                       .Set("log_likelihood", likelihood)
                       .Set("low", -data.free_energy - z.high)
                       .Set("high", -data.free_energy - z.low)
                       .ToString();
      return;
    }
    std::cout << EscapeControl(machine.name) << ": " << machine.units.visible << " visible and "
              << machine.units.hidden << " hidden units\n"
              << "free energy    " << Nats(data.free_energy) << ", the mean of " << data.records
              << " records in " << flags.Whole("iterations") << " batches\n"
              << "log Z          " << Nats(z.log_z)
              << (exact ? ", the sum over all states"
                        : Join(", standard error ", Nats(z.error), "; ", Nats(z.low), " to ",
                               Nats(z.high), " within three (", flags.Whole("chains"), " chains, ",
                               flags.Whole("steps"), " distributions)"))
              << "\nlog-likelihood " << Nats(likelihood) << " nats per record";
    if (!exact) {
      std::cout << "; " << Nats(-data.free_energy - z.high) << " to "
                << Nats(-data.free_energy - z.low);
    }
    std::cout << "\n";
  }

  static std::vector<float> ReadSamples(const std::string& path, int64_t width) {
    const Hdf5Reader file(path);
    const Hdf5Array array = file.Array("samples");
    int64_t count = 1;
    for (const int64_t length : array.dims()) count *= length;
    const int64_t rows = array.dims().empty() ? 0 : array.dims()[0];
    if (rows < 1 || count / rows != width) {
      throw Error(ErrorCode::kData, {path},
                  Join("its samples have ", rows < 1 ? 0 : count / rows,
                       " numbers each, but the records of --blob have ", width));
    }
    std::vector<float> samples(static_cast<size_t>(count));
    array.Read(samples);
    return samples;
  }

  static std::vector<double> Widths(const Flags& flags) {
    if (flags.Has("sigma")) {
      const std::optional<double> sigma = NumberIn(flags.Text("sigma"));
      if (!sigma || !(*sigma > 0)) {
        throw Error(ErrorCode::kUsage, Join("--sigma='", EscapeControl(flags.Text("sigma")),
                                            "' is not a number above 0; give a width such as 0.2"));
      }
      return {*sigma};
    }
    std::vector<double> widths;
    for (double sigma = 0.05; sigma < 0.6; sigma *= 1.1) widths.push_back(sigma);
    return widths;
  }

  static int RunParzen(const Flags& flags, Net& net) {
    const std::string& blob = flags.Text("blob");
    if (blob.empty())
      throw Error(ErrorCode::kUsage,
                  "--blob is missing: name the blob with the data to compare with --samples");
    CheckBlobs(net, "blob", {blob});
    const Tensor value = net.Value(blob);
    const int64_t rows = value.shape.Rank() > 0 ? value.shape[0] : 1;
    const int64_t width = value.Count() / rows;
    ParzenWindow window(net.device(), ReadSamples(flags.Text("samples"), width), width, rows);
    std::vector<double> widths = Widths(flags);
    const int choosing = flags.Has("sigma") ? 0 : flags.Whole("validation");
    const auto read = [&](int batches) {
      std::vector<float> records, batch(static_cast<size_t>(value.Count()));
      Progress progress("Reading data", "batches", batches);
      for (int i = 0; i < batches; ++i) {
        net.Forward();
        progress.Add(1);
        net.ReadPlain(net.Value(blob), batch);
        records.insert(records.end(), batch.begin(), batch.end());
      }
      return records;
    };
    if (choosing > 0) {
      const std::vector<double> densities = window.MeanLogDensities(read(choosing), widths);
      const auto best = std::ranges::max_element(densities) - densities.begin();
      widths = {widths[static_cast<size_t>(best)]};
    }
    const int counted = flags.Whole("iterations") - choosing;
    if (counted < 1) {
      throw Error(ErrorCode::kUsage,
                  "--iterations must be larger than --validation, so that test batches are left");
    }
    const double likelihood = window.MeanLogDensities(read(counted), widths)[0];
    if (flags.Switch("json")) {
      std::cout << Json::Object()
                       .Set("sigma", widths[0])
                       .Set("records", counted * rows)
                       .Set("log_likelihood", likelihood)
                       .ToString();
    } else {
      std::cout << "sigma          " << Join(static_cast<float>(widths[0])) << "\nlog-likelihood "
                << Nats(likelihood) << " nats per record, the mean of " << counted * rows
                << " records\n";
    }
    return 0;
  }
};

const RegisterVerb<Likelihood> kLikelihood("likelihood");

}  // namespace
}  // namespace trainer
