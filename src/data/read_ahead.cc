#include "trainer/data/read_ahead.h"

#include <glog/logging.h>

namespace trainer {

void NoteWait(WaitCounters* counters) {
  if (LogsWait(++counters->waits)) LOG(INFO) << "Waiting for data";
}

}  // namespace trainer
