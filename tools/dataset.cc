#include "trainer/dataset/dataset.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "dataset_task.h"
#include "reading_flags.h"
#include "shared_flags.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/temp_remover.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "verb.h"

namespace trainer {
namespace {

void MakeDigits(const Flags& flags) {
  DigitsOptions options;
  options.folder = flags.words()[1];
  options.backend = BackendName(flags);
  options.train = flags.Whole("train");
  options.test = flags.Whole("test");
  options.seed = static_cast<uint64_t>(flags.Whole("seed"));
  const DigitsPaths paths = WriteDigits(options);
  std::cout << paths.train << ": " << options.train << " records\n"
            << paths.test << ": " << options.test << " records\n";
}

void ConvertIdx(const Flags& flags) {
  const std::vector<std::string>& words = flags.words();
  const int64_t records = WriteIdx(words[1], words[2], words[3], BackendName(flags));
  std::cout << words[3] << ": " << records << " records\n";
}

const RegisterDatasetTask kDigits(
    "digits",
    {.wanted = "DIR",
     .words = 1,
     .text = "'digits' draws handwritten digits and writes DIR/train_lmdb and DIR/test_lmdb (or "
             "..._leveldb). One seed gives the same digits on every machine.",
     .example = "trainer dataset digits data/digits",
     .flags = {{.name = "train",
                .kind = FlagKind::kWhole,
                .value = "N",
                .fallback = "20000",
                .help = "digits: how many training images",
                .min = 1},
               {.name = "test",
                .kind = FlagKind::kWhole,
                .value = "N",
                .fallback = "4000",
                .help = "digits: how many test images",
                .min = 1}},
     .run = MakeDigits});

const RegisterDatasetTask kIdx(
    "idx",
    {.wanted = "IMAGES LABELS DB",
     .words = 3,
     .text = "'idx' makes a database from a pair of files in MNIST's format, with or without gzip.",
     .example = "trainer dataset idx train-images-idx3-ubyte.gz "
                "\\\n    train-labels-idx1-ubyte.gz mnist_lmdb",
     .run = ConvertIdx});

void PrintCifar(const Cifar10Files& made) {
  std::cout << made.train << ": " << made.train_records << " records\n"
            << made.test << ": " << made.test_records << " records\n"
            << made.mean << ": mean of the training images\n";
}

std::string MeanOfCifar(const Flags& flags) {
  return JoinPath(flags.words()[2], "mean.binaryproto");
}

void ConvertCifar10(const Flags& flags) {
  RefuseToReplace(flags, MeanOfCifar(flags));
  PrintCifar(WriteCifar10(flags.words()[1], flags.words()[2], BackendName(flags)));
}

void ConvertCifar100(const Flags& flags) {
  RefuseToReplace(flags, MeanOfCifar(flags));
  const bool coarse = flags.Text("cifar100_labels") == "coarse";
  PrintCifar(WriteCifar100(flags.words()[1], flags.words()[2],
                           coarse ? Cifar100Labels::kCoarse : Cifar100Labels::kFine,
                           BackendName(flags)));
}

void MakePairs(const Flags& flags) {
  const std::vector<std::string>& words = flags.words();
  const auto seed = static_cast<uint64_t>(flags.Whole("seed"));
  const int64_t records = WritePairs(words[1], words[2], BackendName(flags), seed);
  std::cout << words[2] << ": " << records << " records\n";
}

const RegisterDatasetTask kCifar10(
    "cifar10",
    {.wanted = "BATCHES DIR",
     .words = 2,
     .text = "'cifar10' makes DIR/cifar10_train_lmdb, DIR/cifar10_test_lmdb and "
             "DIR/mean.binaryproto from the folder BATCHES with data_batch_1.bin and so on.",
     .example = "trainer dataset cifar10 cifar-10-batches-bin data/cifar10",
     .run = ConvertCifar10});

const RegisterDatasetTask kCifar100(
    "cifar100",
    {.wanted = "BATCHES DIR",
     .words = 2,
     .text = "'cifar100' makes DIR/cifar100_train_lmdb, DIR/cifar100_test_lmdb and "
             "DIR/mean.binaryproto from the folder BATCHES with train.bin and test.bin.",
     .example = "trainer dataset cifar100 cifar-100-binary data/cifar100",
     .flags = {{.name = "cifar100_labels",
                .value = "fine|coarse",
                .fallback = "fine",
                .help = "cifar100: label with the 100 classes (fine) or their 20 groups (coarse)",
                .choices = "fine|coarse"}},
     .run = ConvertCifar100});

const RegisterDatasetTask kPairs(
    "pairs", {.wanted = "SET PAIRS",
              .words = 2,
              .text = "'pairs' puts two random images of SET into each record of PAIRS, with label "
                      "1 if both have the same class and 0 if not: data for a siamese net.",
              .example = "trainer dataset pairs data/digits/train_lmdb pairs_lmdb",
              .run = MakePairs});

std::vector<std::string> TaskNames() {
  std::vector<std::string> names;
  for (const auto& [name, task] : DatasetTasks()) names.push_back(name);
  return names;
}

// The page's parts, put together from all tasks; they live as long as the program.
struct Page {
  std::string usage = "trainer dataset TASK ARGUMENTS [flags]", text, examples;
  std::vector<Flag> flags = {
      {.name = "backend",
       .value = "lmdb|leveldb",
       .fallback = "lmdb",
       .help = "which kind of database to write",
       .choices = "lmdb|leveldb"},
      {.name = "seed",
       .kind = FlagKind::kWhole,
       .value = "N",
       .fallback = "1",
       .help = "seed of the random choices. digits: what to draw; images, pack, tar: the order; "
               "pairs: the pairs; split, --val: the records"},
      {.name = "threads",
       .kind = FlagKind::kWhole,
       .value = "N",
       .fallback = "0",
       .help = "number of threads that decode and encode; 0: one for each core that this process "
               "may use",
       .max = 1024},
      {.name = "force",
       .kind = FlagKind::kSwitch,
       .help = "mean, images, cifar10, cifar100: replace the mean file if it already exists"}};
  size_t words = 0;

  Page() {
    for (const auto& [name, task] : DatasetTasks()) {
      text += Join("trainer dataset ", name, " ", task.wanted, "\n", task.text, "\n");
      examples += Join(task.example, "\n");
      flags.insert(flags.end(), task.flags.begin(), task.flags.end());
      words = std::max(words, task.words + 1);
    }
    flags = WithReadingFlags(std::move(flags));
    text.pop_back();
    examples.pop_back();
  }
};

// Whether a flag is one of the task's. Its help begins with the tasks that it is for ("images,
// pack:
// ...; check: ..."), unless it is for all.
bool IsFlagOf(const Flag& flag, const std::string& task) {
  bool is_named = false;
  for (const std::string& clause : SplitList(flag.help, ';')) {
    for (const std::string& name : SplitList(clause.substr(0, clause.find(':')))) {
      if (name == task) return true;
      is_named = is_named || DatasetTasks().contains(name);
    }
  }
  return !is_named;
}

// Where a task may write: a word is the name of a set or a file, or a folder for several.
std::vector<std::string> FoldersOf(const std::vector<std::string>& words, const Flags& flags) {
  std::vector<std::string> folders;
  for (size_t i = 1; i < words.size(); ++i) {
    std::string path = words[i];
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    folders.insert(folders.end(), {path, FolderOf(path)});
  }
  for (const char* flag : {"val_out", "labels", "mean"}) {
    if (flags.Has(flag)) folders.push_back(FolderOf(flags.Text(flag)));
  }
  return folders;
}

class Dataset final : public Verb {
 public:
  VerbDoc Doc() const override {
    static const Page kPage;
    return {.task = VerbTask::kData,
            .summary = "make, convert, check and measure data sets",
            .usage = kPage.usage,
            .text = kPage.text,
            .examples = kPage.examples,
            .flags = kPage.flags,
            .max_words = static_cast<int>(kPage.words)};
  }

  std::vector<std::string> Tasks() const override { return TaskNames(); }

  VerbDoc TaskDoc(const std::string& name) const override {
    const DatasetTask& task = DatasetTasks().at(name);
    static std::string usage;  // that the page refers to
    usage = Join("trainer dataset ", name, " ", task.wanted, " [flags]");
    VerbDoc doc = Doc();
    std::erase_if(doc.flags, [&](const Flag& flag) { return !IsFlagOf(flag, name); });
    doc.summary = "a task of 'trainer dataset'";
    doc.usage = usage;
    doc.text = task.text;
    doc.examples = task.example;
    return doc;
  }

  int Run(const Flags& flags) override {
    const std::vector<std::string>& words = flags.words();
    const std::vector<std::string> names = TaskNames();
    if (words.empty()) {
      throw Error(ErrorCode::kUsage, Join("'trainer dataset' needs one of: ", JoinList(names)));
    }
    const auto found = DatasetTasks().find(words[0]);
    if (found == DatasetTasks().end()) {
      throw Error(ErrorCode::kUsage,
                  Join("'trainer dataset' has no task '", words[0], "'; it has: ", JoinList(names),
                       ".", DidYouMean(words[0], names)));
    }
    const auto& [name, task] = *found;
    const size_t least = task.min_words == 0 ? task.words : task.min_words;
    if (words.size() > task.words + 1 || words.size() < least + 1) {
      throw Error(ErrorCode::kUsage,
                  Join("usage: trainer dataset ", name, " ", task.wanted, " [flags]"));
    }
    if (std::ranges::count(words, "") > 0) {
      throw Error(ErrorCode::kUsage,
                  "one of the file names is empty (''); is a shell variable not set?");
    }
    ApplyReadingFlags(flags);
    const TempRemover temp_remover(FoldersOf(words, flags));
    task.run(flags);
    return 0;
  }
};

const RegisterVerb<Dataset> kDataset("dataset");

}  // namespace

RecordOutput OutputOf(const Flags& flags, const std::string& path) {
  RecordOutput output{path, BackendName(flags)};
  const std::string& size = flags.Text("shard_size");
  if (size.empty()) return output;
  const std::optional<uint64_t> bytes = ParseBytes(size);
  if (!bytes || *bytes == 0) {
    throw Error(ErrorCode::kUsage, Join("--shard_size=", EscapeControl(size),
                                        ": not a size; write 256MiB, 1GiB, ..."));
  }
  output.shard_bytes = *bytes;
  return output;
}

int ThreadsOf(const Flags& flags) {
  const int threads = flags.Whole("threads");
  return threads > 0 ? threads : AvailableThreads();
}

}  // namespace trainer
