// Where the input of a training run loses time: what is measured, and what would help.

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>

#include "device_flags.h"
#include "reading_flags.h"
#include "shared_flags.h"
#include "time_measure.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/cli/verb.h"
#include "trainer/config/prototxt.h"
#include "trainer/data/image_list.h"
#include "trainer/data/prefetcher.h"
#include "trainer/data/read_ahead.h"
#include "trainer/data/window_list.h"
#include "trainer/dataset/input_advice.h"
#include "trainer/dataset/reading_rate.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

// A source of the training net.
struct Source {
  std::string layer;
  InputFacts facts;
  double batch = 0;  // records of an iteration
  // Its files, all of them, and how fast they are read.
  std::function<std::vector<std::string>()> files;
  std::function<std::vector<ReadingRate>(const ReadingOptions&)> rates;
};

// The pictures that a list names, in its order.
std::vector<std::string> PicturesOf(const std::vector<ListedImage>& images,
                                    const std::string& root) {
  std::vector<std::string> files;
  for (const ListedImage& image : images) files.push_back(root + image.path);
  return files;
}

std::optional<Source> SourceOf(const LayerSpec& layer) {
  const caffe::LayerParameter& proto = layer.proto();
  Source source;
  source.layer = layer.name();
  const auto take = [&](const std::string& kind, const std::string& path, uint32_t batch) {
    source.facts.kind = kind;
    source.facts.path = path.empty() ? "" : ResolvePath(path, layer.Where().file);
    source.batch = batch;
  };
  if (layer.type() == "Data") {
    const caffe::DataParameter& param = proto.data_param();
    take(caffe::DataParameter::DB_Name(param.backend()), "", param.batch_size());
    if (!param.source().empty()) source.facts.path = DatabasePath(layer);
  } else if (layer.type() == "HDF5Data") {
    take("HDF5", proto.hdf5_data_param().source(), proto.hdf5_data_param().batch_size());
  } else if (layer.type() == "ImageData") {
    take("files", proto.image_data_param().source(), proto.image_data_param().batch_size());
  } else if (layer.type() == "WindowData") {
    take("files", proto.window_data_param().source(), proto.window_data_param().batch_size());
  }
  const std::string path = source.facts.path;
  if (path.empty()) return std::nullopt;
  source.files = [path] { return FilesOfSet(path); };
  source.rates = [path](const ReadingOptions& options) { return MeasureReading(path, options); };
  if (layer.type() == "HDF5Data") {
    source.rates = [layer](const ReadingOptions& options) { return MeasureRows(layer, options); };
  } else if (source.facts.kind == "files") {
    const bool windows = layer.type() == "WindowData";
    source.files = [path, windows, proto] {
      return windows
                 ? PicturesOf(ReadWindowList(path).images, proto.window_data_param().root_folder())
                 : PicturesOf(ReadImageList(path), proto.image_data_param().root_folder());
    };
    source.rates = [files = source.files](const ReadingOptions& options) {
      return MeasureFiles(files(), options);
    };
  }
  return source;
}

// Where it lies, and how fast it is read and decoded. Of a long list some files are looked at.
void MeasureInput(double seconds, Source* source) {
  constexpr size_t kLookedAt = 1000;
  InputFacts& facts = source->facts;
  const std::vector<std::string> files = source->files();
  facts.where = FileSystemAt(files.empty() ? facts.path : files[0]);
  std::string largest;
  const size_t step = files.size() / kLookedAt + 1;
  for (size_t i = 0; i < files.size(); i += step) {
    const uint64_t bytes = FileSize(files[i]);
    facts.bytes += bytes * std::min(step, files.size() - i);
    if (bytes < facts.largest_file) continue;
    facts.largest_file = bytes;
    largest = files[i];
  }
  if (facts.where.name == "Lustre") facts.stripes = LustreStripes(largest);
  const std::vector<ReadingRate> rates = source->rates({seconds, 1});
  facts.cold = rates[0].RecordsPerSecond();
  facts.warm = rates[1].RecordsPerSecond();
  facts.decoded = rates.back().RecordsPerSecond();
}

// The seconds of an iteration that does not wait for data. Notes the threads that decode.
double IterationSeconds(const Flags& flags, std::vector<Source>* sources) {
  const int iterations = flags.Whole("iterations");
  const SolverSpec spec = TrainingOnly(SolverOf(flags), iterations + 1);
  const std::unique_ptr<Device> device = MakeLoggedDevice(ChooseDevice(flags, spec));
  TrainOptions options;
  options.saves = false;
  options.memory = ParseMemoryMode(flags);
  ObserverList nobody;
  Solver solver(spec, options, *device, nobody);
  Net& net = solver.train_net();
  const Times times = MeasureTimes({&net, &solver, device.get(), true}, iterations);
  for (int i = 0; i < net.NumLayers(); ++i) {
    const WaitCounters* const waits = net.GetLayer(i).Waits();
    for (Source& source : *sources) {
      if (waits != nullptr && source.layer == net.LayerAt(i).name()) {
        source.facts.threads = waits->threads;
      }
    }
  }
  const double step = times.step.Median(), waited = times.wait_ms * spec.proto.iter_size();
  // Where it waited nearly all the time the rest is not known well: a tenth is taken.
  return std::max(step - waited, step / 10) / 1e3;
}

MachineFacts LookAtMachine() {
  MachineFacts machine;
  const ThreadFacts threads = ReadThreadFacts();
  ThreadFacts granted = threads;
  granted.omp = granted.slurm = 0;
  machine.cores = AvailableThreads();
  machine.granted = ChooseThreads(granted);
  machine.machine = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.memory = ReadHostMemory().available;
  return machine;
}

std::string RateText(double rate) { return rate > 0 ? Fixed(rate, 0) : "-"; }

void PrintDiagnosis(const std::vector<Source>& sources, const MachineFacts& machine,
                    double seconds) {
  std::cout << "machine: " << machine.cores << " cores used, " << machine.granted << " given, "
            << machine.machine << " there; " << Bytes(machine.memory) << " of memory left\n"
            << "iteration without waiting: " << Fixed(1e3 * seconds, 2) << " ms\n\n";
  Table places({"layer", "source", "kind", "size", "file system", "stripes"});
  Table rates({"records/s", "net needs", "read cold", "read warm", "decoded by 1", "threads"});
  for (const Source& source : sources) {
    const InputFacts& facts = source.facts;
    places.Add({source.layer, EscapeControl(facts.path), facts.kind,
                facts.bytes > 0 ? Bytes(facts.bytes) : "-", facts.where.name,
                facts.stripes > 0 ? Join(facts.stripes) : "-"});
    rates.Add({source.layer, RateText(facts.consumed), RateText(facts.cold), RateText(facts.warm),
               RateText(facts.decoded), Join(facts.threads)});
  }
  std::cout << places.ToString() << "\n" << rates.ToString() << "\n";
}

void PrintAdvice(const std::vector<InputAdvice>& all) {
  std::cout << "advice, largest gain first:\n";
  if (all.empty()) std::cout << "  none: reading and decoding are faster than the net\n";
  for (size_t i = 0; i < all.size(); ++i) {
    std::cout << Wrap(Join("  ", i + 1, ". ", all[i].text), 5) << "\n";
  }
}

class Doctor final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kCluster,
        .summary = "find out why training waits for data",
        .usage = "trainer doctor --solver=FILE [flags]",
        .text =
            "Measures how many records per second the training net uses, and how fast its data can "
            "be read from the disk, read from memory, and decoded. It shows the file system of "
            "each source, and the number of stripes on Lustre. Then it gives advice, with the "
            "expected gain. It writes no file. 'read cold' means: the system was first told to "
            "drop the files from its cache; a file server may still have them in its own cache.",
        .examples =
            "trainer doctor --solver=models/lenet/solver.prototxt\n"
            "srun trainer doctor --solver=s.prototxt --gpu=0",
        .flags = WithReadingFlags(WithDeviceFlags(
            {{.name = "solver", .value = "FILE", .help = "the solver", .required = true},
             {.name = "iterations",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "10",
              .help = "how many iterations to measure",
              .min = 1},
             {.name = "seconds",
              .kind = FlagKind::kWhole,
              .value = "N",
              .fallback = "2",
              .help = "the longest time of each reading measurement",
              .min = 1,
              .max = 3600},
             LevelFlag(),
             StageFlag(),
             SetFlag(),
             MemoryFlag()})),
    };
  }

  int Run(const Flags& flags) override {
    ApplyReadingFlags(flags);
    std::vector<Source> sources;
    {
      const SolverSpec spec = SolverOf(flags);
      static_cast<void>(ChooseDevice(flags, spec));  // before anything is measured
      for (const LayerSpec& layer : FilterLayers(*spec.train.net, spec.train.state)) {
        if (std::optional<Source> source = SourceOf(layer)) {
          source->batch *= spec.proto.iter_size();
          sources.push_back(std::move(*source));
        }
      }
    }
    for (Source& source : sources) MeasureInput(flags.Whole("seconds"), &source);
    const double seconds = IterationSeconds(flags, &sources);
    const MachineFacts machine = LookAtMachine();
    std::vector<InputFacts> facts;
    for (Source& source : sources) {
      source.facts.consumed = source.batch / seconds;
      facts.push_back(source.facts);
    }
    PrintDiagnosis(sources, machine, seconds);
    PrintAdvice(AdviseOnInput(facts, machine));
    return 0;
  }
};

const RegisterVerb<Doctor> kDoctor("doctor");

}  // namespace
}  // namespace trainer
