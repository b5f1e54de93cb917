#include <unistd.h>

#include <iostream>

#include "batch_flag.h"
#include "check_report.h"
#include "device_flags.h"
#include "memory_flags.h"
#include "reading_flags.h"
#include "run_flags.h"
#include "shared_flags.h"
#include "trainer/base/log/terminal.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/run/preflight/log_capture.h"

namespace trainer {
namespace {

// All that can be found out of one net.
void CheckModel(const Flags& flags, CheckReport* report) {
  Diagnostics& diagnostics = report->diagnostics;
  NetSpec spec;
  if (!diagnostics.Collect([&] { spec = ModelOf(flags); })) return;
  const CheckedDevice checked_device = DeviceToCheck(ChooseDevice(flags, spec), &diagnostics);
  const Device& device = *checked_device.device;
  const bool train = PhaseOf(flags) == caffe::TRAIN;
  CheckedNet checked{"net", &spec, {}, 0, 1};
  checked.options.state = NetStateOf(flags, PhaseOf(flags));
  checked.options.training = train;
  checked.options.log = false;
  checked.options.output_files = OutputFiles::kLook;
  const std::vector<CheckedNet> nets = {checked};
  const RunPlan plan = PlanNets(nets, nullptr, nullptr, device, report);
  const bool fits = !plan.good() || CheckMemory(nets, plan, checked_device, report);
  const std::vector<LayerAudit> audits = AuditNets(nets, plan, &diagnostics);
  ParamStore params(device);
  std::unique_ptr<Net> net;
  if (plan.good() && fits) {
    diagnostics.Collect(
        [&] { net = std::make_unique<Net>(spec, checked.options, device, params); });
  }
  if (net) {
    Net* const all[] = {net.get()};
    diagnostics.Collect([&] { LoadWeights(flags, all); });
  }
  const bool bad = !ReportData(nets, audits, report).empty();
  if (!net || bad) return;
  diagnostics.Collect([&] { CheckPass(checked, *net, device, !flags.Has("weights"), report); });
}

void PrintFindings(const CheckReport& report) {
  std::cout << report.diagnostics.ToText();
  constexpr size_t kNames = 12;  // columns
  for (const auto& [name, text] : report.lines) {
    std::cout << name << std::string(name.size() < kNames - 2 ? kNames - name.size() : 2, ' ')
              << Wrap(text, kNames, kNames, OutputColumns()) << "\n";
  }
  const bool errors = report.diagnostics.Errors() > 0, warnings = report.diagnostics.Warnings() > 0;
  const Color color = errors ? Color::kRed : warnings ? Color::kYellow : Color::kGreen;
  std::string verdict =
      Painted(color, errors || warnings ? report.diagnostics.Counts() : "all good", STDOUT_FILENO);
  std::vector<std::string> figures = {report.memory, report.data, report.snapshots};
  std::erase(figures, "");
  if (!errors && !figures.empty()) verdict += Join("; ", JoinList(figures));
  std::cout << Wrap(Join("check: ", verdict), 7, 0, OutputColumns()) << "\n";
}

void PrintJson(CheckReport& report) {
  report.figures.Set("first_pass", std::move(report.passes));
  std::cout << Json::Object()
                   .Set("good", report.diagnostics.Errors() == 0)
                   .Set("errors", report.diagnostics.Errors())
                   .Set("warnings", report.diagnostics.Warnings())
                   .Set("exit_code", report.diagnostics.ExitCode())
                   .Set("findings", report.diagnostics.ToJson())
                   .Set("figures", std::move(report.figures))
                   .ToString();
}

}  // namespace

CheckedDevice DeviceToCheck(const DeviceChoice& choice, Diagnostics* diagnostics) {
  CheckedDevice checked;
  if (!diagnostics->Collect([&] { checked.device = MakeDevice(choice); }))
    checked.device = MakeDevice();
  if (checked.device->kind() == DeviceKind::kCpu) return checked;
  for (const GpuInfo& gpu : FindGpus().gpus) {
    if (gpu.id != choice.gpu.id) continue;
    checked.gpu_memory = {gpu.memory_bytes, gpu.free_bytes, Join("GPU ", gpu.id)};
  }
  return checked;
}

namespace {

class Check final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kTrain,
        .summary = "find out in seconds what would stop a run, without training",
        .usage = "trainer check (--solver=FILE | --model=FILE [--phase=TEST]) [flags]",
        .text =
            "'trainer check' accepts the flags of 'trainer train'. It reads the solver and its "
            "nets. It plans their memory and compares it with the available memory. It reads the "
            "weights or the snapshot to start from. It reads every database and list: all records "
            "of a small one, else the first, the last and some in between. It compares the labels "
            "with the number of classes of each loss. It checks that the disk has space for the "
            "snapshots. It runs one pass of each net. After an error it continues, to find the "
            "next one.\n"
            "It warns about settings that run but spoil the result: a softmax before a loss that "
            "computes a softmax itself; a scale, mean or mirror that differs between TRAIN and "
            "TEST; layers that no loss trains; classes without a record; a learning rate that is "
            "too high for the update rule. 'trainer train' logs the same warnings before its first "
            "iteration.\n"
            "It prints errors, warnings and figures, and a verdict in the last line. The exit code "
            "is the one that 'trainer train' would give for the first error; it is 0 if there are "
            "only warnings.\n"
            "It writes no file, except those that LMDB and LevelDB keep in a database's folder "
            "while it is open. It does not show the log unless you give --alsologtostderr; the "
            "list has the log's warnings.",
        .examples =
            "trainer check --solver=models/lenet/solver.prototxt\n"
            "trainer check --solver=s.prototxt --snapshot=run/net_iter_500.solverstate\n"
            "trainer check --solver=s.prototxt --set base_lr=0.05 --json\n"
            "trainer check --solver=s.prototxt --batch=256 --memory=8GiB --gpu=0\n"
            "trainer check --model=net.prototxt --weights=net.caffemodel --phase=TEST",
        .flags = WithReadingFlags(WithDeviceFlags(
            {{.name = "solver", .value = "FILE", .help = "check a run of this solver"},
             {.name = "model", .value = "FILE", .help = "check only this net"},
             StartFlags()[0],
             StartFlags()[1],
             StartFlags()[2],
             StartFlags()[3],
             JsonFlag(),
             PhaseFlag(),
             LevelFlag(),
             StageFlag(),
             SetFlag(),
             BatchFlag(),
             MemoryLimitFlag()})),
    };
  }

  int Run(const Flags& flags) override {
    ApplyReadingFlags(flags);
    if (flags.Has("solver") == flags.Has("model")) {
      throw Error(ErrorCode::kUsage, "'trainer check' needs either --solver=FILE or --model=FILE");
    }
    RequireOneStart(StartOptionsOf(flags));
    static_cast<void>(ChooseDevice(flags));  // before the files are read
    if (flags.Has("model") && (flags.Has("snapshot") || flags.Has("resume"))) {
      throw Error(ErrorCode::kUsage,
                  "--snapshot and --resume need --solver; --model=FILE checks a net without a run");
    }
    if (flags.Has("model") && (flags.Has("batch") || flags.Has("memory"))) {
      throw Error(ErrorCode::kUsage,
                  "--batch and --memory need --solver; --model=FILE checks a net without a run");
    }
    CheckReport report;
    {
      const LogCapture capture(flags.Switch("alsologtostderr") || flags.Switch("logtostderr"),
                               &report.diagnostics);
      if (flags.Has("solver")) {
        CheckSolverRun(flags, &report);
      } else {
        CheckModel(flags, &report);
      }
    }
    const int code = report.diagnostics.ExitCode();
    flags.Switch("json") ? PrintJson(report) : PrintFindings(report);
    return code;
  }
};

const RegisterVerb<Check> kCheckVerb("check");

}  // namespace
}  // namespace trainer
