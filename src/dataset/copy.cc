#include "trainer/data/cursor.h"
#include "trainer/dataset/dataset.h"
#include "trainer/dataset/new_database.h"

namespace trainer {

int64_t CopyDatabase(const std::string& database, const std::string& copy,
                     const std::string& backend) {
  const auto cursor = OpenCursor(BackendOf(database), database);
  NewDatabase output(backend, copy);
  do {
    output.Put(cursor->Key(), cursor->Value());
  } while (!cursor->Next());
  output.Finish();
  return output.records();
}

}  // namespace trainer
