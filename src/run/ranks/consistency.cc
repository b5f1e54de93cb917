#include "ranks/consistency.h"

#include <glog/logging.h>

#include "ranks/data_fingerprint.h"
#include "trainer/base/process/program_info.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/config/resolved_solver.h"
#include "trainer/parallel/consistency.h"

namespace trainer {
namespace {

// Returns a line "<path>: <content>" for each source, which ranks compare.
std::string FactLines(const std::vector<DataFingerprint>& sources) {
  std::string lines;
  for (const DataFingerprint& source : sources)
    lines += Join(source.path, ": ", source.content, "\n");
  return lines;
}

}  // namespace

void RequireConsistentRanks(World& world, const SolverSpec& spec, const Device& device,
                            const GpuOptions& gpu) {
  const std::vector<DataFingerprint> sources = FingerprintData(spec.train);
  std::string data = FactLines(sources);
  for (const NetUse& test : spec.tests)
    data += FactLines(FingerprintData(test));  // ranks divide tests
  RequireConsistent(
      world.group(), world.topology().names,
      {{"the program", ProgramIdentity()},
       {"the solver and its nets", ResolvedText(spec)},
       {"the data", data},
       {"the number of threads", Join(AvailableThreads())},
       {device.kind() == DeviceKind::kCpu ? "the processor" : "the GPU", device.Describe()},
       {"--tf32", gpu.tf32 ? "--tf32" : "--notf32"},
       {"--deterministic", gpu.deterministic ? "--deterministic" : "--nodeterministic"}});
  const auto ranks = static_cast<uint64_t>(world.group().rank().size);
  const auto passes = static_cast<uint64_t>(spec.proto.iter_size());
  for (const DataFingerprint& source : sources) {
    const std::string epoch = DescribeEpoch(source, source.batch_size * ranks * passes);
    if (!epoch.empty()) LOG(INFO) << epoch;
  }
}

}  // namespace trainer
