#include <iostream>

#include "dataset_task.h"
#include "shared_flags.h"
#include "trainer/dataset/dataset.h"

namespace trainer {
namespace {

void Copy(const Flags& flags) {
  const std::vector<std::string>& words = flags.words();
  const int64_t records = CopyDatabase(words[1], words[2], BackendName(flags));
  std::cout << words[2] << ": " << records << " records\n";
}

const RegisterDatasetTask kCopy(
    "copy", {.wanted = "DB COPY",
             .words = 2,
             .text = "copy writes the records of DB, a database of any kind, with their keys to a "
                     "new one: an LMDB, which many processes may read at once, or with "
                     "--backend=leveldb a LevelDB.",
             .example = "trainer dataset copy train_leveldb train_lmdb",
             .run = Copy});

}  // namespace
}  // namespace trainer
