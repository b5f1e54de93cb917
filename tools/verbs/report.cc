#include <iostream>
#include <limits>
#include <optional>

#include "flag_groups.h"
#include "trainer/analysis/summary/net_graph.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/page.h"
#include "trainer/monitor/run_comparison.h"
#include "trainer/monitor/run_directory.h"
#include "trainer/run/search/random_search.h"
#include "trainer/run/search/trial_report.h"

namespace trainer {
namespace {

// Draws the training net of the solver in the run's folder. Leaves out the shapes if a database
// cannot be read, and the drawing if the solver is missing or unreadable.
ReportedNet NetOf(const RunMetrics& run) {
  const std::string path = JoinPath(run.path, kSolverName);
  if (!IsDirectory(run.path) || !Exists(path)) return {};
  try {
    const SolverSpec solver = LoadSolver(path);
    const NetShapes shapes = PlanShapes(*solver.train.net, solver.train.state);
    const NetGraph graph(FilterLayers(*solver.train.net, solver.train.state), shapes);
    return {graph.Svg(run.net), graph.boxes(),
            shapes.parameters > 0 ? GroupedDigits(shapes.parameters) : ""};
  } catch (const Error&) {
    return {};
  }
}

// Prints the table of a random search and adds it to the page. Returns the folders of the best
// runs, whose curves the page shows.
std::vector<std::string> AddSearch(const std::string& path, std::vector<ReportedTable>* tables) {
  constexpr size_t kMostRuns = 8;
  const TrialReport search = ReadSearch(path);
  const std::vector<std::string> folders = BestRunFolders(search, kMostRuns);
  if (folders.empty()) {
    throw Error(ErrorCode::kNoInput, {path}, "no trial of this search has results yet");
  }
  std::cout << ToText(search);
  const auto [head, rows] = CellsOf(search);
  tables->push_back({Join("Trials of ", path, ", with the curves of the best below"), head, rows});
  return folders;
}

// Writes an HTML page with the curves, tables and nets of runs, or prints how two runs differ.
class ReportVerb final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&paths_, std::numeric_limits<int>::max());
    flags.Bind(&out_, "out", "FILE", "the HTML file to write; required without --check");
    DeclareForce(flags, &force_);
    flags.Bind(&check_, "check", "",
               "print what differs between two runs; exits with code 76 if it affects results");
    flags.Bind(&carbon_, "carbon", "G",
               "also show grams of CO2, with G grams per kWh of the run's energy");
  }

  int Run() override {
    if (paths_.empty()) {
      throw Error(
          ErrorCode::kUsage,
          "'trainer report' needs a RUN: the folder of 'trainer train --run=DIR', or a log");
    }
    if (check_) return Check();
    if (out_.empty()) {
      throw Error(ErrorCode::kUsage, "'trainer report' needs --out=FILE, the HTML file to write");
    }
    if (carbon_ && !(*carbon_ >= 0)) {
      throw Error(ErrorCode::kUsage,
                  Join("--carbon=", *carbon_, ": give grams of CO2 per kWh, from 0 on"));
    }
    RefuseToReplace(out_, force_);
    std::vector<RunMetrics> runs;
    std::vector<ReportedTable> tables;
    for (const std::string& path : paths_) {
      const std::vector<std::string> folders =
          IsSearchFolder(path) ? AddSearch(path, &tables) : std::vector<std::string>{path};
      for (const std::string& folder : folders) runs.push_back(ReadRunMetrics(folder));
    }
    std::vector<ReportedNet> nets;
    for (const RunMetrics& run : runs) nets.push_back(NetOf(run));
    WriteWhole(out_, ReportPage(runs, nets, tables, carbon_));
    std::cout << "wrote " << EscapeControl(out_) << "\n";
    return 0;
  }

 private:
  // Prints the differences between two runs and returns the exit code.
  int Check() const {
    if (paths_.size() != 2 || !out_.empty()) {
      throw Error(ErrorCode::kUsage,
                  out_.empty()
                      ? Join("--check compares two runs, but ", paths_.size(),
                             paths_.size() == 1 ? " is given" : " are given",
                             ": trainer report --check RUN RUN")
                      : "--check and --out cannot both be given: --check prints the differences");
    }
    const std::vector<RunDifference> differences = CompareRuns(paths_[0], paths_[1]);
    std::cout << ToText(differences);
    return AffectsResults(differences) ? static_cast<int>(ErrorCode::kProtocol) : 0;
  }

  std::vector<std::string> paths_;
  std::string out_;
  bool force_ = false, check_ = false;
  std::optional<double> carbon_;
};

const RegisterVerb<ReportVerb> kReport("report");

}  // namespace
}  // namespace trainer
