#include "reading_flags.h"

#include "trainer/data/db_lock.h"

namespace trainer {

std::vector<Flag> WithReadingFlags(std::vector<Flag> flags) {
  AddFlags("data",
           {{.name = "db_lock",
             .value = "auto|off",
             .fallback = "auto",
             .help = "auto: lock an LMDB while it is open; if its lock file cannot be used, warn "
                     "and open it without a lock. off: open it without a lock; then no program may "
                     "write to it during the run",
             .choices = "auto|off"}},
           &flags);
  return flags;
}

void ApplyReadingFlags(const Flags& flags) {
  SetDbLock(flags.Text("db_lock") == "off" ? DbLock::kOff : DbLock::kAuto);
}

}  // namespace trainer
