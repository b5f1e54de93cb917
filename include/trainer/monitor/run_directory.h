#pragma once
// The folder of --run. A file that cannot be written does not stop a run: it is a warning, and the
// write is tried again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/base/text/json_reader.h"

namespace trainer {

// Names in the folder.
inline constexpr char kSolverName[] = "solver.prototxt";
inline constexpr char kEnvironmentName[] = "environment.json";
inline constexpr char kCardName[] = "card.json";
inline constexpr char kMetricsName[] = "metrics.jsonl";
inline constexpr char kMetricsTableName[] = "metrics.csv";
inline constexpr char kFiltersName[] = "filters.png";
inline constexpr char kImagesName[] = "images.png";
// Files that `trainer test --run` and `trainer time` write for reports.
inline constexpr char kConfusionName[] = "confusion.json";
inline constexpr char kWorstName[] = "worst.json";
inline constexpr char kCurvesName[] = "curves.json";
inline constexpr char kTimesName[] = "time.json";

// The program, the host and the files of a run: environment.json.
struct RunInfo {
  std::string program, version, commit, build;
  std::vector<std::string> command;
  std::string folder;  // in which the run started; its relative paths start there
  std::string solver, snapshot_prefix;
  bool saves = false;  // snapshots
  std::string host;
  int64_t process = 0;  // 0: unknown
  int64_t started = 0;  // seconds since 1970
  int ranks = 0;        // 0: unknown
  std::string device, processor, threads;
  size_t memory_bytes = 0;  // of the host
  std::string onednn;
  // Names and versions of the other libraries: {"LMDB", "0.9.24"}.
  std::vector<std::pair<std::string, std::string>> libraries;
  std::string batch_job;  // "": none
};

// Returns the object in environment.json.
Json ToJson(const RunInfo& info);
// Reads such an object. Fields that it does not have keep their default values.
RunInfo ReadRunInfo(const JsonObject& json);

// The folder of one run. The class only knows the names of its files; it does not create the
// folder.
class RunDirectory {
 public:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Returns the path of a file in the folder.
  std::string File(const std::string& name) const;

  // Writes environment.json. Throws as WriteWhole does.
  void WriteInfo(const RunInfo& info) const;
  // Reads environment.json. Fields that a missing or damaged file does not have keep their default
  // values.
  RunInfo ReadInfo() const;

 private:
  std::string path_;
};

// Returns `folder` if a run has written metrics there, else its subfolders with metrics, sorted.
std::vector<std::string> RunsIn(const std::string& folder);
// Throws kNoInput for a path that should be the folder of a run and is not. Says what is there,
// e.g. folders of runs.
[[noreturn]] void ThrowNotARun(const std::string& path);

// Logs a warning that a file of the folder cannot be written. Later calls do nothing until
// RunFolderIsWritable is called, because a full disk would fill the log.
void WarnOfRunFolder(const std::string& what);
// Called when a file of the folder can be written again: the next failure is logged.
void RunFolderIsWritable();

}  // namespace trainer
