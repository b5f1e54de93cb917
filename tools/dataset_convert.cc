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
     .text = "convert writes the records of SET, a database, an HDF5 file or a tar file, to a new "
             "one. NAME.h5 is an HDF5 file, with NAME.txt for HDF5Data's source; NAME.tar holds "
             "KEY.jpg or KEY.png and KEY.cls with the label, as WebDataset names them; anything "
             "else is a database, of the kind that --backend says. Between databases keys and "
             "bytes stay as they are.",
     .example = "trainer dataset convert train_leveldb train_lmdb\n"
                "trainer dataset convert train_lmdb train.tar --shard_size=1GiB",
     .flags = {{.name = "shard_size",
                .value = "SIZE",
                .help = "tar files: begin a new one, NAME-000000.tar, ..., at this size"}},
     .run = Convert});

const RegisterDatasetTask kSplit(
    "split",
    {.wanted = "SET REST PART",
     .words = 3,
     .text =
         "split divides the records of SET, drawn at random, among two new sets: --part of them "
         "go to PART, the others to REST. The kinds are those of convert.",
     .example = "trainer dataset split all_lmdb train_lmdb val_lmdb --part=10% --stratified",
     .flags = {{.name = "part",
                .value = "PART",
                .fallback = "10%",
                .help = "split: 10%, 0.1, or 500 records"},
               {.name = "stratified",
                .kind = FlagKind::kSwitch,
                .help = "split: of each label the same share"}},
     .run = Split});

}  // namespace
}  // namespace trainer
