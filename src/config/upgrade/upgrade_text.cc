// Upgrades text files of any age.
#include "text/brace_scanner.h"
#include "trainer/base/text/text.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/config/upgrade/upgrade.h"

namespace trainer {
namespace {

// Returns whether more of the file's fields belong to a solver than to a net. Misspelt fields count
// for neither.
bool LooksLikeSolver(const std::string& content) {
  const auto& solver = *caffe::SolverParameter::descriptor();
  const auto& net = *caffe::NetParameter::descriptor();
  int solver_fields = 0, net_fields = 0;
  const TextContext file = ScanText(content, EndOf(content));
  for (const auto& [name, place] : file.open.front().first) {
    solver_fields += solver.FindFieldByName(name) != nullptr ? 1 : 0;
    net_fields += net.FindFieldByName(name) != nullptr ? 1 : 0;
  }
  return solver_fields > net_fields;
}

// Returns whether there is a '#' outside of strings.
bool HasComments(const std::string& content) {
  char quote = 0;
  for (size_t i = 0; i < content.size(); ++i) {
    const char c = content[i];
    if (quote == 0) {
      if (c == '#') return true;
      if (c == '"' || c == '\'') quote = c;
    } else if (c == '\\') {
      ++i;
    } else if (c == quote) {
      quote = 0;
    }
  }
  return false;
}

// Returns a message as prototxt, with UTF-8 text unescaped.
std::string Print(const google::protobuf::Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  if (!printer.PrintToString(message, &text)) {
    throw Error(ErrorCode::kInternal, "a message could not be printed");
  }
  return text;
}

}  // namespace

UpgradedText UpgradeText(const std::string& path) {
  const std::string content = ReadTextFile(path);
  UpgradedText upgraded;
  upgraded.is_solver = LooksLikeSolver(content);
  if (upgraded.is_solver) {
    SolverSpec solver;
    solver.file = path;
    solver.text = ParseTextString(path, content, &solver.proto);
    upgraded.upgrades = UpgradeSolver(&solver);
    upgraded.text = Print(solver.proto);
  } else {
    caffe::NetParameter net;
    const auto text = ParseTextString(path, content, &net);
    upgraded.upgrades = UpgradeNet(&net, path, &text->tree);
    upgraded.upgrades.Append(UpgradeBlobs(&net, path));
    upgraded.text = Print(net);
  }
  if (HasComments(content)) {
    upgraded.upgrades.warnings.push_back(Join(path, ": the comments are lost"));
  }
  return upgraded;
}

}  // namespace trainer
