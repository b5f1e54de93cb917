#include "trainer/cli/help.h"

#include <algorithm>

#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/common_flags.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

// Returns the text with two blanks before each line and a newline at the end.
std::string Indented(std::string_view text) {
  std::string out = "  ";
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out + "\n";
}

// Returns "  --iterations=N     how many batches (default 50)" for each flag that is not hidden.
// `width` is the width of the first column.
std::string FlagLines(std::span<const Flag> flags, size_t width) {
  std::string out;
  for (const Flag& flag : flags) {
    if (flag.hidden) continue;
    const std::string spelling = FlagSpelling(flag);
    std::string help(flag.help);
    if (flag.required) help += " (required)";
    if (!flag.fallback.empty()) help += Join(" (default ", flag.fallback, ")");
    out += "  " + spelling + std::string(width - spelling.size() + 2, ' ') +
           Wrap(help, width + 4, width + 4) + "\n";
  }
  return out;
}

// Returns the width of the longest flag as help spells it, hidden ones left out.
size_t WidestFlag(std::span<const Flag> flags) {
  size_t width = 0;
  for (const Flag& flag : flags) {
    if (!flag.hidden) width = std::max(width, FlagSpelling(flag).size());
  }
  return width;
}

// Returns the flags under the headings of their groups, flags without a group first.
std::string FlagGroups(std::span<const Flag> flags) {
  std::vector<std::pair<std::string_view, std::vector<Flag>>> groups = {{"", {}}};
  for (const Flag& flag : flags) {
    auto found =
        std::ranges::find(groups, flag.group, [](const auto& group) { return group.first; });
    if (found == groups.end()) found = groups.insert(groups.end(), {flag.group, {}});
    found->second.push_back(flag);
  }
  const size_t width = WidestFlag(flags);
  std::string out;
  for (const auto& [group, of_group] : groups) {
    const std::string lines = FlagLines(of_group, width);
    if (lines.empty()) continue;
    out += Join(group.empty() ? "flags" : group, ":\n", lines, "\n");
  }
  return out;
}

constexpr std::pair<VerbTask, std::string_view> kTasks[] = {
    {VerbTask::kTrain, "train and test"},     {VerbTask::kLook, "look at nets and runs"},
    {VerbTask::kData, "make and check data"}, {VerbTask::kSettings, "find settings and names"},
    {VerbTask::kUse, "use trained weights"},  {VerbTask::kCluster, "work on a cluster"}};

// Returns the list of verbs with their summaries, under the heading of each task, sorted by name.
std::string VerbLines() {
  const std::vector<std::string> names = VerbRegistry::Get().Names();
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  std::string out;
  for (const auto& [task, heading] : kTasks) {
    out += Join("\n", heading, ":\n");
    for (const std::string& name : names) {
      const VerbPage page = VerbRegistry::Get().PageOf(name);
      if (page.task != task) continue;
      out += "  " + name + std::string(width - name.size() + 2, ' ') +
             Wrap(page.summary, width + 4, width + 4) + "\n";
    }
  }
  return out;
}

// Returns "  pack  put many image files into one set" for each task of a group.
std::string TaskLines(const std::string& group) {
  const std::vector<std::string> tasks = VerbRegistry::Get().TasksOf(group);
  size_t width = 0;
  for (const std::string& task : tasks) width = std::max(width, task.size());
  std::string out = "tasks:\n";
  for (const std::string& task : tasks) {
    const VerbPage page = VerbRegistry::Get().PageOf(Join(group, " ", task));
    out += "  " + task + std::string(width - task.size() + 2, ' ') +
           Wrap(page.summary, width + 4, width + 4) + "\n";
  }
  return out + Join("\n'trainer help ", group, " TASK' explains a task.\n");
}

}  // namespace

std::string FlagSpelling(const Flag& flag) {
  if (flag.kind == FlagKind::kSwitch) return Join("--", flag.name);
  if (!flag.bare.empty()) return Join("--", flag.name, "[=", flag.value, "]");
  return Join("--", flag.name, "=", flag.value);
}

std::string ProgramHelp() {
  std::string out =
      "trainer: train, test and time neural nets written as Caffe prototxt files.\n\n"
      "usage: trainer VERB [flags]\n\n"
      "examples:\n"
      "  trainer dataset digits data/digits\n"
      "  trainer train --solver=models/lenet/solver.prototxt\n"
      "  trainer train --solver=models/lenet/solver.prototxt \\\n"
      "      --snapshot=run/lenet/lenet_iter_1000.solverstate\n";
  out += VerbLines();
  out +=
      "\n'trainer help VERB' explains a verb; 'trainer --version' prints the version.\n"
      "'trainer help --man' prints the manual page, 'trainer help --completion' a\n"
      "script for bash that completes verbs and flags.\n"
      "Results go to stdout, the log to stderr.\n";
  return out;
}

std::string VerbHelp(const std::string& name) {
  const VerbInfo* const info = VerbRegistry::Get().Find(name);
  const VerbPage page = VerbRegistry::Get().PageOf(info == nullptr ? name : info->name);
  std::string out = Join("trainer ", name, ": ", page.summary, "\n\nusage: ", page.usage,
                         "\n\nexamples:\n", Indented(page.examples), "\n");
  if (!page.text.empty()) out += Wrap(page.text, 0) + "\n\n";
  if (info == nullptr) return out + TaskLines(name);
  return out + FlagGroups(DeclaredVerb(*info).flags.flags()) + "flags of every verb:\n" +
         FlagLines(CommonFlags(), WidestFlag(CommonFlags()));
}

}  // namespace trainer
