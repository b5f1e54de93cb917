#include "log_capture.h"

#include "trainer/base/text/text.h"

namespace trainer {

LogCapture::LogCapture(bool also_to_stderr, Diagnostics* diagnostics) : diagnostics_(*diagnostics) {
  FLAGS_logtostderr = false;
  FLAGS_alsologtostderr = also_to_stderr;
  FLAGS_stderrthreshold = google::NUM_SEVERITIES;
  if (FLAGS_log_dir.empty()) {
    for (int severity = google::INFO; severity < google::NUM_SEVERITIES; ++severity) {
      google::SetLogDestination(severity, "");
    }
  }
  google::AddLogSink(this);
}

LogCapture::~LogCapture() {
  google::RemoveLogSink(this);
  FLAGS_logtostderr = log_to_stderr_;
  FLAGS_alsologtostderr = also_to_stderr_;
  FLAGS_stderrthreshold = stderr_threshold_;
}

void LogCapture::send(google::LogSeverity severity, const char*, const char*, int,
                      const google::LogMessageTime&, const char* message, size_t length) {
  if (severity == google::WARNING) diagnostics_.Warn(EscapeControl({message, length}));
}

}  // namespace trainer
