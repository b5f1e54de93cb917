#include <filesystem>
#include <iostream>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/dataset/dataset.h"

namespace trainer {
namespace {

class Demo final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {.task = VerbTask::kTrain,
            .summary = "train a first net in a minute, from nothing",
            .usage = "trainer demo [DIR] [--epochs=N]",
            .text =
                "The demo draws handwritten digits, writes a LeNet for them, trains it, tests it "
                "and writes a report. All files go to DIR (default: trainer-demo). It needs no "
                "network connection and no data. Each step prints its command, so that you can "
                "repeat it with your own data.",
            .examples = "trainer demo\ntrainer demo /tmp/first",
            .flags = {{.name = "epochs",
                       .kind = FlagKind::kWhole,
                       .value = "N",
                       .fallback = "4",
                       .help = "how many passes over the digits",
                       .min = 1}},
            .max_words = 1};
  }

  int Run(const Flags& flags) override {
    const std::string folder = flags.words().empty() ? "trainer-demo" : flags.words()[0];
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
        {"new", net, "--data=" + data, "--epochs=" + flags.Text("epochs")},
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
  static void Announce(const std::vector<std::string>& command) {
    std::cout << "\n$ trainer " << JoinList(command, " ") << std::endl;
  }
};

const RegisterVerb<Demo> kDemo("demo");

}  // namespace
}  // namespace trainer
