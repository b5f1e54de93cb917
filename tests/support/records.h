#pragma once
// Changes single records of a job's databases.

#include <filesystem>
#include <string>

#include "datum.pb.h"
#include "support/digits_job.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/format.h"

namespace trainer {

// Replaces record `index` of a database.
inline void PutRecord(const DigitsJob& job, const std::string& database, int index,
                      const std::string& value) {
  const std::string path = job.folder() / database, copy = path + "_copy";
  std::filesystem::remove_all(copy);  // from an earlier call
  std::filesystem::rename(path, copy);
  const std::string backend = DetectFormat(copy);
  const auto cursor = OpenCursor(backend, copy);
  const auto writer = CreateDb(backend, path);
  for (int i = 0;; ++i) {
    writer->Put(cursor->Key(), i == index ? value : std::string(cursor->Value()));
    if (cursor->Next()) break;
  }
  writer->Commit();
}

inline caffe::Datum DigitOf(int label) {
  caffe::Datum datum;
  datum.set_channels(1);
  datum.set_height(28);
  datum.set_width(28);
  datum.set_data(std::string(784, 'x'));
  datum.set_label(label);
  return datum;
}

}  // namespace trainer
