#include <iostream>

#include "dataset_task.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/dataset/check_records.h"

namespace trainer {
namespace {

void CheckSet(const Flags& flags) {
  CheckRecordsOptions options;
  options.threads = ThreadsOf(flags);
  options.write_crc = flags.Switch("write_crc");
  const RecordsReport report = CheckRecords(flags.words()[1], options);
  Print(report, std::cout);
  if (report.bad == 0) return;
  throw Error(ErrorCode::kData, Join(report.errors.front(), "; of ", report.records, " records ",
                                     report.bad, report.bad == 1 ? " is" : " are", " unusable"));
}

const RegisterDatasetTask kDatasetCheckTask(
    "check",
    {.wanted = "SET",
     .words = 1,
     .text = "'check' reads every record of a database, an HDF5 file or a tar file, decodes it, "
             "and counts shapes, labels and duplicates. It names the records that cannot be used; "
             "if there are any, it exits with code 65. A database does not detect a changed bit by "
             "itself: --write_crc writes a checksum for each record (to records.crc32c in the "
             "folder, or NAME.crc32c), and later checks compare the records with it.",
     .example = "trainer dataset check data/digits/train_lmdb\n"
                "trainer dataset check data/digits/train_lmdb --write_crc",
     .flags = {{.name = "write_crc",
                .kind = FlagKind::kSwitch,
                .help = "check: write the checksums of the records and replace older ones; images, "
                        "pack, tar, convert, split: write the checksums of the new sets"}},
     .run = CheckSet});

}  // namespace

void WriteChecksumsOf(const Flags& flags, const std::string& path) {
  if (!flags.Switch("write_crc")) return;
  CheckRecordsOptions options;
  options.threads = ThreadsOf(flags);
  options.write_crc = true;
  const RecordsReport report = CheckRecords(path, options);
  if (report.bad > 0) throw Error(ErrorCode::kData, report.errors.front());
  std::cout << path << ": checksums " << report.checksums << "\n";
}

}  // namespace trainer
