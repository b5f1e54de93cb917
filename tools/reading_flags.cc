#include "reading_flags.h"

#include <chrono>

#include "trainer/base/io_wait.h"
#include "trainer/data/db_lock.h"

namespace trainer {

std::vector<Flag> WithReadingFlags(std::vector<Flag> flags) {
  flags.push_back({.name = "io_timeout",
                   .kind = FlagKind::kWhole,
                   .value = "SECONDS",
                   .fallback = "300",
                   .help =
                       "how long to try again to read data whose disk or server is away, and to "
                       "wait for a database to open; then training saves and ends with 74. "
                       "0: not at all"});
  flags.push_back({.name = "db_lock",
                   .value = "auto|off",
                   .fallback = "auto",
                   .help = "auto: an LMDB is opened with its lock, or, with a warning, without one "
                           "where there can be none; off: without one, so that nothing may write "
                           "to it meanwhile",
                   .choices = "auto|off"});
  return flags;
}

void ApplyReadingFlags(const Flags& flags) {
  SetIoTimeout(std::chrono::seconds(flags.Whole("io_timeout")));
  SetDbLock(flags.Text("db_lock") == "off" ? DbLock::kOff : DbLock::kAuto);
}

}  // namespace trainer
