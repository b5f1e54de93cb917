#include <filesystem>
#include <iostream>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/datasets/digits.h"

namespace trainer {
namespace {

// Makes a set of digits, and then runs the verbs new, train, test and report on it. Returns the
// exit code of the first verb that fails.
class Demo final : public Verb {
 public:
  void Declare(FlagSet& flags) override {
    flags.BindWords(&words_, 1);
    flags.Bind(&epochs_, "epochs", "N", "how many passes over the digits").Range(1);
  }

  int Run() override {
    const std::string folder = words_.empty() ? "trainer-demo" : words_[0];
    if (Exists(folder)) {
      throw Error(ErrorCode::kCannotCreate, {folder},
                  "the folder already exists; remove it, or choose another one: trainer demo DIR");
    }
    const std::string data = JoinPath(folder, "data"), net = JoinPath(folder, "lenet"),
                      run = JoinPath(net, "run"), report = JoinPath(folder, "report.html");
    std::filesystem::create_directories(folder);
    Announce({"dataset", "digits", data});
    WriteDigits({.folder = data});
    const std::vector<std::vector<std::string>> steps = {
        {"new", net, "--data=" + data, Join("--epochs=", epochs_)},
        {"train", "--solver=" + JoinPath(net, "solver.prototxt"), "--run=" + run},
        {"test", "--run=" + run},
        {"report", run, "--out=" + report}};
    for (const std::vector<std::string>& step : steps) {
      Announce(step);
      if (const int code = RunVerb(step); code != 0) return code;
    }
    std::cout
        << "\nreport: " << AbsolutePath(report) << " (open it in a browser)\n"
        << "net:    " << JoinPath(net, "train_test.prototxt") << " and solver.prototxt\n"
        << "next:   your own images, a folder for each class: trainer new DIR --data=FOLDER\n";
    return 0;
  }

 private:
  // Prints the command that is about to run.
  static void Announce(const std::vector<std::string>& command) {
    std::cout << "\n$ trainer " << JoinList(command, " ") << std::endl;
  }

  std::vector<std::string> words_;
  int epochs_ = 4;
};

const RegisterVerb<Demo> kDemo("demo");

}  // namespace
}  // namespace trainer
