#include "run_info.h"

#include <google/protobuf/stubs/common.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "trainer/backend/device/onednn_version.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/host_info.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/process/program_info.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/image/library_versions.h"
#include "trainer/solver/solver.h"
#include "trainer/storage/library_versions.h"

namespace trainer {
namespace {

// Returns names and versions of the libraries that read data and compute, without oneDNN's.
std::vector<std::pair<std::string, std::string>> LibrariesOf(const Device& device) {
  constexpr int kProtobuf = GOOGLE_PROTOBUF_VERSION;  // 3021012 for 3.21.12
  std::vector<std::pair<std::string, std::string>> libraries = device.LibraryVersions();
  for (auto& library : ImageLibraryVersions()) libraries.push_back(std::move(library));
  for (auto& library : StorageLibraryVersions()) libraries.push_back(std::move(library));
  libraries.emplace_back(
      "protobuf", Join(kProtobuf / 1000000, ".", kProtobuf / 1000 % 1000, ".", kProtobuf % 1000));
  return libraries;
}

}  // namespace

RunInfo MakeRunInfo(const SolverSpec& spec, const Device& device, const Rank& rank) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  RunInfo info;
  info.program = ProgramIdentity();
  info.version = ProgramVersion();
  info.commit = BuildCommit();
  info.build = BuildKind();
  info.command = CommandLine();
  info.folder = AbsolutePath(".");
  info.solver = AbsolutePath(spec.file);
  info.snapshot_prefix = AbsolutePath(spec.proto.snapshot_prefix());
  info.saves = SavesSnapshots(spec.proto);
  info.host = HostName();
  info.process = getpid();
  info.started = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  info.ranks = rank.size;
  info.device = device.Describe();
  info.processor = ProcessorName();
  info.threads = DescribeThreads();
  info.memory_bytes = InstalledMemory();
  info.onednn = OneDnnVersion();
  info.libraries = LibrariesOf(device);
  for (const char* variable : {"SLURM_JOB_ID", "PBS_JOBID"}) {
    const std::string job = EnvironmentVariable(variable);
    if (!job.empty()) info.batch_job = job;
  }
  return info;
}

}  // namespace trainer
