#include "trainer/checkpoint/upgrade_file.h"

#include <fstream>
#include <string_view>

#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/config/upgrade/upgrade.h"

namespace trainer {
namespace {

// Returns whether the first 64 KiB contain bytes that no text contains. Every file of weights has
// such bytes: the tags of its fields.
bool IsBinary(const std::string& path) {
  OpenForReading(path);  // throws the right error if it cannot be read
  std::ifstream file(path, std::ios::binary);
  std::string start(size_t{1} << 16, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  return start.find_first_of(std::string_view("\0\1\2\3\4\5\6\7\x0e\x0f\x10\x11\x12", 13)) !=
         std::string::npos;
}

struct FileUpgrade {
  std::string kind;  // "weights", "a solver", "a net"
  Upgrades upgrades;
};

// Reads old or current weights, writes them to `out` in the current format, and returns what
// changed. The name of `out` selects binary or HDF5.
FileUpgrade UpgradeWeights(const std::string& in, const std::string& out) {
  caffe::NetParameter net = ReadModelAsWritten(in);
  Upgrades upgrades = UpgradeNet(&net, in);
  upgrades.Append(UpgradeBlobs(&net, in));
  WriteModel(out, net);
  return {"weights", upgrades};
}

FileUpgrade UpgradeTextFile(const std::string& in, const std::string& out) {
  const UpgradedText upgraded = UpgradeText(in);
  WriteWhole(out, upgraded.text);
  return {upgraded.is_solver ? "a solver" : "a net", upgraded.upgrades};
}

// Returns the lines for the user about an upgrade to `out`.
std::string DescribeUpgrade(const FileUpgrade& upgrade, const std::string& out) {
  std::string text;
  for (const std::string& line : upgrade.upgrades.done) text += EscapeControl(line) + "\n";
  for (const std::string& line : upgrade.upgrades.warnings) {
    text += "warning: " + EscapeControl(line) + "\n";
  }
  if (upgrade.upgrades.done.empty()) text += "the file is already in the current format\n";
  return text + Join("wrote ", EscapeControl(out), " (", upgrade.kind, ")\n");
}

}  // namespace

std::string UpgradeFile(const std::string& in, const std::string& out, bool replace) {
  const bool binary = IsBinary(in);
  RefuseToReplace(out, replace);
  return DescribeUpgrade(binary ? UpgradeWeights(in, out) : UpgradeTextFile(in, out), out);
}

}  // namespace trainer
