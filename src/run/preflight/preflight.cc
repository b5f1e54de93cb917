#include "trainer/run/preflight/preflight.h"

#include <unistd.h>

#include <memory>

#include "check_data.h"
#include "check_nets.h"
#include "check_pass.h"
#include "check_solver.h"
#include "log_capture.h"
#include "trainer/base/log/terminal.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/inference/pack/model_pack.h"
#include "trainer/net/load_weights.h"

namespace trainer {
namespace {

// Copies weights from .caffemodel files to the layers with the same names, as a run does.
void CopyWeights(const std::vector<std::string>& files, Net* net) {
  if (files.empty()) return;
  Net* const nets[] = {net};
  WeightLoader loading(nets);
  for (const std::string& file : files) loading.Copy(ReadModel(file, loading.net_file()), file);
  loading.Finish();
}

// Returns the net of the request with the options of a check, which only checks output files
// instead of writing them.
PreflightNet NetToCheck(const NetRequest& request, const NetSpec& spec) {
  PreflightNet checked{"net", &spec, {}, 0, 1};
  checked.options.state = MakeNetState(request.phase, request.model.state);
  checked.options.training = request.phase == caffe::TRAIN;
  checked.options.log = false;
  checked.options.output_files = OutputFiles::kCheckOnly;
  return checked;
}

// Checks a net without a run: plans it, compares its memory, audits its data and, if all is well,
// runs one pass with the weights of the request or of the fillers.
void CheckNet(const NetRequest& request, PreflightReport* report, Json* passes) {
  Diagnostics& diagnostics = report->diagnostics;
  NetSpec spec;
  std::vector<std::string> weights = request.weights;
  if (!diagnostics.Collect([&] { spec = LoadModel(request.model, &weights); })) return;
  const PreflightDevice device =
      MakePreflightDevice(ChooseDevice(request.device, spec), &diagnostics);
  const std::vector<PreflightNet> nets = {NetToCheck(request, spec)};
  diagnostics.Collect([&] { LintNet({&spec, nets[0].options.state, ""}, &diagnostics); });
  const PlannedNets planned = PlanNets(nets, nullptr, nullptr, *device.device, report);
  const bool fits = !planned.good() || CheckMemory(nets, planned, device, report);
  const std::vector<LayerAudit> audits = AuditNets(nets, planned, &diagnostics);
  ParamStore params(*device.device);
  std::unique_ptr<Net> net;
  if (planned.good() && fits) {
    diagnostics.Collect(
        [&] { net = std::make_unique<Net>(spec, nets[0].options, *device.device, params); });
  }
  if (net) diagnostics.Collect([&] { CopyWeights(weights, net.get()); });
  const bool bad = !ReportDataAudits(nets, audits, report).empty();
  if (net && !bad) {
    diagnostics.Collect(
        [&] { RunFirstPass(nets[0], *net, *device.device, weights.empty(), report, passes); });
  }
}

}  // namespace

PreflightReport Preflight(const TrainRequest& request, bool log_to_stderr) {
  SetDbLock(request.input.db_lock);
  RequireOneStart(request.start);
  static_cast<void>(
      ChooseDevice(request.device));  // throws for a wrong --gpu before files are read
  PreflightReport report;
  const LogCapture capture(log_to_stderr, &report.diagnostics);
  Json passes = Json::Object();
  CheckSolverRun(request, &report, &passes);
  report.figures.Set("first_pass", std::move(passes));
  return report;
}

PreflightReport Preflight(const NetRequest& request, bool log_to_stderr) {
  SetDbLock(request.input.db_lock);
  static_cast<void>(ChooseDevice(request.device));
  PreflightReport report;
  const LogCapture capture(log_to_stderr, &report.diagnostics);
  Json passes = Json::Object();
  CheckNet(request, &report, &passes);
  report.figures.Set("first_pass", std::move(passes));
  return report;
}

std::string ToText(const PreflightReport& report) {
  constexpr size_t kNames = 12;  // columns
  std::string text = report.diagnostics.ToText();
  for (const auto& [name, figure] : report.lines) {
    text += Join(name, std::string(name.size() < kNames - 2 ? kNames - name.size() : 2, ' '),
                 Wrap(figure, kNames, kNames, OutputColumns()), "\n");
  }
  const bool errors = report.diagnostics.Errors() > 0, warnings = report.diagnostics.Warnings() > 0;
  const Color color = errors ? Color::kRed : warnings ? Color::kYellow : Color::kGreen;
  std::string verdict =
      Painted(color, errors || warnings ? report.diagnostics.Counts() : "all good", STDOUT_FILENO);
  std::vector<std::string> figures = {report.memory, report.data, report.snapshots};
  std::erase(figures, "");
  if (!errors && !figures.empty()) verdict += Join("; ", JoinList(figures));
  return text + Wrap(Join("check: ", verdict), 7, 0, OutputColumns()) + "\n";
}

Json ToJson(const PreflightReport& report) {
  return Json::Object()
      .Set("good", report.diagnostics.Errors() == 0)
      .Set("errors", report.diagnostics.Errors())
      .Set("warnings", report.diagnostics.Warnings())
      .Set("exit_code", report.diagnostics.ExitCode())
      .Set("findings", report.diagnostics.ToJson())
      .Set("figures", report.figures);
}

}  // namespace trainer
