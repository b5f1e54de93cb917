#include "trainer/cli/verb.h"

#include <algorithm>
#include <array>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr auto kTaskNames =
    std::to_array<std::pair<std::string_view, VerbTask>>({{"train", VerbTask::kTrain},
                                                          {"look", VerbTask::kLook},
                                                          {"data", VerbTask::kData},
                                                          {"settings", VerbTask::kSettings},
                                                          {"use", VerbTask::kUse},
                                                          {"cluster", VerbTask::kCluster}});

// Cuts the first line off `text` and returns it.
std::string_view NextLine(std::string_view* text) {
  const size_t end = text->find('\n');
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return line;
}

// Removes `key` ("usage: ") from the front of the line and returns whether it was there.
bool TakeKey(std::string_view key, std::string_view* line) {
  if (!line->starts_with(key)) return false;
  line->remove_prefix(key.size());
  return true;
}

}  // namespace

VerbPage ParseVerbPage(const std::string& name, std::string_view file) {
  VerbPage page;
  bool has_task = false;
  for (std::string_view line = NextLine(&file); !line.empty(); line = NextLine(&file)) {
    if (TakeKey("summary: ", &line)) {
      page.summary = line;
    } else if (TakeKey("usage: ", &line)) {
      page.usage = line;
    } else if (TakeKey("task: ", &line)) {
      for (const auto& [text, task] : kTaskNames) {
        if (line != text) continue;
        page.task = task;
        has_task = true;
      }
    }
  }
  bool in_examples = false, in_paragraph = false;
  while (!file.empty()) {
    const std::string_view line = NextLine(&file);
    if (line == "examples:") {
      in_examples = true;
    } else if (in_examples) {
      page.examples += Join(page.examples.empty() ? "" : "\n", line);
    } else if (line.empty()) {
      in_paragraph = false;
    } else {
      page.text += Join(in_paragraph ? " " : page.text.empty() ? "" : "\n", line);
      in_paragraph = true;
    }
  }
  if (!has_task || page.summary.empty() || page.usage.empty()) {
    throw Error(ErrorCode::kInternal, Join("the help file of '", name, "' is not complete"));
  }
  return page;
}

DeclaredVerb::DeclaredVerb(const VerbInfo& info) : verb(info.make()), flags(info.name) {
  verb->Declare(flags);
}

VerbRegistry& VerbRegistry::Get() {
  static VerbRegistry registry;
  return registry;
}

void VerbRegistry::Add(VerbInfo info) {
  std::vector<std::string> names = info.aliases;
  names.push_back(info.name);
  for (const std::string& name : names) {
    if (!names_.emplace(name, info.name).second) {
      throw Error(ErrorCode::kInternal, Join("verb '", name, "' is registered twice"));
    }
  }
  const std::string name = info.name;
  verbs_.emplace(name, std::move(info));
}

const VerbInfo* VerbRegistry::Find(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : &verbs_.at(found->second);
}

std::vector<std::string> VerbRegistry::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, info] : verbs_) {
    const std::string first = name.substr(0, name.find(' '));
    if (names.empty() || names.back() != first) names.push_back(first);
  }
  return names;
}

std::vector<std::string> VerbRegistry::TasksOf(const std::string& group) const {
  std::vector<std::string> tasks;
  for (const auto& [name, info] : verbs_) {
    if (name.starts_with(group + " ")) tasks.push_back(name.substr(group.size() + 1));
  }
  return tasks;
}

VerbPage VerbRegistry::PageOf(const std::string& name) const {
  std::string file = name;
  std::ranges::replace(file, ' ', '_');
  return ParseVerbPage(name, help_files_ == nullptr ? "" : help_files_(file));
}

}  // namespace trainer
