// Writes the graph of a net to a file.

#include <chrono>
#include <filesystem>
#include <system_error>

#include "trainer/analysis/summary/net_graph.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/process/command.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Draws `dot_path` to `path` with Graphviz, which takes a few seconds for a large net, and removes
// `dot_path`. If that fails, keeps it and throws kUnavailable with the command to run.
void RenderByGraphviz(const std::string& dot_path, const std::string& path) {
  constexpr std::chrono::minutes kLimit{5};
  const std::string format = path.substr(path.rfind('.') + 1);
  const CommandResult result = RunCommand({"dot", "-T" + format, "-o", path, dot_path}, kLimit);
  if (!result.problem.empty()) {
    throw Error(
        ErrorCode::kUnavailable, {path},
        Join("a .", format, " file needs Graphviz, whose command 'dot' failed: ", result.problem,
             ". The graph is in ", dot_path, ". Install the package graphviz, then run: dot -T",
             format, " -o ", path, " ", dot_path,
             "; or give --out a file that ends in .svg, which needs no Graphviz"));
  }
  std::error_code ignored;
  std::filesystem::remove(dot_path, ignored);
}

}  // namespace

bool IsGraphFile(const std::string& path) {
  for (const char* ending : {".svg", ".dot", ".png", ".pdf"}) {
    if (path.ends_with(ending)) return true;
  }
  return false;
}

void WriteNetGraph(const NetGraph& graph, const std::string& title, const std::string& path) {
  if (path.ends_with(".svg")) return WriteWhole(path, graph.Svg(title));
  if (path.ends_with(".dot")) return WriteWhole(path, graph.Dot(title));
  const std::string dot_path = path + ".dot";
  WriteWhole(dot_path, graph.Dot(title));
  RenderByGraphviz(dot_path, path);
}

}  // namespace trainer
