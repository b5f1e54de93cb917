#include <filesystem>
#include <iostream>
#include <limits>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/monitor/chart.h"
#include "trainer/monitor/run_charts.h"
#include "trainer/monitor/run_tables.h"

namespace trainer {
namespace {

// Prints the tables of training logs, or writes them and their curves to a folder.
class Log final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&files_, std::numeric_limits<int>::max());
    flags.Bind(&out_, "out", "DIR", "write tables and curves into this folder; it is created");
    flags.Bind(&force_, "force", "", "replace files in --out that already exist");
  }

  int Run() override {
    if (files_.empty()) {
      throw Error(ErrorCode::kUsage,
                  "'trainer log' needs a FILE: the log that 'trainer train' or 'caffe train' wrote "
                  "to stderr");
    }
    std::vector<RunMetrics> runs;
    for (const std::string& path : files_) runs.push_back(ReadRunMetrics(path));
    if (out_.empty()) {
      for (size_t i = 0; i < runs.size(); ++i) {
        std::cout << (i > 0 ? "\n" : "") << RunTables(runs[i]);
      }
      return 0;
    }
    MakeOutFolder();
    for (const RunMetrics& run : runs) {
      for (const NamedFile& file : RunTableFiles(run)) Write(file);
    }
    if (runs.size() > 1) Write({"curves.svg", ChartsFile(RunCharts(runs))});
    return 0;
  }

 private:
  // Creates the folder of --out if it is missing. Throws kCannotCreate.
  void MakeOutFolder() const {
    std::error_code error;
    std::filesystem::create_directories(out_, error);
    if (!error) return;
    throw Error(ErrorCode::kCannotCreate, {out_},
                Join("cannot create this folder: ", error.message(), "; give another --out"));
  }

  // Writes a file into --out and prints its path. Throws kCannotCreate if it exists without
  // --force.
  void Write(const NamedFile& file) const {
    const std::string path = JoinPath(out_, file.name);
    if (Exists(path) && !force_) {
      throw Error(ErrorCode::kCannotCreate, {path},
                  "the file already exists; give another --out, or --force to replace it");
    }
    WriteWhole(path, file.content);
    std::cout << "wrote " << EscapeControl(path) << "\n";
  }

  std::vector<std::string> files_;
  std::string out_;
  bool force_ = false;
};

const RegisterVerb<Log> kLogVerb("log");

}  // namespace
}  // namespace trainer
