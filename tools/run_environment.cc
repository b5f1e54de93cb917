#include "run_environment.h"

#include <google/protobuf/util/json_util.h>

#include "trainer/base/file/file.h"
#include "trainer/monitor/run_folder.h"

namespace trainer {

google::protobuf::Struct EnvironmentOf(const std::string& folder) {
  constexpr uint64_t kMost = 1 << 20;
  google::protobuf::Struct json;
  const std::string path = JoinPath(folder, kEnvironmentName);
  if (Exists(path)) {
    const auto ignored = google::protobuf::util::JsonStringToMessage(ReadFile(path, kMost), &json);
    static_cast<void>(ignored);
  }
  return json;
}

std::string TextOf(const google::protobuf::Struct& environment, const std::string& name) {
  const auto found = environment.fields().find(name);
  return found == environment.fields().end() ? "" : found->second.string_value();
}

}  // namespace trainer
