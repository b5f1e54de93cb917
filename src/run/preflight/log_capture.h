#pragma once
// Turns the warnings of the log into diagnostics.

#include <glog/logging.h>

#include "trainer/run/preflight/diagnostics.h"

namespace trainer {

// While an object exists, the log goes to the terminal only if `also_to_stderr`, and its warnings
// are added to the diagnostics.
class LogCapture : public google::LogSink {
 public:
  LogCapture(bool also_to_stderr, Diagnostics* diagnostics);
  ~LogCapture() override;
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  void send(google::LogSeverity severity, const char* path, const char* file, int line,
            const google::LogMessageTime& time, const char* message, size_t length) override;

 private:
  Diagnostics& diagnostics_;
  const bool log_to_stderr_ = FLAGS_logtostderr, also_to_stderr_ = FLAGS_alsologtostderr;
  const int stderr_threshold_ = FLAGS_stderrthreshold;
};

}  // namespace trainer
