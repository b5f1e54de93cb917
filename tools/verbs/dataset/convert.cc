#include "trainer/datasets/convert.h"

#include <iostream>

#include "dataset_verb.h"

namespace trainer {
namespace {

// Copies the records of a set into a set of another format.
class Convert final : public DatasetVerb {
 public:
  Convert() : DatasetVerb(2, 2) {}

 private:
  void DeclareTask(FlagSet& flags) override {
    DeclareBackend(flags);
    DeclareThreads(flags);
    DeclareWriteCrc(flags);
    DeclareShardSize(flags);
    flags.Bind(&channels_last_, "channels_last", "",
               "the images of SET are height x width x channels, as NumPy's usually are");
  }

  void RunTask() override {
    const WriteOptions output = OutputAt(words()[1]);
    const int64_t records = ConvertRecords(words()[0], output, threads(), channels_last_);
    std::cout << output.path << ": " << records << " records\n";
    WriteChecksums(output.path);
  }

  bool channels_last_ = false;
};

const RegisterVerb<Convert> kConvert("dataset convert");

}  // namespace
}  // namespace trainer
