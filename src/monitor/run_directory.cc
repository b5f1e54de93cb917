#include "trainer/monitor/run_directory.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::atomic<bool> g_told{false};

// Returns the member "libraries", sorted by name; nothing if it is missing.
std::vector<std::pair<std::string, std::string>> ReadLibraries(const JsonObject& json) {
  std::vector<std::pair<std::string, std::string>> libraries;
  const JsonElement* const value = JsonField(json, "libraries");
  if (value == nullptr) return libraries;
  for (const auto& [name, version] : value->struct_value().fields()) {
    libraries.emplace_back(name, version.string_value());
  }
  std::ranges::sort(libraries);
  return libraries;
}

}  // namespace

std::string RunDirectory::File(const std::string& name) const { return JoinPath(path_, name); }

Json ToJson(const RunInfo& info) {
  Json command = Json::Array(), libraries = Json::Object();
  for (const std::string& word : info.command) command.Push(word);
  for (const auto& [name, version] : info.libraries) libraries.Set(name, version);
  Json json = Json::Object()
                  .Set("program", info.program)
                  .Set("version", info.version)
                  .Set("commit", info.commit)
                  .Set("build", info.build)
                  .Set("command", std::move(command))
                  .Set("folder", info.folder)
                  .Set("solver", info.solver)
                  .Set("snapshot_prefix", info.snapshot_prefix)
                  .Set("saves", info.saves)
                  .Set("host", info.host)
                  .Set("process", info.process)
                  .Set("started", info.started)
                  .Set("ranks", info.ranks)
                  .Set("device", info.device)
                  .Set("processor", info.processor)
                  .Set("threads", info.threads)
                  .Set("memory_bytes", info.memory_bytes)
                  .Set("onednn", info.onednn)
                  .Set("libraries", std::move(libraries));
  if (!info.batch_job.empty()) json.Set("batch_job", info.batch_job);
  return json;
}

RunInfo ReadRunInfo(const JsonObject& json) {
  RunInfo info;
  info.program = JsonText(json, "program");
  info.version = JsonText(json, "version");
  info.commit = JsonText(json, "commit");
  info.build = JsonText(json, "build");
  info.command = JsonTexts(json, "command");
  info.folder = JsonText(json, "folder");
  info.solver = JsonText(json, "solver");
  info.snapshot_prefix = JsonText(json, "snapshot_prefix");
  info.saves = JsonFlag(json, "saves");
  info.host = JsonText(json, "host");
  info.process = static_cast<int64_t>(JsonNumber(json, "process"));
  info.started = static_cast<int64_t>(JsonNumber(json, "started"));
  info.ranks = static_cast<int>(JsonNumber(json, "ranks"));
  info.device = JsonText(json, "device");
  info.processor = JsonText(json, "processor");
  info.threads = JsonText(json, "threads");
  info.memory_bytes = static_cast<size_t>(JsonNumber(json, "memory_bytes"));
  info.onednn = JsonText(json, "onednn");
  info.libraries = ReadLibraries(json);
  info.batch_job = JsonText(json, "batch_job");
  return info;
}

void RunDirectory::WriteInfo(const RunInfo& info) const {
  WriteWhole(File(kEnvironmentName), ToJson(info).ToString());
}

RunInfo RunDirectory::ReadInfo() const {
  constexpr uint64_t kMaxBytes = 1 << 20;
  const std::string path = File(kEnvironmentName);
  if (!Exists(path)) return {};
  return ReadRunInfo(ParseJsonObject(ReadFile(path, kMaxBytes)).value_or(JsonObject()));
}

std::vector<std::string> RunsIn(const std::string& folder) {
  if (Exists(JoinPath(folder, kMetricsName))) return {folder};
  std::vector<std::string> runs;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    if (Exists(JoinPath(path, kMetricsName))) runs.push_back(path);
  }
  std::ranges::sort(runs);
  return runs;
}

void ThrowNotARun(const std::string& path) {
  std::string why = Join("this folder has no ", kMetricsName, ", so it is not the folder of a run");
  const std::vector<std::string> runs = RunsIn(path);
  if (IsMissing(path)) {
    why = Join("there is no such file or folder.", DidYouMeanPath(path),
               " 'trainer train --run=DIR' makes the folder of a run");
  } else if (!IsDirectory(path)) {
    why = "this is a file; give the folder of a run, which 'trainer train --run=DIR' makes";
  } else if (runs.empty()) {
    why += "; 'trainer train --run=DIR' makes such a folder";
  } else {
    why += Join(". It contains ", Counted(runs.size(), "run"),
                ": give one or more of them: ", EscapeControl(FirstNames(runs)));
  }
  throw Error(ErrorCode::kNoInput, {AbsolutePath(path)}, why);
}

void WarnOfRunFolder(const std::string& what) {
  if (g_told.exchange(true)) return;
  LOG(WARNING) << EscapeControl(what)
               << ". The run continues; the missing lines are written when the disk works again";
}

void RunFolderIsWritable() { g_told = false; }

}  // namespace trainer
