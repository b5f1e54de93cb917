#include "reading_flags.h"

#include "trainer/data/db_lock.h"

namespace trainer {

std::vector<Flag> WithReadingFlags(std::vector<Flag> flags) {
  AddFlags("data",
           {{.name = "db_lock",
             .value = "auto|off",
             .fallback = "auto",
             .help = "auto: an LMDB is opened with its lock, or, with a warning, without one where "
                     "there can be none; off: without one, so that nothing may write to it "
                     "meanwhile",
             .choices = "auto|off"}},
           &flags);
  return flags;
}

void ApplyReadingFlags(const Flags& flags) {
  SetDbLock(flags.Text("db_lock") == "off" ? DbLock::kOff : DbLock::kAuto);
}

}  // namespace trainer
