#include "trainer/monitor/run_directory.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/json.h"
#include "trainer/monitor/run_folder.h"

namespace trainer {
namespace {

class InfoReader {
 public:
  explicit InfoReader(const google::protobuf::Struct& json) : json_(json) {}

  std::string Text(const char* name) const { return Value(name).string_value(); }
  double Number(const char* name) const { return Value(name).number_value(); }
  bool Bool(const char* name) const { return Value(name).bool_value(); }
  std::vector<std::string> List(const char* name) const {
    std::vector<std::string> words;
    for (const auto& word : Value(name).list_value().values()) words.push_back(word.string_value());
    return words;
  }

 private:
  const google::protobuf::Value& Value(const char* name) const {
    const auto found = json_.fields().find(name);
    return found == json_.fields().end() ? google::protobuf::Value::default_instance()
                                         : found->second;
  }

  const google::protobuf::Struct& json_;
};

}  // namespace

std::string RunDirectory::File(const std::string& name) const { return JoinPath(path_, name); }

void RunDirectory::WriteInfo(const RunInfo& info) const {
  Json command = Json::Array();
  for (const std::string& word : info.command) command.Push(word);
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
                  .Set("onednn", info.onednn);
  if (!info.batch_job.empty()) json.Set("batch_job", info.batch_job);
  WriteWhole(File(kEnvironmentName), json.ToString());
}

RunInfo RunDirectory::ReadInfo() const {
  constexpr uint64_t kMaxBytes = 1 << 20;
  google::protobuf::Struct json;
  const std::string path = File(kEnvironmentName);
  if (Exists(path)) {
    const auto ignored =
        google::protobuf::util::JsonStringToMessage(ReadFile(path, kMaxBytes), &json);
    static_cast<void>(ignored);
  }
  const InfoReader read(json);
  RunInfo info;
  info.program = read.Text("program");
  info.version = read.Text("version");
  info.commit = read.Text("commit");
  info.build = read.Text("build");
  info.command = read.List("command");
  info.folder = read.Text("folder");
  info.solver = read.Text("solver");
  info.snapshot_prefix = read.Text("snapshot_prefix");
  info.saves = read.Bool("saves");
  info.host = read.Text("host");
  info.process = static_cast<int64_t>(read.Number("process"));
  info.started = static_cast<int64_t>(read.Number("started"));
  info.ranks = static_cast<int>(read.Number("ranks"));
  info.device = read.Text("device");
  info.processor = read.Text("processor");
  info.threads = read.Text("threads");
  info.memory_bytes = static_cast<size_t>(read.Number("memory_bytes"));
  info.onednn = read.Text("onednn");
  info.batch_job = read.Text("batch_job");
  return info;
}

}  // namespace trainer
