#include "table_flags.h"

#include <glog/logging.h>

#include <algorithm>
#include <iostream>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/input/bad_records.h"
#include "trainer/run/input_options.h"

namespace trainer {
namespace {

bool HasTableName(const std::string& path) {
  return path.ends_with(".csv") || path.ends_with(".tsv");
}

}  // namespace

void DeclareTable(FlagSet& flags, TableFlags* table) {
  flags.BeginGroup("tables");
  flags.Bind(&table->like, "like", "SET",
             "prepare the columns of the table as those of SET; default: the set that the comment "
             "of the net's file names");
  flags.Bind(&table->bad_records, "bad_records", "WHAT",
             "what to do with a row that cannot be used: end with an error (stop), or log and "
             "leave out up to N rows (skip=N)");
  flags.BeginGroup("");
}

bool NamesTable(const std::vector<std::string>& words, const TableFlags& table) {
  if (words.size() == 1) return !table.like.empty() || HasTableName(words[0]);
  if (table.like.empty()) return false;
  throw Error(ErrorCode::kUsage,
              Join("--like is for one table, but there are ", words.size(), " files"));
}

void PredictTableFile(InferenceNet& net, const PredictionTarget& target,
                      TablePredictionOptions options, const TableFlags& flags) {
  options.like = ResolveLike(flags.like, target.net);
  if (options.like.empty()) {
    throw Error(ErrorCode::kUsage,
                EscapeControl(Join(options.table,
                                   " is a table, and nothing says how its columns become "
                                   "the net's inputs; give the set that 'trainer dataset "
                                   "csv' made for training, with --like=SET")));
  }
  net.LoadAllWeights(target.weights);
  ApplyBadRecords(flags.bad_records);
  options.most_bad = std::max(MaxBadRecords(), 0);
  const TablePredictionResult result =
      PredictTable(net, options, [](const std::string& text) { std::cout << text; });
  for (const UnknownCategories& one : result.unknown) {
    LOG(WARNING) << EscapeControl(Join(options.table, ": column '", one.column, "': ", one.rows,
                                       " rows with a category that ", options.like,
                                       " does not have, first '", one.first, "' in line ",
                                       one.first_line, "; all its inputs are 0"));
  }
  if (result.skipped + result.bad > 0) {
    LOG(WARNING) << EscapeControl(Join(options.table, ": left out ", result.skipped,
                                       " rows with empty fields and ", result.bad, " bad rows"));
  }
  if (!options.out.empty()) {
    LOG(INFO) << EscapeControl(Join("Wrote ", options.out, ": ", result.rows, " rows"));
  }
}

}  // namespace trainer
