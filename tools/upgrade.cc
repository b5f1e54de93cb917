#include "trainer/config/upgrade.h"

#include <fstream>
#include <iostream>

#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

// Whether the file begins with bytes that no text has. Every file of weights does: the tags of its
// fields are such bytes.
bool IsBinary(const std::string& path) {
  OpenForReading(path);  // says what is wrong when it cannot be read
  std::ifstream file(path, std::ios::binary);
  std::string start(size_t{1} << 16, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  return start.find_first_of(std::string_view("\0\1\2\3\4\5\6\7\x0e\x0f\x10\x11\x12", 13)) !=
         std::string::npos;
}

void ReportUpgrades(const std::string& kind, const Upgrades& upgrades, const std::string& out) {
  for (const std::string& text : upgrades.done) std::cout << EscapeControl(text) << "\n";
  for (const std::string& text : upgrades.warnings) {
    std::cout << "warning: " << EscapeControl(text) << "\n";
  }
  if (upgrades.done.empty()) std::cout << "the file is already in the current format\n";
  std::cout << "wrote " << EscapeControl(out) << " (" << kind << ")\n";
}

void UpgradeWeights(const std::string& in, const std::string& out) {
  caffe::NetParameter net = ReadModelAsWritten(in);
  Upgrades upgrades = UpgradeNet(&net, in);
  upgrades.Append(UpgradeBlobs(&net, in));
  WriteModel(out, net);
  ReportUpgrades("weights", upgrades, out);
}

void UpgradeTextTo(const std::string& in, const std::string& out) {
  const UpgradedText upgraded = UpgradeText(in);
  WriteWhole(out, upgraded.text);
  ReportUpgrades(upgraded.is_solver ? "a solver" : "a net", upgraded.upgrades, out);
}

class Upgrade final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kSettings,
        .summary = "rewrite old nets, solvers and weights in the current format",
        .usage = "trainer upgrade IN OUT [--force]",
        .text =
            "Rewrites layers of the old 'layers' formats, old input fields, solver_type, and blobs "
            "with four sizes or with double or raw numbers. A text file stays text and a binary "
            "file stays binary. The output has one line per change. Comments in text files are "
            "lost. If an error occurs, OUT is not written. You need this verb only for other "
            "programs: all verbs of trainer read old files.",
        .examples =
            "trainer upgrade old_net.prototxt net.prototxt\n"
            "trainer upgrade old.caffemodel new.caffemodel\n"
            "trainer upgrade solver.prototxt solver.prototxt --force",
        .flags = {{.name = "force",
                   .kind = FlagKind::kSwitch,
                   .help = "replace OUT if it exists, even if it is the file IN"}},
        .max_words = 2,
    };
  }

  int Run(const Flags& flags) override {
    if (flags.words().size() != 2) {
      throw Error(ErrorCode::kUsage,
                  "'trainer upgrade' needs IN and OUT: the file and its new name");
    }
    const std::string& in = flags.words()[0];
    const std::string& out = flags.words()[1];
    const bool binary = IsBinary(in);
    if (Exists(out) && !flags.Switch("force")) {
      throw Error(ErrorCode::kCannotCreate, {out},
                  "the file already exists; give another name, or --force to replace it");
    }
    if (binary) {
      UpgradeWeights(in, out);
    } else {
      UpgradeTextTo(in, out);
    }
    return 0;
  }
};

const RegisterVerb<Upgrade> kUpgradeVerb("upgrade");

}  // namespace
}  // namespace trainer
