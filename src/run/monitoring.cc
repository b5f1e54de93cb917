#include "monitoring.h"

#include <glog/logging.h>
#include <google/protobuf/text_format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "run_info.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/process/gpu_reading.h"
#include "trainer/base/text/text.h"
#include "trainer/config/resolved_solver.h"
#include "trainer/monitor/events_observer.h"
#include "trainer/monitor/gpu_observer.h"
#include "trainer/monitor/metrics_observer.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

constexpr char kDefaultFolder[] = "auto";

using google::protobuf::FieldDescriptor;

// Returns the message as prototxt.
std::string ValueText(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

// Returns the fields of the solver that are set and that distinguish runs: all scalar fields except
// paths. Values of a repeated field are joined with blanks, and strings have no quotes.
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

// Returns name, type, bottoms and tops of the layers that remain after the net's filter.
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

// Returns the tops that no later layer of the net reads.
std::set<std::string> OutputsOf(const NetUse& use) {
  std::set<std::string> outputs;
  for (const NetLayer& layer : LayersOf(use)) {
    for (const std::string& input : layer.inputs) outputs.erase(input);
    outputs.insert(layer.outputs.begin(), layer.outputs.end());
  }
  return outputs;
}

// Logs a warning that the log file `path` cannot be written; nothing if `why` is "".
void WarnOfLog(const std::string& path, const std::string& why) {
  if (why.empty()) return;
  WarnOfRunFolder(Join("cannot write the log to ", AbsolutePath(path), ": ", why));
}

// Returns whether the live view replaces Caffe's log on the terminal. Without --log it does, unless
// stderr is not a terminal or glog's flags send the log there.
bool WantsView(const MonitorOptions& options) {
  if (!options.log.empty()) return options.log == "live";
  return isatty(STDERR_FILENO) == 1 && !options.log_to_stderr;
}

// Writes the resolved solver, net.prototxt and RunInfo to `folder`; a failure is a warning.
void WriteRunFacts(const std::string& folder, const SolverSpec& spec, const RunInfo& info) {
  const caffe::SolverParameter solver = ResolvedSolver(spec);
  const auto write = [&](const char* name, const std::string& text) {
    WriteWhole(JoinPath(folder, name), text);
  };
  try {
    write(kSolverName, ValueText(solver));
    write("net.prototxt",
          ValueText(solver.has_net_param() ? solver.net_param() : solver.train_net_param()));
    RunDirectory(folder).WriteInfo(info);
  } catch (const Error& e) {
    WarnOfRunFolder(e.what());
  }
}

// Adds the observers that write the metrics and TensorBoard's event file to `folder`.
void AddFolderObservers(const std::string& folder, const SolverSpec& spec,
                        ObserverList* observers) {
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

// Adds the observer that measures the use of the GPU, on rank 0 only. It must be the first one in
// the list, because the values that it passes to the others belong to the previous display. If the
// GPU cannot be measured, adds nothing.
void AddGpuObserver(const Device& device, const Rank& rank, ObserverList* observers) {
  if (rank.rank != 0 || device.kind() == DeviceKind::kCpu) return;
  std::string why;
  std::unique_ptr<GpuMonitor> monitor = MakeGpuMonitor(device, &why);
  if (monitor == nullptr) {
    VLOG(1) << "GPU use is not measured: " << why;
    return;
  }
  observers->Add(MakeGpuObserver(std::move(monitor), *observers));
}

}  // namespace

std::string RunFolderOf(const MonitorOptions& options, const SolverSpec& spec) {
  return options.run == kDefaultFolder ? spec.proto.snapshot_prefix() + "_run" : options.run;
}

std::unique_ptr<LiveView> StartMonitoring(const MonitorOptions& options, const SolverSpec& spec,
                                          const Rank& rank) {
  if (options.log == "caffe") LogDetails(true);
  if (rank.rank != 0) return nullptr;
  const std::string folder = RunFolderOf(options, spec);
  std::string log;
  if (!folder.empty()) {
    if (Exists(folder) && !IsDirectory(folder)) {
      throw Error(ErrorCode::kCannotCreate, {AbsolutePath(folder)},
                  "this is a file, but --run needs a folder, which it creates if it is missing; "
                  "give another name");
    }
    std::error_code ignored;  // opening the log reports the failure
    std::filesystem::create_directories(folder, ignored);
    log = JoinPath(folder, "train.log");
    WarnOfLog(log, AlsoLogToFile(log));
  }
  if (!WantsView(options)) return nullptr;
  if (log.empty() && FLAGS_log_dir.empty() && SavesSnapshots(spec.proto)) {
    log = spec.proto.snapshot_prefix() + ".log";
    WarnOfLog(log, AlsoLogToFile(log));
  }
  TerminalSettings terminal = TerminalOf(STDERR_FILENO);
  if (isatty(STDERR_FILENO) != 1) terminal.redraws = terminal.escapes = false;
  terminal.log_path = log;
  return std::make_unique<LiveView>(terminal);
}

bool AddObservers(const MonitorOptions& options, const SolverSpec& spec, const Device& device,
                  const Rank& rank, LiveView* view, ObserverList* observers, RunInfo* info) {
  AddGpuObserver(device, rank, observers);
  observers->Add(ObserverRegistry::Get().Make("log"));
  if (view != nullptr) observers->Add(view->MakeObserver());
  const std::string folder = RunFolderOf(options, spec);
  if (rank.rank == 0 && !folder.empty()) {
    *info = MakeRunInfo(spec, device, rank);
    WriteRunFacts(folder, spec, *info);
    AddFolderObservers(folder, spec, observers);
  }
  return !folder.empty();
}

}  // namespace trainer
