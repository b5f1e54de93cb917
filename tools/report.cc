#include <iostream>
#include <limits>

#include "shared_flags.h"
#include "trainer/analysis/summary/net_graph.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/page.h"
#include "trainer/monitor/run_folder.h"

namespace trainer {
namespace {

// The training net of the solver in the run's folder. Shapes need its databases: they are left out
// where these cannot be read, and a solver that cannot be read has no drawing.
ReportedNet NetOf(const RunHistory& run) {
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

class ReportVerb final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {.task = VerbTask::kLook,
            .summary = "write an HTML page about a run, or compare several runs",
            .usage = "trainer report RUN... --out=FILE.html [--force]",
            .text =
                "RUN is the folder of 'trainer train --run=RUN', during the run or after it, or a "
                "log of this program or of Caffe. The page is one file and needs no network "
                "connection. It shows the best and the last results, charts of loss, tests and "
                "learning rate, images per second, the time spent waiting for data and for other "
                "ranks, and the settings that differ between runs. For a folder, it also shows the "
                "net, its settings, the environment, the first filters and images. The page "
                "follows the browser's light or dark scheme.\n"
                "Two commands add more to the page. 'trainer time --solver=S --json > "
                "RUN/time.json' adds the time of each layer. 'trainer test --run=RUN' adds the "
                "confusion between classes and the images with the highest loss.",
            .examples =
                "trainer report runs/first --out=first.html\n"
                "trainer report runs/first runs/second old.log --out=compared.html --force",
            .flags = {{.name = "out",
                       .value = "FILE",
                       .help = "the HTML file to write",
                       .required = true},
                      ForceFlag()},
            .max_words = std::numeric_limits<int>::max()};
  }

  int Run(const Flags& flags) override {
    if (flags.words().empty()) {
      throw Error(
          ErrorCode::kUsage,
          "'trainer report' needs a RUN: the folder of 'trainer train --run=DIR', or a log");
    }
    RefuseToReplace(flags);
    std::vector<RunHistory> runs;
    for (const std::string& path : flags.words()) runs.push_back(ReadRun(path));
    std::vector<ReportedNet> nets;
    for (const RunHistory& run : runs) nets.push_back(NetOf(run));
    WriteWhole(flags.Text("out"), ReportPage(runs, nets));
    std::cout << "wrote " << EscapeControl(flags.Text("out")) << "\n";
    return 0;
  }
};

const RegisterVerb<ReportVerb> kReport("report");

}  // namespace
}  // namespace trainer
