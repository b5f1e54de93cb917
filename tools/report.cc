#include <iostream>
#include <limits>

#include "shared_flags.h"
#include "trainer/base/atomic_file.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"
#include "trainer/report/page.h"
#include "verb.h"

namespace trainer {
namespace {

class ReportVerb final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .summary = "one HTML page about a run, or several compared",
        .usage = "trainer report RUN... --out=FILE.html [--force]",
        .text =
            "RUN is the folder of 'trainer train --run=RUN', while it trains or later, or a log of "
            "this program or of Caffe. The page holds all that it shows and needs no network: "
            "curves of the losses, tests and rates, images per second, waiting for data, where the "
            "time of ranks went, settings that differ, and of a folder its environment, first "
            "filters and images. It follows the browser's light or dark scheme.\n"
            "What else is known is shown where it is in the folder: time.json, by 'trainer time "
            "--solver=S --json > RUN/time.json', and the classes that were taken for others and "
            "the "
            "images with the highest loss, by 'trainer test --run=RUN'.",
        .examples =
            "trainer report runs/first --out=first.html\n"
            "trainer report runs/first runs/second old.log --out=compared.html --force",
        .flags = {{.name = "out", .value = "FILE", .help = "the page", .required = true},
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
    WriteWhole(flags.Text("out"), ReportPage(runs));
    std::cout << "wrote " << EscapeControl(flags.Text("out")) << "\n";
    return 0;
  }
};

const RegisterVerb<ReportVerb> kReport("report");

}  // namespace
}  // namespace trainer
