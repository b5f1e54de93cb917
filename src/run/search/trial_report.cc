#include "trainer/run/search/trial_report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "trainer/base/log/terminal.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the best test or, with `tested` false, the last training loss of a run.
std::optional<double> ScoreIn(const TrialResult& result, bool tested) {
  std::optional<double> score;
  if (tested && result.best) score = result.best->value;
  if (!tested && result.loss) score = *result.loss;
  return score && std::isnan(*score) ? std::nullopt : score;
}

// Returns the state of all runs, or how many of them are finished if their states differ.
std::string StateOfRuns(const TrialRow& row) {
  const std::string first = row.runs[0].second.State();
  size_t finished = 0;
  bool equal = true;
  for (const auto& [trial, result] : row.runs) {
    if (result.exit_code && result.State().starts_with("failed")) return result.State();
    finished += result.exit_code == 0 ? 1 : 0;
    equal = equal && result.State() == first;
  }
  return equal ? first : Join(finished, " of ", row.runs.size(), " finished");
}

// Returns the name of the scored output of the first run that has one, or "".
std::string ScoredOutputIn(const TrialReport& report) {
  for (const TrialRow& row : report.rows) {
    const std::string& output = row.runs[0].second.output;
    if (!output.empty()) return EscapeControl(output);
  }
  return "";
}

template <class T>
std::string TextOr(const std::optional<T>& value) {
  return value ? Join(*value) : "-";
}

// Returns the cells about the scores of a trial with one run.
std::vector<std::string> ScoreCells(const TrialResult& result, bool tests) {
  if (!tests) return {TextOr(result.loss)};
  return {result.best ? Join(result.best->value) : "-", result.best ? Join(result.best->iter) : "-",
          result.last ? Join(result.last->value) : "-"};
}

// Returns the cells about the scores of a trial with several runs.
std::vector<std::string> MeanCells(const TrialRow& row) {
  const MeanScore& score = row.score;
  return {TextOr(score.mean), score.mean && score.runs > 1 ? Join(score.spread) : "-",
          Join(score.runs, " of ", row.runs.size())};
}

}  // namespace

double MeanScore::Cost() const {
  if (!mean) return INFINITY;
  return lower_is_better ? *mean : -*mean;
}

MeanScore MeanOf(std::span<const TrialResult> results) {
  MeanScore score;
  bool diverged = false;
  for (const TrialResult& result : results) {
    score.tested = score.tested || result.best.has_value();
    if (result.best) score.lower_is_better = result.lower_is_better;
    diverged = diverged || (result.HasDiverged() && results.size() > 1);
  }
  double sum = 0, squares = 0;
  for (const TrialResult& result : results) {
    const std::optional<double> one = ScoreIn(result, score.tested);
    if (!one) continue;
    ++score.runs;
    sum += *one;
  }
  if (score.runs == 0 || diverged) return score;
  const auto count = static_cast<double>(score.runs);
  score.mean = sum / count;
  for (const TrialResult& result : results) {
    const std::optional<double> one = ScoreIn(result, score.tested);
    if (one) squares += (*one - *score.mean) * (*one - *score.mean);
  }
  if (score.runs > 1) score.spread = std::sqrt(squares / (count - 1));
  return score;
}

void SortByScore(std::vector<TrialRow>* rows) {
  std::ranges::stable_sort(*rows, {}, [](const TrialRow& row) {
    const bool tested = row.score.tested && row.score.mean.has_value();
    return std::tuple(-static_cast<int64_t>(row.stages), tested ? 0 : 1, row.score.Cost());
  });
}

TrialReport ReadTrials(const std::vector<Trial>& trials, const std::string& best_output) {
  TrialReport report;
  for (const Trial& trial : trials) {
    std::vector<TrialRow>& rows = report.rows;
    if (rows.empty() || rows.back().trial().number != trial.number) rows.emplace_back();
    rows.back().runs.emplace_back(trial, ReadTrialResult(trial, best_output));
  }
  for (TrialRow& row : report.rows) {
    std::vector<TrialResult> results;
    for (const auto& [trial, result] : row.runs) results.push_back(result);
    row.score = MeanOf(results);
    row.state = StateOfRuns(row);
  }
  SortByScore(&report.rows);
  return report;
}

TrialCells CellsOf(const TrialReport& report) {
  TrialCells cells;
  const TrialRow& first = report.rows[0];
  const bool tests = first.score.tested, several = first.runs.size() > 1;
  const std::string output = ScoredOutputIn(report);
  if (report.numbered) cells.head.push_back("trial");
  for (const std::string& setting : first.trial().settings) {
    cells.head.push_back(EscapeControl(setting.substr(0, setting.find('='))));
  }
  std::vector<std::string> scores = {"last loss"};
  if (tests) scores = {"best " + output, "at", "last " + output};
  if (several) scores = {tests ? "mean best " + output : "mean last loss", "spread", "runs"};
  cells.head.insert(cells.head.end(), scores.begin(), scores.end());
  cells.head.insert(cells.head.end(), {"iterations", "state"});
  for (const TrialRow& row : report.rows) {
    std::vector<std::string>& texts = cells.rows.emplace_back();
    if (report.numbered) texts.push_back(Join(row.trial().number));
    for (const std::string& setting : row.trial().settings) {
      texts.push_back(EscapeControl(setting.substr(setting.find('=') + 1)));
    }
    const TrialResult& result = row.runs[0].second;
    const std::vector<std::string> own = several ? MeanCells(row) : ScoreCells(result, tests);
    texts.insert(texts.end(), own.begin(), own.end());
    texts.insert(texts.end(), {Join(result.iter), row.state});
  }
  return cells;
}

std::string ToText(const TrialReport& report) {
  if (report.rows.empty()) return "no trial has begun\n";
  const TrialCells cells = CellsOf(report);
  const TrialRow& best = report.rows[0];
  const bool has_best = best.score.tested && best.score.mean.has_value();
  Table table(cells.head);
  for (const std::vector<std::string>& row : cells.rows) {
    table.Add(row);
    if (has_best && &row == &cells.rows[0]) table.MarkLastRow();
  }
  std::string text = table.ToString();
  for (const TrialRow& row : report.rows) {
    for (const auto& [trial, result] : row.runs) {
      if (result.IsFinished() || result.problem.empty()) continue;
      text += Join(trial.Name(), ": ", EscapeControl(result.problem), "\n");
    }
  }
  if (!has_best) return text;
  std::vector<std::string> folders;
  for (const auto& [trial, result] : best.runs) folders.push_back(EscapeControl(trial.folder));
  const std::string name = EscapeControl(JoinList(best.trial().settings, " "));
  return Join(text, "\n", Painted(Color::kGreen, "Best: " + name, STDOUT_FILENO), ", in ",
              FirstNames(folders), "\n");
}

}  // namespace trainer
