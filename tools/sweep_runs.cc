#include "sweep_runs.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/config/alternatives.h"

namespace trainer {
namespace {

constexpr size_t kMostRuns = 1000;

// The settings as the name of a folder. Where letters had to go, a checksum keeps names apart.
std::string FolderName(const std::vector<std::string>& settings) {
  constexpr size_t kLongest = 100;
  const std::string whole = JoinList(settings, ",");
  std::string name = whole;
  for (char& letter : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) ||
                       std::string_view("._-+=,").find(letter) != std::string_view::npos;
    if (!plain) letter = '_';
  }
  name.resize(std::min(name.size(), kLongest));
  if (name != whole) name += Join("-", Crc32c(whole.data(), whole.size()));
  return name;
}

// One more list of alternatives: each run so far with each of them.
void Multiply(const std::vector<std::string>& alternatives, std::vector<SweepRun>* runs) {
  std::vector<SweepRun> more;
  for (const SweepRun& run : *runs) {
    for (const std::string& setting : alternatives) {
      more.push_back(run);
      more.back().changes.push_back(setting);
      if (alternatives.size() > 1) more.back().settings.push_back(setting);
    }
  }
  *runs = std::move(more);
}

}  // namespace

std::string SweepRun::Name() const { return EscapeControl(JoinList(settings, " ")); }

std::vector<SweepRun> RunsOf(const std::vector<std::string>& assignments, const std::string& folder,
                             const std::string& prefix) {
  std::vector<SweepRun> runs(1);
  size_t count = 1;
  for (const std::string& assignment : assignments) {
    const std::vector<std::string> alternatives = Alternatives(assignment);
    const std::set<std::string> unlike(alternatives.begin(), alternatives.end());
    if (unlike.size() != alternatives.size()) {
      throw Error(ErrorCode::kUsage,
                  EscapeControl(Join("--set ", assignment, ": the list has the same value twice")));
    }
    count *= alternatives.size();
    if (count > kMostRuns) {
      throw Error(ErrorCode::kUsage, Join("these lists give more than ", kMostRuns,
                                          " runs; give shorter lists, or several sweeps"));
    }
    Multiply(alternatives, &runs);
  }
  if (count == 1) {
    throw Error(ErrorCode::kUsage,
                "nothing to compare: give several values, as in --set base_lr=0.1,0.01");
  }
  for (SweepRun& run : runs) {
    run.folder = JoinPath(folder, FolderName(run.settings));
    run.prefix = JoinPath(run.folder, FileNameOf(prefix));
    run.log = JoinPath(run.folder, "log");
    run.changes.push_back("snapshot_prefix=" + run.prefix);
  }
  return runs;
}

void SortByScore(std::vector<SweepRow>* rows) {
  std::ranges::stable_sort(*rows, {}, [](const SweepRow& row) {
    const SweepResult& result = row.second;
    const bool tested = result.best && !std::isnan(result.best->value);
    double key = result.loss.value_or(INFINITY);
    if (tested) key = result.lower_is_better ? result.best->value : -result.best->value;
    return std::pair(tested ? 0 : 1, std::isnan(key) ? INFINITY : key);
  });
}

std::string SweepTable(const std::vector<SweepRow>& sorted) {
  const bool tests = !sorted.empty() && sorted[0].second.best.has_value();
  std::vector<std::string> head;
  for (const std::string& setting : sorted[0].first.settings) {
    head.push_back(EscapeControl(setting.substr(0, setting.find('='))));
  }
  const std::string output = EscapeControl(sorted[0].second.output);
  if (tests) head.insert(head.end(), {"best " + output, "at", "last " + output});
  if (!tests) head.push_back("last loss");
  head.insert(head.end(), {"iterations", "state"});
  Table table(head);
  for (const auto& [run, result] : sorted) {
    std::vector<std::string> row;
    for (const std::string& setting : run.settings) {
      row.push_back(EscapeControl(setting.substr(setting.find('=') + 1)));
    }
    if (tests) {
      row.push_back(result.best ? Join(result.best->value) : "-");
      row.push_back(result.best ? Join(result.best->iter) : "-");
      row.push_back(result.last ? Join(result.last->value) : "-");
    }
    if (!tests) row.push_back(result.loss ? Join(*result.loss) : "-");
    row.push_back(Join(result.iter));
    row.push_back(result.State());
    table.Add(row);
    if (tests && &run == &sorted[0].first) table.MarkLastRow();
  }
  return table.ToString();
}

}  // namespace trainer
