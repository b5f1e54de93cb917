#include "watching.h"

#include <glog/logging.h>
#include <google/protobuf/text_format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "trainer/backend/gpu_monitor.h"
#include "trainer/backend/onednn_version.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/process/host_info.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/process/program_info.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/config/resolved.h"
#include "trainer/monitor/gpu_watch.h"
#include "trainer/monitor/run_folder.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

constexpr char kBeside[] = "auto";

using google::protobuf::FieldDescriptor;

std::string ValueText(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

// The fields of the solver that are set and make a difference between runs.
std::vector<Setting> SettingsOf(const caffe::SolverParameter& solver) {
  static const std::set<std::string> kPaths = {"net", "train_net", "test_net", "weights",
                                               "snapshot_prefix"};
  std::vector<const FieldDescriptor*> fields;
  solver.GetReflection()->ListFields(solver, &fields);
  std::vector<Setting> settings;
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE || kPaths.contains(field->name())) {
      continue;
    }
    Setting setting{field->name(), "", false};
    const int count = field->is_repeated() ? solver.GetReflection()->FieldSize(solver, field) : 1;
    for (int i = 0; i < count; ++i) {
      std::string value;
      google::protobuf::TextFormat::PrintFieldValueToString(solver, field,
                                                            field->is_repeated() ? i : -1, &value);
      setting.value += (i == 0 ? "" : " ") + value;
    }
    const auto type = field->cpp_type();
    const bool text = type == FieldDescriptor::CPPTYPE_STRING;
    if (text && setting.value.size() >= 2) {
      setting.value = setting.value.substr(1, setting.value.size() - 2);
    }
    setting.is_number = count == 1 && !text && type != FieldDescriptor::CPPTYPE_ENUM &&
                        type != FieldDescriptor::CPPTYPE_BOOL;
    settings.push_back(setting);
  }
  return settings;
}

std::vector<NetLayer> LayersOf(const NetUse& use) {
  std::vector<NetLayer> layers;
  for (const LayerSpec& layer : FilterLayers(*use.net, use.state)) {
    const caffe::LayerParameter& proto = layer.proto();
    layers.push_back({proto.name(),
                      proto.type(),
                      {proto.bottom().begin(), proto.bottom().end()},
                      {proto.top().begin(), proto.top().end()}});
  }
  return layers;
}

// The tops that no layer reads.
std::set<std::string> OutputsOf(const NetUse& use) {
  std::set<std::string> outputs;
  for (const NetLayer& layer : LayersOf(use)) {
    for (const std::string& input : layer.inputs) outputs.erase(input);
    outputs.insert(layer.outputs.begin(), layer.outputs.end());
  }
  return outputs;
}

Json Environment(const SolverSpec& spec, const Device& device, const Rank& replica) {
  Json command = Json::Array();
  for (const std::string& word : CommandLine()) command.Push(word);
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Json json = Json::Object()
                  .Set("program", ProgramIdentity())
                  .Set("version", TRAINER_VERSION)
                  .Set("commit", BuildCommit())
                  .Set("build", BuildKind())
                  .Set("command", std::move(command))
                  .Set("folder", AbsolutePath("."))
                  .Set("solver", AbsolutePath(spec.file))
                  .Set("snapshot_prefix", AbsolutePath(spec.proto.snapshot_prefix()))
                  .Set("saves", SavesSnapshots(spec.proto))
                  .Set("host", std::string(host))
                  .Set("process", static_cast<int64_t>(getpid()))
                  .Set("started", std::chrono::duration_cast<std::chrono::seconds>(now).count())
                  .Set("ranks", replica.size)
                  .Set("device", device.Describe())
                  .Set("processor", ProcessorName())
                  .Set("threads", DescribeThreads())
                  .Set("memory_bytes", InstalledMemory())
                  .Set("onednn", OneDnnVersion());
  for (const char* variable : {"SLURM_JOB_ID", "PBS_JOBID"}) {
    const char* const job = std::getenv(variable);
    if (job != nullptr) json.Set("batch_job", std::string(job));
  }
  return json;
}

void WarnOfLog(const std::string& path, const std::string& why) {
  if (why.empty()) return;
  WarnOfRunFolder(Join("cannot write the log to ", AbsolutePath(path), ": ", why));
}

bool WantsView(const Flags& flags) {
  if (flags.Has("log")) return flags.Text("log") == "live";
  const bool asked = flags.Text("logtostderr") == "true" || flags.Text("alsologtostderr") == "true";
  return isatty(STDERR_FILENO) == 1 && !asked;
}

// The folder of --run, or "".
std::string RunFolderOf(const Flags& flags, const SolverSpec& spec) {
  const std::string& folder = flags.Text("run");
  return folder == kBeside ? spec.proto.snapshot_prefix() + "_run" : folder;
}

void WriteRunFacts(const std::string& folder, const SolverSpec& spec, const Device& device,
                   const Rank& replica) {
  const caffe::SolverParameter solver = ResolvedSolver(spec);
  const auto write = [&](const char* name, const std::string& text) {
    WriteWhole(JoinPath(folder, name), text);
  };
  try {
    write(kSolverName, ValueText(solver));
    write("net.prototxt",
          ValueText(solver.has_net_param() ? solver.net_param() : solver.train_net_param()));
    write(kEnvironmentName, Environment(spec, device, replica).ToString());
  } catch (const Error& e) {
    WarnOfRunFolder(e.what());
  }
}

void WatchInFolder(const std::string& folder, const SolverSpec& spec, ObserverList* observers) {
  RunFacts facts;
  facts.layers = LayersOf(spec.train);
  facts.settings = SettingsOf(spec.proto);
  facts.solver = ValueText(spec.proto);
  const caffe::SolverParameter resolved = ResolvedSolver(spec);
  facts.net =
      ValueText(resolved.has_net_param() ? resolved.net_param() : resolved.train_net_param());
  for (size_t i = 0; i < spec.tests.size(); ++i) {
    for (const std::string& output : OutputsOf(spec.tests[i])) {
      facts.metrics.push_back(Join("test", i, "/", output));
    }
  }
  observers->Add(MakeMetricsObserver(folder));
  observers->Add(MakeEventsObserver(folder, facts));
}

// Of rank 0, as all else that is watched. The first of the observers: what it tells the others is
// of the display before.
void WatchGpu(const Device& device, const Rank& replica, ObserverList* observers) {
  if (replica.rank != 0 || device.kind() == DeviceKind::kCpu) return;
  std::string why;
  std::unique_ptr<GpuMonitor> monitor = MakeGpuMonitor(device, &why);
  if (monitor == nullptr) {
    VLOG(1) << "GPU use is not measured: " << why;
    return;
  }
  observers->Add(MakeGpuWatch(std::move(monitor), *observers));
}

}  // namespace

Flag RunFolderFlag() {
  return {
      .name = "run",
      .value = "DIR",
      .help =
          "keep a record of the run in this folder (created if needed): solver, net, environment, "
          "log, metrics.jsonl and .csv, TensorBoard events; without DIR: in <snapshot_prefix>_run",
      .bare = kBeside};
}

Flag LogFlag() {
  return {.name = "log",
          .value = "FORM",
          .help =
              "what to print on stderr. caffe: every line of Caffe's log; live: one status line "
              "that is updated, with tests, snapshots and warnings above it. Default: live on a "
              "terminal, else Caffe's log without the lines of each layer and each epoch",
          .choices = "caffe|live"};
}

std::unique_ptr<LiveView> BeginWatching(const Flags& flags, const SolverSpec& spec,
                                        const Rank& replica) {
  if (flags.Text("log") == "caffe") LogDetails();
  if (replica.rank != 0) return nullptr;
  const std::string folder = RunFolderOf(flags, spec);
  std::string log;
  if (!folder.empty()) {
    std::error_code ignored;  // the log's failure says it
    std::filesystem::create_directories(folder, ignored);
    log = JoinPath(folder, "train.log");
    WarnOfLog(log, AlsoLogToFile(log));
  }
  if (!WantsView(flags)) return nullptr;
  if (log.empty() && FLAGS_log_dir.empty() && SavesSnapshots(spec.proto)) {
    log = spec.proto.snapshot_prefix() + ".log";
    WarnOfLog(log, AlsoLogToFile(log));
  }
  TerminalSettings terminal = TerminalOf(STDERR_FILENO);
  if (isatty(STDERR_FILENO) != 1) terminal.redraws = terminal.escapes = false;
  terminal.log_path = log;
  return std::make_unique<LiveView>(terminal);
}

bool AddWatchers(const Flags& flags, const SolverSpec& spec, const Device& device,
                 const Rank& replica, LiveView* view, ObserverList* observers) {
  WatchGpu(device, replica, observers);
  observers->Add(ObserverRegistry::Get().Make("log"));
  if (view != nullptr) observers->Add(view->MakeObserver());
  const std::string folder = RunFolderOf(flags, spec);
  if (replica.rank == 0 && !folder.empty()) {
    WriteRunFacts(folder, spec, device, replica);
    WatchInFolder(folder, spec, observers);
  }
  return !folder.empty();
}

}  // namespace trainer
