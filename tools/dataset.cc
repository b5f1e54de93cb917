#include "trainer/data/dataset.h"

#include <algorithm>
#include <cctype>
#include <iostream>

#include "trainer/base/text.h"
#include "verb.h"

namespace trainer {
namespace {

// The words after `trainer dataset`: what to do, and with what.
struct Task {
  const char* name;
  const char* wanted;  // its arguments
  size_t words;        // how many
  void (*run)(const Flags& flags);
};

// The backend's registered name, in capitals as a prototxt spells it.
std::string Backend(const Flags& flags) {
  std::string name = flags.Text("backend");
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

void MakeDigits(const Flags& flags) {
  DigitsOptions options;
  options.folder = flags.words()[1];
  options.backend = Backend(flags);
  options.train = flags.Whole("train");
  options.test = flags.Whole("test");
  options.seed = static_cast<uint64_t>(flags.Whole("seed"));
  const DigitsPaths paths = WriteDigits(options);
  std::cout << paths.train << ": " << options.train << " records\n"
            << paths.test << ": " << options.test << " records\n";
}

void ConvertIdx(const Flags& flags) {
  const std::vector<std::string>& words = flags.words();
  const int64_t records = WriteIdx(words[1], words[2], words[3], Backend(flags));
  std::cout << words[3] << ": " << records << " records\n";
}

void Describe(const Flags& flags) { Print(DescribeDatabase(flags.words()[1]), std::cout); }

void ConvertCifar10(const Flags& flags) {
  const Cifar10Files made = WriteCifar10(flags.words()[1], flags.words()[2], Backend(flags));
  std::cout << made.train << ": " << made.train_records << " records\n"
            << made.test << ": " << made.test_records << " records\n"
            << made.mean << ": mean of the training images\n";
}

void MakePairs(const Flags& flags) {
  const std::vector<std::string>& words = flags.words();
  const auto seed = static_cast<uint64_t>(flags.Whole("seed"));
  const int64_t records = WritePairs(words[1], words[2], Backend(flags), seed);
  std::cout << words[2] << ": " << records << " records\n";
}

constexpr Task kTasks[] = {
    {"cifar10", "BATCHES DIR", 2, ConvertCifar10}, {"digits", "DIR", 1, MakeDigits},
    {"idx", "IMAGES LABELS DB", 3, ConvertIdx},    {"info", "DB", 1, Describe},
    {"pairs", "DB PAIRS", 2, MakePairs},
};

class Dataset final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .summary = "make a data set, or describe one",
        .usage =
            "trainer dataset digits DIR | idx IMAGES LABELS DB | cifar10 BATCHES DIR | "
            "pairs DB PAIRS | info DB [flags]",
        .text =
            "digits draws handwritten digits, the same on every machine for one seed, and "
            "writes DIR/train_lmdb and DIR/test_lmdb (or ..._leveldb).\n"
            "idx makes a database of a pair of files in MNIST's format, gzip or not.\n"
            "cifar10 makes DIR/cifar10_train_lmdb, DIR/cifar10_test_lmdb and "
            "DIR/mean.binaryproto of the folder that holds data_batch_1.bin and so on.\n"
            "pairs puts two images of DB, drawn at random, into each record of PAIRS, with label 1 "
            "when they are of one class: data for a siamese net.\n"
            "info reads a database from end to end and counts records, shapes and labels.",
        .examples =
            "trainer dataset digits data/digits\n"
            "trainer dataset idx train-images-idx3-ubyte.gz \\\n"
            "    train-labels-idx1-ubyte.gz mnist_lmdb\n"
            "trainer dataset info data/digits/train_lmdb",
        .flags = {{.name = "backend",
                   .value = "lmdb|leveldb",
                   .fallback = "lmdb",
                   .help = "kind of database to make",
                   .choices = "lmdb|leveldb"},
                  {.name = "train",
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
                   .min = 1},
                  {.name = "seed",
                   .kind = FlagKind::kWhole,
                   .value = "N",
                   .fallback = "1",
                   .help = "digits: which set to draw; pairs: which pairs"}},
        .max_words = 4,
    };
  }

  int Run(const Flags& flags) override {
    const std::vector<std::string>& words = flags.words();
    std::vector<std::string> names;
    for (const Task& task : kTasks) names.emplace_back(task.name);
    if (words.empty()) {
      throw Error(ErrorCode::kUsage, Join("'trainer dataset' needs one of: ", JoinList(names)));
    }
    for (const Task& task : kTasks) {
      if (words[0] != task.name) continue;
      if (words.size() != task.words + 1) {
        throw Error(ErrorCode::kUsage,
                    Join("usage: trainer dataset ", task.name, " ", task.wanted, " [flags]"));
      }
      task.run(flags);
      return 0;
    }
    throw Error(ErrorCode::kUsage, Join("'trainer dataset' has no '", words[0], "'; it has: ",
                                        JoinList(names), ".", DidYouMean(words[0], names)));
  }
};

const RegisterVerb<Dataset> kDataset("dataset");

}  // namespace
}  // namespace trainer
