#include "trainer/analysis/input/input_report.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "input/source_probe.h"
#include "trainer/analysis/timing/net_profile.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/net/data_layers.h"

namespace trainer {
namespace {

// Sets the number of threads that decode for each source.
void SetThreads(const Net& net, std::vector<InputSource>* sources) {
  const std::map<std::string, InputCounters> counters = CountersOfDataLayers(net);
  for (InputSource& source : *sources) {
    const auto found = counters.find(source.layer);
    if (found != counters.end()) source.profile.threads = found->second.threads;
  }
}

// Returns the seconds of an iteration without its waiting for data, and sets the threads of each
// source on the way, because the net that is measured knows them.
double MeasureIteration(SolverSpec spec, const Device& device, const DiagnosisOptions& options,
                        std::vector<InputSource>* sources) {
  const int passes = spec.proto.iter_size();
  ProfileOptions profile;
  profile.iterations = options.iterations;
  profile.memory = options.memory;
  profile.inspect = [&](const Net& net, const NetProfile&) { SetThreads(net, sources); };
  const NetProfile measured = ProfileSolver(std::move(spec), device, profile);
  const double step = measured.step.Median();
  const double waited = measured.wait_ms * passes;
  // If the net waited nearly all the time, the difference is too uncertain: a tenth is the least.
  return std::max(step - waited, step / 10) / 1e3;
}

// Returns the resources of this process. `granted` ignores OMP_NUM_THREADS and Slurm's number of
// CPUs, and shows what affinity and container allow.
HostResources ReadHostResources() {
  HostResources host;
  ThreadFacts granted = ReadThreadFacts();
  granted.omp = granted.slurm = 0;
  host.cores = AvailableThreads();
  host.granted = ChooseThreads(granted);
  host.machine = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  host.memory = ReadHostMemory().available;
  return host;
}

// Returns the rate without decimals, or "-" for one that was not measured.
std::string RecordRateCell(double rate) { return rate > 0 ? Fixed(rate, 0) : "-"; }

}  // namespace

InputDiagnosis DiagnoseInput(SolverSpec spec, const Device& device,
                             const DiagnosisOptions& options) {
  std::vector<InputSource> sources = FindSources(spec);
  for (InputSource& source : sources) ProbeSource(options.seconds, &source);
  InputDiagnosis diagnosis;
  diagnosis.iteration_seconds = MeasureIteration(std::move(spec), device, options, &sources);
  diagnosis.host = ReadHostResources();
  std::vector<InputProfile> profiles;
  for (InputSource& source : sources) {
    source.profile.consumed = source.batch / diagnosis.iteration_seconds;
    profiles.push_back(source.profile);
    diagnosis.sources.push_back({source.layer, source.profile});
  }
  diagnosis.advice = AdviseInput(profiles, diagnosis.host);
  return diagnosis;
}

std::string ToText(const InputDiagnosis& diagnosis) {
  const HostResources& host = diagnosis.host;
  std::string text =
      Join("machine: ", host.cores, " cores used, ", host.granted, " given, ", host.machine,
           " there; ", Bytes(host.memory), " of memory left\niteration without waiting: ",
           Fixed(1e3 * diagnosis.iteration_seconds, 2), " ms\n\n");
  Table places({"layer", "source", "kind", "size", "file system", "stripes"});
  Table rates({"records/s", "net needs", "read cold", "read warm", "decoded by 1", "threads"});
  for (const InputDiagnosis::Source& source : diagnosis.sources) {
    const InputProfile& profile = source.profile;
    places.Add({source.layer, EscapeControl(profile.path), profile.kind,
                profile.bytes > 0 ? Bytes(profile.bytes) : "-", profile.where.name,
                profile.stripes > 0 ? Join(profile.stripes) : "-"});
    rates.Add({source.layer, RecordRateCell(profile.consumed), RecordRateCell(profile.cold),
               RecordRateCell(profile.warm), RecordRateCell(profile.decoded),
               Join(profile.threads)});
  }
  text += places.ToString() + "\n" + rates.ToString() + "\nadvice, largest gain first:\n";
  if (diagnosis.advice.empty()) {
    text += "  none: reading and decoding are faster than the net\n";
  }
  for (size_t i = 0; i < diagnosis.advice.size(); ++i) {
    text += Wrap(Join("  ", i + 1, ". ", diagnosis.advice[i].text), 5) + "\n";
  }
  return text;
}

}  // namespace trainer
