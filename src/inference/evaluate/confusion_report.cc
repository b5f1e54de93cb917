#include "evaluate/confusion_report.h"

#include <algorithm>
#include <numeric>

#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int64_t kMaxMatrixClasses = 16;  // so that the matrix fits on a terminal
constexpr size_t kMaxRows = 20;

std::string Percent(double fraction) { return Fixed(100 * fraction, 2) + "%"; }

// Returns all classes if they are few, else the classes with records that have the lowest recall.
std::vector<int64_t> SelectClasses(const ConfusionMatrix& matrix) {
  std::vector<int64_t> classes(static_cast<size_t>(matrix.classes()));
  std::iota(classes.begin(), classes.end(), int64_t{0});
  if (classes.size() <= kMaxRows) return classes;
  std::erase_if(classes, [&](int64_t c) { return matrix.Of(c).labels == 0; });
  std::ranges::stable_sort(classes, {}, [&](int64_t c) { return matrix.Of(c).recall(); });
  classes.resize(std::min(classes.size(), kMaxRows));
  return classes;
}

// Returns the number of a class, and its name if there are names.
std::vector<std::string> ClassCells(int64_t c, const std::vector<std::string>& names) {
  if (names.empty()) return {Join(c)};
  return {Join(c), EscapeControl(names[static_cast<size_t>(c)])};
}

void Append(const std::vector<std::string>& more, std::vector<std::string>* cells) {
  cells->insert(cells->end(), more.begin(), more.end());
}

// Returns a table of the classes of SelectClasses. A recall or precision without records is "-".
std::string ClassTable(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  std::vector<std::string> head = {"class"};
  if (!names.empty()) head.push_back("name");
  Append({"records", "answers", "hits", "recall", "precision"}, &head);
  Table table(head);
  for (const int64_t c : SelectClasses(matrix)) {
    const ConfusionMatrix::ClassCounts& one = matrix.Of(c);
    std::vector<std::string> cells = ClassCells(c, names);
    Append({Join(one.labels), Join(one.predictions), Join(one.hits),
            one.labels == 0 ? "-" : Percent(one.recall()),
            one.predictions == 0 ? "-" : Percent(one.precision())},
           &cells);
    table.Add(cells);
  }
  return table.ToString();
}

// Returns the counts with a row per label and a column per prediction; cells of 0 are empty.
std::string MatrixTable(const ConfusionMatrix& matrix) {
  std::vector<std::string> head = {"label"};
  for (int64_t c = 0; c < matrix.classes(); ++c) head.push_back(Join(c));
  Table table(head);
  for (int64_t label = 0; label < matrix.classes(); ++label) {
    std::vector<std::string> row = {Join(label)};
    for (int64_t predicted = 0; predicted < matrix.classes(); ++predicted) {
      const int64_t count = matrix.Count(label, predicted);
      row.push_back(count == 0 ? "" : Join(count));
    }
    table.Add(row);
  }
  return table.ToString();
}

// Returns the most frequent pairs of a label and a wrong prediction.
std::string WorstTable(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  std::vector<std::string> head = {"times", "label"};
  if (!names.empty()) head.push_back("name");
  head.push_back("answer");
  if (!names.empty()) head.push_back("name");
  Table table(head);
  for (const ConfusionMatrix::Cell& cell : matrix.Worst(kMaxRows)) {
    std::vector<std::string> cells = {Join(cell.count)};
    Append(ClassCells(cell.label, names), &cells);
    Append(ClassCells(cell.predicted, names), &cells);
    table.Add(cells);
  }
  return table.ToString();
}

}  // namespace

std::string ToText(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  const bool few = matrix.classes() <= static_cast<int64_t>(kMaxRows);
  std::string text =
      Join("accuracy ", Percent(matrix.accuracy()), ": ", matrix.hits(), " of ", matrix.total(),
           " records; mean recall of the classes ", Percent(matrix.MeanRecall()), "\n\n");
  if (!few) text += Join("The classes with the lowest recall, of ", matrix.classes(), ":\n\n");
  text += ClassTable(matrix, names);
  if (matrix.classes() <= kMaxMatrixClasses) {
    text += "\nRecords by label (rows) and answer (columns):\n\n" + MatrixTable(matrix);
  }
  if (matrix.hits() == matrix.total()) return text;
  return text + "\nThe most frequent mistakes:\n\n" + WorstTable(matrix, names);
}

Json ToJson(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  Json classes = Json::Array();
  for (int64_t c = 0; c < matrix.classes(); ++c) {
    const ConfusionMatrix::ClassCounts& one = matrix.Of(c);
    Json json = Json::Object().Set("class", c);
    if (!names.empty()) json.Set("name", names[static_cast<size_t>(c)]);
    classes.Push(json.Set("records", one.labels)
                     .Set("answers", one.predictions)
                     .Set("hits", one.hits)
                     .Set("recall", one.labels == 0 ? Json() : Json(one.recall()))
                     .Set("precision", one.predictions == 0 ? Json() : Json(one.precision())));
  }
  Json cells = Json::Array();
  for (const ConfusionMatrix::Cell& cell : matrix.Cells()) {
    cells.Push(Json::Object()
                   .Set("label", cell.label)
                   .Set("answer", cell.predicted)
                   .Set("count", cell.count));
  }
  return Json::Object()
      .Set("records", matrix.total())
      .Set("hits", matrix.hits())
      .Set("accuracy", matrix.accuracy())
      .Set("mean_recall", matrix.MeanRecall())
      .Set("classes", std::move(classes))
      .Set("matrix", std::move(cells));
}

}  // namespace trainer
