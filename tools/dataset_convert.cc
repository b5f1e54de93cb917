#include <iostream>

#include "dataset_task.h"
#include "trainer/dataset/convert.h"

namespace trainer {
namespace {

void Convert(const Flags& flags) {
  const std::vector<std::string>& words = flags.words();
  const RecordOutput output = OutputOf(flags, words[2]);
  const int64_t records = ConvertRecords(words[1], output, ThreadsOf(flags));
  std::cout << output.path << ": " << records << " records\n";
  WriteChecksumsOf(flags, output.path);
}

void Split(const Flags& flags) {
  const std::vector<std::string>& words = flags.words();
  SplitOptions options;
  options.share = ParseShare("part", flags.Text("part"));
  options.stratified = flags.Switch("stratified");
  options.seed = static_cast<uint64_t>(flags.Whole("seed"));
  options.threads = ThreadsOf(flags);
  const SplitResult result =
      SplitRecords(words[1], OutputOf(flags, words[2]), OutputOf(flags, words[3]), options);
  std::cout << words[2] << ": " << result.first << " records\n"
            << words[3] << ": " << result.second << " records\n";
  WriteChecksumsOf(flags, words[2]);
  WriteChecksumsOf(flags, words[3]);
}

const RegisterDatasetTask kConvert(
    "convert",
    {.wanted = "SET NEW",
     .words = 2,
     .text = "'convert' copies the records of SET (a database, an HDF5 file or a tar file) to NEW. "
             "The name chooses the format. NAME.h5 is an HDF5 file, and NAME.txt is written as the "
             "source for an HDF5Data layer. NAME.tar holds KEY.jpg or KEY.png and KEY.cls with the "
             "label, as in WebDataset. Any other name is a database of the kind that --backend "
             "says. From database to database, keys and bytes do not change.",
     .example = "trainer dataset convert train_leveldb train_lmdb\n"
                "trainer dataset convert train_lmdb train.tar --shard_size=1GiB",
     .flags =
         {{.name = "shard_size",
           .value = "SIZE",
           .help =
               "tar files: start a new file (NAME-000000.tar, NAME-000001.tar, ...) at this size"}},
     .run = Convert});

const RegisterDatasetTask kSplit(
    "split",
    {.wanted = "SET REST PART",
     .words = 3,
     .text = "'split' divides the records of SET at random into two new sets: --part of them go to "
             "PART, the others to REST. The names choose the formats, as for 'convert'.",
     .example = "trainer dataset split all_lmdb train_lmdb val_lmdb --part=10% --stratified",
     .flags = {{.name = "part",
                .value = "PART",
                .fallback = "10%",
                .help = "split: the share of PART, such as 10% or 0.1, or its number of records, "
                        "such as 500"},
               {.name = "stratified",
                .kind = FlagKind::kSwitch,
                .help = "split: put the same share of each label into PART"}},
     .run = Split});

}  // namespace
}  // namespace trainer
