#include "trainer/data/read_ahead.h"

#include <glog/logging.h>

namespace trainer {

void NoteWait(bool logs, WaitCounters* counters) {
  if (LogsWait(++counters->waits) && logs) LOG(INFO) << "Waiting for data";
}

}  // namespace trainer
