#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <optional>
#include <utility>

#include "device_flags.h"
#include "shared_flags.h"
#include "trainer/base/json.h"
#include "trainer/base/progress.h"
#include "trainer/base/text.h"
#include "trainer/hdf5/reader.h"
#include "trainer/predict/boltzmann_machine.h"
#include "trainer/predict/data_energy.h"
#include "trainer/predict/parzen.h"
#include "verb.h"

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

const BoltzmannMachine& ChooseMachine(const std::vector<BoltzmannMachine>& machines,
                                      const std::string& name) {
  std::vector<std::string> names;
  for (const BoltzmannMachine& machine : machines) names.push_back(machine.name);
  if (machines.empty()) {
    throw Error(ErrorCode::kConfig,
                "the net has no RBM layer with output HIDDEN; --samples estimates the likelihood "
                "of other models by a Parzen window");
  }
  if (name.empty() && machines.size() == 1) return machines[0];
  if (name.empty()) {
    throw Error(ErrorCode::kUsage,
                Join("the net has several RBM layers: say which with --layer: ", JoinList(names)));
  }
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    throw Error(ErrorCode::kUsage, Join("--layer=", EscapeControl(name), " is no RBM layer.",
                                        DidYouMean(name, names), " There are ", JoinList(names)));
  }
  return machines[static_cast<size_t>(found - names.begin())];
}

class Likelihood final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kUse,
        .summary = "how likely test data is under a generative model",
        .usage = "trainer likelihood --model=FILE --weights=FILES [flags]",
        .text =
            "Prints the mean log-likelihood, in nats per record, of what an RBM layer reads in "
            "--iterations test batches: the free energy less the logarithm of the partition "
            "function Z, which annealed importance sampling estimates from --chains chains over "
            "--steps distributions (Salakhutdinov and Murray, 2008), with its standard error and "
            "the bounds of three of them. --iterations is the number of test batches alone; fewer "
            "--steps make a faster and rougher estimate. --exact sums over all states of a small "
            "machine.\n"
            "--samples=FILE estimates the likelihood of a model that can only be sampled: normal "
            "distributions around the samples of 'trainer sample --samples=FILE', of the width "
            "that fits the first --validation batches of --blob best, or of --sigma; the other "
            "batches count (a Parzen window; Breuleux, Bengio and Vincent, 2011).",
        .examples =
            "trainer likelihood --model=models/rbm/train_test.prototxt \\\n"
            "    --weights=run/rbm/pcd_iter_60000.caffemodel --iterations=100\n"
            "trainer likelihood --model=data.prototxt --blob=data \\\n"
            "    --samples=samples.h5 --iterations=100",
        .flags = WithDeviceFlags(
            {{.name = "model", .value = "FILE", .help = "the net, with its data", .required = true},
             WeightsFlag(),
             {.name = "layer", .value = "NAME", .help = "the RBM layer, where there are several"},
             IterationsFlag(),
             {.name = "chains",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "100",
              .help = "chains of annealed importance sampling",
              .min = 2,
              .max = 1000000},
             {.name = "steps",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "14500",
              .help = "distributions between the base and the model; fewer are faster and rougher",
              .min = 1,
              .max = 100000000},
             {.name = "exact",
              .kind = FlagKind::kSwitch,
              .help = "sum over all states, of at most 22 units"},
             {.name = "samples", .value = "FILE", .help = "HDF5 file of samples: a Parzen window"},
             {.name = "blob", .value = "NAME", .help = "the data for --samples"},
             {.name = "sigma", .value = "X", .help = "width of the window"},
             {.name = "validation",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "10",
              .help = "batches that choose the width",
              .min = 1},
             SeedFlag("of the random numbers"),
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
                  "--weights is missing: the weights of the RBM layer, or give "
                  "--samples for a Parzen window");
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
    const std::vector<BoltzmannMachine> machines = FindMachines(net);
    const BoltzmannMachine& machine = ChooseMachine(machines, flags.Text("layer"));
    const DataEnergy data = MeasureData(net, machine, flags.Whole("iterations"));
    PartitionEstimate z;
    if (flags.Switch("exact")) {
      z.log_z = z.low = z.high = SumPartition(net.device(), machine);
    } else {
      AnnealingOptions options;
      options.chains = flags.Whole("chains");
      options.steps = flags.Whole("steps");
      options.seed = static_cast<uint64_t>(flags.Whole("seed"));
      const int tenth = std::max(1, options.steps / 10);
      LOG(INFO) << "Estimating log Z with " << options.chains << " chains over " << options.steps
                << " distributions (--chains, --steps); --iterations=" << flags.Whole("iterations")
                << " is the number of test batches alone";
      Progress progress("Annealing", "distributions", options.steps, Progress::InLog::kNothing);
      int counted = 0;
      options.progress = [&](int done) {
        progress.Add(done - std::exchange(counted, done));
        if (done % tenth == 0) LOG(INFO) << done << " of " << options.steps << " distributions";
      };
      z = AnnealPartition(net.device(), machine, data.means, options);
    }
    Print(flags, machine, data, z);
    return 0;
  }

  static void Print(const Flags& flags, const BoltzmannMachine& machine, const DataEnergy& data,
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
                       " numbers each, and the records of --blob ", width));
    }
    std::vector<float> samples(static_cast<size_t>(count));
    array.Read(samples);
    return samples;
  }

  static std::vector<double> Widths(const Flags& flags) {
    if (flags.Has("sigma")) {
      const std::optional<double> sigma = NumberIn(flags.Text("sigma"));
      if (!sigma || !(*sigma > 0)) {
        throw Error(ErrorCode::kUsage, Join("--sigma is '", EscapeControl(flags.Text("sigma")),
                                            "'; it is a number above 0, such as 0.2"));
      }
      return {*sigma};
    }
    std::vector<double> widths;
    for (double sigma = 0.05; sigma < 0.6; sigma *= 1.1) widths.push_back(sigma);
    return widths;
  }

  static int RunParzen(const Flags& flags, Net& net) {
    const std::string& blob = flags.Text("blob");
    if (blob.empty()) throw Error(ErrorCode::kUsage, "--blob is missing: the data for --samples");
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
      throw Error(ErrorCode::kUsage, "--iterations leaves no batch after those of --validation");
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
