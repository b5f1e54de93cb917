#include <iostream>

#include "dataset_verb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/datasets/verify.h"

namespace trainer {
namespace {

// Reads all records of a set and prints the errors. Throws kData if a record is unusable.
class CheckSet final : public DatasetVerb {
 public:
  CheckSet() : DatasetVerb(1, 1) {}

 private:
  void DeclareTask(FlagSet& flags) override {
    DeclareThreads(flags);
    DeclareWriteCrc(flags);
  }

  void RunTask() override {
    const VerifyReport report =
        VerifyRecords(words()[0], {.threads = threads(), .write_crc = write_crc()});
    Print(report, std::cout);
    if (report.bad == 0) return;
    throw Error(ErrorCode::kData, Join(report.errors.front(), "; of ", report.records, " records ",
                                       report.bad, report.bad == 1 ? " is" : " are", " unusable"));
  }
};

const RegisterVerb<CheckSet> kCheckSet("dataset check");

}  // namespace
}  // namespace trainer
