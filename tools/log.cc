#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/monitor/chart.h"
#include "trainer/monitor/history.h"
#include "trainer/monitor/live_view.h"

namespace trainer {
namespace {

std::string LogNumber(double value) { return Join(static_cast<float>(value)); }

// The tests of a run as a table for people, and how far its training came.
void PrintTables(const RunHistory& run) {
  std::cout << EscapeControl(run.path) << ": iterations " << run.first_iter << " to "
            << run.last_iter << " in " << ClockText(run.seconds);
  if (!run.loss.empty()) {
    std::cout << ", loss " << LogNumber(run.loss.front().value) << " to "
              << LogNumber(run.loss.back().value);
  }
  std::cout << "\n";
  for (size_t net = 0; net < run.tests.size(); ++net) {
    const std::vector<HistoryRow>& rows = run.tests[net];
    if (rows.empty()) continue;
    std::vector<std::string> head = {"iteration", "time"};
    for (const auto& [name, value] : rows[0].outputs) head.push_back(EscapeControl(name));
    Table table(head);
    for (const HistoryRow& row : rows) {
      std::vector<std::string> cells = {LogNumber(row.iter), ClockText(row.seconds)};
      for (const auto& [name, value] : row.outputs) cells.push_back(LogNumber(value));
      cells.resize(head.size());
      table.Add(cells);
    }
    std::cout << "\n" << (net == 0 ? "" : Join("test net ", net, "\n")) << table.ToString();
  }
}

class Log final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {.task = VerbTask::kLook,
            .summary = "print tables and draw curves from training logs",
            .usage = "trainer log FILE... [--out=DIR] [--force]",
            .text =
                "Prints the test results in each FILE. FILE is the log of a run ('trainer train "
                "... 2> FILE', or a log of Caffe), a run's folder, or its metrics.jsonl.\n"
                "With --out, each FILE gives DIR/FILE.train and DIR/FILE.test, the tables that "
                "Caffe's parse_log.py writes (NumIters,Seconds,LearningRate and the outputs), and "
                "DIR/FILE.svg with the curves. A second test net gives FILE.test1. DIR/curves.svg "
                "shows the curves of several files in one picture.",
            .examples =
                "trainer log train.log\n"
                "trainer log train.log --out=.\n"
                "trainer log old.log new.log --out=tables --force",
            .flags = {{.name = "out",
                       .value = "DIR",
                       .help = "write tables and curves into this folder; it is created"},
                      {.name = "force",
                       .kind = FlagKind::kSwitch,
                       .help = "replace files in --out that already exist"}},
            .max_words = std::numeric_limits<int>::max()};
  }

  int Run(const Flags& flags) override {
    if (flags.words().empty()) {
      throw Error(ErrorCode::kUsage,
                  "'trainer log' needs a FILE: the log that 'trainer train' or 'caffe train' wrote "
                  "to stderr");
    }
    std::vector<RunHistory> runs;
    for (const std::string& path : flags.words()) runs.push_back(ReadRun(path));
    if (flags.Has("out")) {
      MakeOutFolder(flags.Text("out"));
      for (const RunHistory& run : runs) WriteTables(flags, run);
      if (runs.size() > 1) Write(flags, "curves.svg", ChartsFile(ChartsOf(runs)));
    } else {
      for (size_t i = 0; i < runs.size(); ++i) {
        if (i > 0) std::cout << "\n";
        PrintTables(runs[i]);
      }
    }
    return 0;
  }

 private:
  static void MakeOutFolder(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (!error) return;
    throw Error(ErrorCode::kCannotCreate, {path},
                Join("cannot create this folder: ", error.message(), "; give another --out"));
  }

  static void WriteTables(const Flags& flags, const RunHistory& run) {
    const std::string name = NameOf(run);
    Write(flags, name + ".train", TableOf(run.train));
    for (size_t net = 0; net < run.tests.size(); ++net) {
      Write(flags, name + ".test" + (net == 0 ? "" : Join(net)), TableOf(run.tests[net]));
    }
    Write(flags, name + ".svg", ChartsFile(ChartsOf({run})));
  }

  static void Write(const Flags& flags, const std::string& name, const std::string& text) {
    const std::string path = JoinPath(flags.Text("out"), name);
    if (Exists(path) && !flags.Switch("force")) {
      throw Error(ErrorCode::kCannotCreate, {path},
                  "the file already exists; give another --out, or --force to replace it");
    }
    WriteWhole(path, text);
    std::cout << "wrote " << EscapeControl(path) << "\n";
  }
};

const RegisterVerb<Log> kLogVerb("log");

}  // namespace
}  // namespace trainer
