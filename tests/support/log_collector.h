#pragma once

#include <glog/logging.h>

#include <string>
#include <vector>

namespace trainer {

// Collects the log messages during its lifetime, without the prefix.
class LogCollector : public google::LogSink {
 public:
  LogCollector() { google::AddLogSink(this); }
  ~LogCollector() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&,
            const char* message, size_t length) override {
    lines.emplace_back(message, length);
  }
  std::vector<std::string> lines;
};

}  // namespace trainer
