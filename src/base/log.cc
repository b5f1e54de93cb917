#include "trainer/base/log.h"

#include <glog/logging.h>

#include <csignal>

namespace trainer {

void InitLogging(const std::string& program) {
  if (google::IsGoogleLoggingInitialized()) return;
  static const std::string name = program;  // glog keeps the pointer
  FLAGS_logtostderr = FLAGS_log_dir.empty();
  FLAGS_alsologtostderr = true;
  FLAGS_stderrthreshold = google::INFO;
  FLAGS_log_prefix = true;
  FLAGS_log_year_in_prefix = false;
  FLAGS_colorlogtostderr = false;
  google::InitGoogleLogging(name.c_str());
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace trainer
