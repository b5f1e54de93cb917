// Prints a table of the tests of each layer type, and fails if one is missing. It runs only if the
// program runs all its tests in one process, as the CTest entry layers.all does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "support/layer_checks.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

constexpr LayerCheck kChecks[kLayerChecks] = {LayerCheck::kValues,   LayerCheck::kGradient,
                                              LayerCheck::kInPlace,  LayerCheck::kImages,
                                              LayerCheck::kRefusals, LayerCheck::kBf16};

// Returns whether the check needs a bottom, a top or a storage type that the type does not have.
bool IsImpossible(const LayerDoc& doc, LayerCheck check) {
  if (check == LayerCheck::kBf16) {
    return doc.dtypes == DtypePolicy::kF32 || doc.dtypes == DtypePolicy::kAny;
  }
  if (check != LayerCheck::kGradient && check != LayerCheck::kInPlace) return false;
  return doc.arity.max_in == 0 || doc.arity.max_out == 0;
}

struct Cell {
  std::string text;  // number of tests, or why there are none
  bool is_hole = false;
};

Cell CellOf(const LayerChecks::Row& row, const LayerDoc& doc, LayerCheck check) {
  const size_t done = row.done[static_cast<size_t>(check)].size();
  if (done > 0) return {Join(done)};
  if (check == LayerCheck::kGradient && row.gradient_refused) return {"refused"};
  if (row.not_for.count(check) > 0 || IsImpossible(doc, check)) return {"-"};
  return {"MISSING", true};
}

struct Table {
  std::string text;
  std::vector<std::string> holes;
};

Table MakeTable(const std::map<std::string, LayerDoc>& types,
                const std::map<std::string, LayerChecks::Row>& rows) {
  Table table;
  const auto add = [&](const std::string& word, int width) {
    table.text += word + std::string(width - std::min<int>(width, word.size()), ' ');
  };
  add("layer type", 26);
  for (const LayerCheck check : kChecks) add(NameOf(check), 10);
  std::string notes;
  for (const auto& [type, doc] : types) {
    if (type.starts_with("Test")) continue;  // from tests/support
    const auto found = rows.find(type);
    const LayerChecks::Row row = found == rows.end() ? LayerChecks::Row() : found->second;
    table.text += "\n";
    add(type, 26);
    for (const LayerCheck check : kChecks) {
      const Cell cell = CellOf(row, doc, check);
      add(cell.text, 10);
      if (cell.is_hole) table.holes.push_back(Join(type, ": ", NameOf(check)));
    }
    for (const auto& [check, reason] : row.not_for) {
      notes += Join("\n  ", type, ", ", NameOf(check), ": ", reason);
      if (row.done[static_cast<size_t>(check)].empty()) continue;
      table.holes.push_back(Join(type, ": ", NameOf(check), " is tested, yet declared NotChecked"));
    }
  }
  for (const auto& [type, row] : rows) {
    if (types.count(type) > 0 || row.not_for.empty()) continue;
    table.holes.push_back(Join("NotChecked names '", type, "', which is no layer type"));
  }
  table.text += notes.empty() ? "\n" : "\n\nnot checked:" + notes + "\n";
  return table;
}

class Coverage final : public testing::Environment {
 public:
  void TearDown() override {
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() != tests.total_test_count()) return;
    const Table table = MakeTable(LayerDocs(), LayerChecks::Get().rows());
    std::fputs(table.text.c_str(), stdout);
    EXPECT_THAT(table.holes, testing::IsEmpty())
        << "each layer type needs each check, or a NotChecked with its reason";
  }
};

const testing::Environment* const kCoverage = testing::AddGlobalTestEnvironment(new Coverage);

TEST(CoverageTest, FindsHoles) {
  std::map<std::string, LayerChecks::Row> rows;
  rows["Full"].done.fill({"a test"});
  rows["Half"].done[0] = {"one", "two"};
  rows["Half"].gradient_refused = true;
  rows["Half"].not_for[LayerCheck::kImages] = "has no images";
  rows["Both"].done.fill({"a test"});
  rows["Both"].not_for[LayerCheck::kValues] = "a lie";
  rows["Gone"].not_for[LayerCheck::kValues] = "was renamed";
  std::map<std::string, LayerDoc> types = {{"Full", {}}, {"Half", {}}, {"Both", {}}};
  types["Half"].dtypes = DtypePolicy::kConfigurable;
  types["Source"].arity = {.min_in = 0, .max_in = 0};
  const Table table = MakeTable(types, rows);
  EXPECT_THAT(
      table.holes,
      testing::ElementsAre("Both: values is tested, yet declared NotChecked", "Half: in place",
                           "Half: refusals", "Half: bf16", "Source: values", "Source: images",
                           "Source: refusals", "NotChecked names 'Gone', which is no layer type"));
  EXPECT_THAT(table.text, testing::HasSubstr("Half                      2         refused   "
                                             "MISSING   -         MISSING   MISSING"));
  EXPECT_THAT(table.text, testing::HasSubstr("  Half, images: has no images\n"));
}

}  // namespace
}  // namespace trainer
