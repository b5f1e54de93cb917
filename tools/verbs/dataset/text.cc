#include "trainer/base/text/text.h"

#include <iostream>

#include "dataset_verb.h"
#include "trainer/datasets/from_text.h"

namespace trainer {
namespace {

// Makes a set from a text, for nets that predict the next character.
class Text final : public DatasetVerb {
 public:
  Text() : DatasetVerb(2, 2) {}

 private:
  void DeclareTask(FlagSet& flags) override {
    flags.Bind(&options_.length, "length", "N", "characters of a record").Range(1, 1 << 24);
    flags.Bind(&validation_, "val", "PART",
               "put this part of the records, from the end of the text, into a second set: 10%, "
               "0.1, or 500 records");
    flags.Bind(&options_.validation_path, "val_out", "PATH", "path of the second set");
  }

  std::vector<std::string> OutputFiles() const override {
    if (options_.validation_path.empty()) return {};
    return {options_.validation_path};
  }

  void RunTask() override {
    options_.text = words()[0];
    options_.output = words()[1];
    options_.validation = ParseSplit("val", validation_);
    const TextResult result = WriteTextRecords(options_);
    Print(options_.output, result.records);
    if (!result.validation_path.empty()) Print(result.validation_path, result.validation_records);
    if (result.left_out > 0) {
      std::cout << "left out: " << result.left_out << " characters at the end\n";
    }
  }

  void Print(const std::string& path, int64_t records) const {
    std::cout << path << ": " << Counted(records, "record") << " of " << options_.length
              << " characters\n";
  }

  TextOptions options_;
  std::string validation_;
};

const RegisterVerb<Text> kText("dataset text");

}  // namespace
}  // namespace trainer
